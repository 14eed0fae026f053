"""DeleteTopics, versions 1-6; version 6 names topics by id too.

Differences from Apache Kafka: topics are gone before the answer, so `timeout_ms` never runs out.
"""

from collections import Counter

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import InvalidRequestError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kclient.protocol.types import ZERO_UUID

_STATES = 6


def handle(
    services: BrokerServices, request: Request, body: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete each topic by itself."""
    topics = body.topics
    if request.header.api_version < _STATES:
        topics = [DeleteTopicState(name=name) for name in body.topic_names]
    named = Counter((topic.name, topic.topic_id) for topic in topics)
    return DeleteTopicsResponse(
        responses=[
            _result(services, name, topic_id, repeated=count > 1)
            for (name, topic_id), count in named.items()
        ]
    )


def _result(
    services: BrokerServices, name: str | None, topic_id: bytes, *, repeated: bool
) -> DeletableTopicResult:
    try:
        if repeated:
            raise InvalidRequestError("Duplicate topic name or id.")
        if (name is None) == (topic_id == ZERO_UUID):
            raise InvalidRequestError("A topic is to be given by its name or by its id.")
        topic = services.controller.delete_topic(name, topic_id)
    except KafkaError as error:
        return DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=code_of(error), error_message=str(error)
        )
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _failed(body: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
    topics = body.topics or [DeleteTopicState(name=name) for name in body.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics
        ]
    )


API = ServedApi(DeleteTopicsRequest, handle, _failed)
