"""CreatePartitions (37): add partitions to topics."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int16, int32, string
from kclient.protocol.message import Request, Response


class CreatePartitionsTopicResult(Struct):
    """The outcome for a topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreatePartitionsResponse(Response, versions="0-3", flexible="2+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


class CreatePartitionsAssignment(Struct):
    """Brokers of a new partition."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Struct):
    """Topic and its new number of partitions."""

    name: str = string(map_key=True)
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


class CreatePartitionsRequest(
    Request,
    api_key=ApiKey.CREATE_PARTITIONS,
    response=CreatePartitionsResponse,
    versions="0-3",
    flexible="2+",
):
    """Increases the number of partitions."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()
