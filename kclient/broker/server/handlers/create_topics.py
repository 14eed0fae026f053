"""CreateTopics, versions 2-7.

Differences from Apache Kafka: topics are created before the answer, so `timeout_ms` never runs out.
"""

from collections import Counter

from kclient.broker.controller.topic_control import TopicPlan, TopicRequest
from kclient.broker.log.log_config import LogConfig
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import (
    InvalidConfigurationError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(
    services: BrokerServices, request: Request, body: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create each topic by itself: one that is refused does not stop the others."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    results = []
    for topic in distinct.values():
        try:
            if named[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            wanted = _wanted(topic)
            plan = services.controller.create_topic(wanted, validate_only=body.validate_only)
        except KafkaError as error:
            results.append(_refusal(topic.name, code_of(error), str(error)))
        else:
            results.append(_created(services, wanted, plan, validated=body.validate_only))
    return CreateTopicsResponse(topics=results)


def _wanted(topic: CreatableTopic) -> TopicRequest:
    assignments = {item.partition_index: item.broker_ids for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise InvalidReplicaAssignmentError("Found multiple manual assignments for a partition.")
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise InvalidConfigurationError(
                f"Null value not supported for topic configs: {config.name:.80}"
            )
        configs[config.name] = config.value
    LogConfig.parse(configs)
    return TopicRequest(
        topic.name, topic.num_partitions, topic.replication_factor, assignments, configs
    )


def _created(
    services: BrokerServices, wanted: TopicRequest, plan: TopicPlan, *, validated: bool
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=wanted.name,
        topic_id=bytes(16) if validated else plan.topic_id,
        error_message=None,
        num_partitions=plan.num_partitions,
        replication_factor=plan.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in services.configs.entries_with(wanted.configs)
        ],
    )


def _refusal(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _failed(body: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_refusal(topic.name, code, None) for topic in body.topics])


API = ServedApi(CreateTopicsRequest, handle, _failed)
