"""CreatePartitions, versions 0-3.

Differences from Apache Kafka: partitions are there before the answer, so `timeout_ms` never runs
out.
"""

from collections import Counter

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import InvalidRequestError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(
    services: BrokerServices, request: Request, body: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Extend each topic by itself."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    return CreatePartitionsResponse(
        results=[
            _result(
                services, topic, repeated=named[topic.name] > 1, validate_only=body.validate_only
            )
            for topic in distinct.values()
        ]
    )


def _result(
    services: BrokerServices, topic: CreatePartitionsTopic, *, repeated: bool, validate_only: bool
) -> CreatePartitionsTopicResult:
    try:
        if repeated:
            raise InvalidRequestError("Duplicate topic name.")
        services.controller.create_partitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [item.broker_ids for item in topic.assignments],
            validate_only=validate_only,
        )
    except KafkaError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=code_of(error), error_message=str(error)
        )
    return CreatePartitionsTopicResult(name=topic.name)


def _failed(body: CreatePartitionsRequest, code: int) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in body.topics
        ]
    )


API = ServedApi(CreatePartitionsRequest, handle, _failed)
