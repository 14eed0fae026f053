"""DeleteTopics (20): by name, from version 6 on also by id."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, string, uuid
from kclient.protocol.message import Request, Response


class DeletableTopicResult(Struct):
    """The outcome for a topic."""

    name: str | None = string(nullable="6+", map_key=True)
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, versions="1-6", flexible="4+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


class DeleteTopicState(Struct):
    """A topic by name or by id."""

    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: bytes = uuid("6+")


class DeleteTopicsRequest(
    Request,
    api_key=ApiKey.DELETE_TOPICS,
    response=DeleteTopicsResponse,
    versions="1-6",
    flexible="4+",
):
    """Deletes topics."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()
