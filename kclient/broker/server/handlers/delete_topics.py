"""DeleteTopics, versions 1-6; version 6 names topics by id too.

Differences from Apache Kafka: topics are deleted before the response; `timeout_ms` never expires.
"""

from collections import Counter

from kclient.broker.controller.topic_control import DeletionPlan
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi, always
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

_Named = tuple[str | None, bytes]
"""A topic's name or, where that is None, its id."""


def handle(services: BrokerServices, request: Request, body: DeleteTopicsRequest) -> None:
    """Delete topics in one batch; a rejected topic does not affect the others."""
    topics = body.topics
    if request.header.api_version < _STATES:
        topics = [DeleteTopicState(name=name) for name in body.topic_names]
    named = Counter((topic.name, topic.topic_id) for topic in topics)
    outcomes: dict[_Named, DeletionPlan | KafkaError] = {
        key: InvalidRequestError(problem)
        for key, count in named.items()
        if (problem := _problem(key, count)) is not None
    }
    wanted = [key for key in named if key not in outcomes]

    def on_done(plans: list[DeletionPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        results = [_result(key, outcomes[key]) for key in named]
        request.respond(DeleteTopicsResponse(responses=results))

    services.controller.delete_topics(wanted, on_done)


def _problem(key: _Named, count: int) -> str | None:
    name, topic_id = key
    if count > 1:
        return "Duplicate topic name or id."
    if (name is None) == (topic_id == ZERO_UUID):
        return "Exactly one of topic name and topic id must be set."
    return None


def _result(key: _Named, outcome: DeletionPlan | KafkaError) -> DeletableTopicResult:
    if isinstance(outcome, KafkaError):
        return DeletableTopicResult(
            name=key[0],
            topic_id=key[1],
            error_code=code_of(outcome),
            error_message=str(outcome),
        )
    return DeletableTopicResult(name=outcome.topic.name, topic_id=outcome.topic.topic_id)


def _failed(body: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
    topics = body.topics or [DeleteTopicState(name=name) for name in body.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics
        ]
    )


API = ServedApi(DeleteTopicsRequest, handle, _failed, changes_metadata=always)
