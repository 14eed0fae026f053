"""CreatePartitions, versions 0-3.

Differences from Apache Kafka: partitions exist before the response, so `timeout_ms` never expires.
"""

from collections import Counter

from kclient.broker.controller.topic_control import PartitionsPlan, PartitionsRequest
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi, always
from kclient.common.broker_errors import InvalidRequestError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(services: BrokerServices, request: Request, body: CreatePartitionsRequest) -> None:
    """Add partitions to topics in one batch; a rejected topic does not affect the others."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    outcomes: dict[str, PartitionsPlan | KafkaError] = {
        name: InvalidRequestError("Duplicate topic name.")
        for name, count in named.items()
        if count > 1
    }
    wanted = [_wanted(topic) for name, topic in distinct.items() if name not in outcomes]

    def on_done(plans: list[PartitionsPlan | KafkaError]) -> None:
        outcomes.update(zip((each.name for each in wanted), plans, strict=True))
        results = [_result(name, outcomes[name]) for name in distinct]
        request.respond(CreatePartitionsResponse(results=results))

    services.controller.create_partitions(wanted, on_done, validate_only=body.validate_only)


def _wanted(topic: CreatePartitionsTopic) -> PartitionsRequest:
    assignments = topic.assignments
    return PartitionsRequest(
        topic.name,
        topic.count,
        None if assignments is None else [item.broker_ids for item in assignments],
    )


def _result(name: str, outcome: PartitionsPlan | KafkaError) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(
            name=name, error_code=code_of(outcome), error_message=str(outcome)
        )
    return CreatePartitionsTopicResult(name=name)


def _failed(body: CreatePartitionsRequest, code: int) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in body.topics
        ]
    )


API = ServedApi(CreatePartitionsRequest, handle, _failed, changes_metadata=always)
