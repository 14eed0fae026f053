"""CreateTopics, versions 2-7.

Differences from Apache Kafka: topics exist before the response, so `timeout_ms` never expires.
"""

from collections import Counter

from kclient.broker.controller.topic_control import TopicPlan, TopicRequest
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi, always
from kclient.common.broker_errors import (
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


def handle(services: BrokerServices, request: Request, body: CreateTopicsRequest) -> None:
    """Create topics in one batch; a rejected topic does not affect the others."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    wanted: dict[str, TopicRequest] = {}
    outcomes: dict[str, TopicPlan | KafkaError] = {}
    for name, topic in distinct.items():
        try:
            if named[name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            wanted[name] = _wanted(topic)
        except KafkaError as error:
            outcomes[name] = error

    def on_done(plans: list[TopicPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        results = [_result(services, name, outcomes[name], body) for name in distinct]
        request.respond(CreateTopicsResponse(topics=results))

    services.controller.create_topics(
        list(wanted.values()), on_done, validate_only=body.validate_only
    )


def _result(
    services: BrokerServices,
    name: str,
    outcome: TopicPlan | KafkaError,
    body: CreateTopicsRequest,
) -> CreatableTopicResult:
    if isinstance(outcome, KafkaError):
        return _refusal(name, code_of(outcome), str(outcome))
    return _created(services, outcome, validated=body.validate_only)


def _wanted(topic: CreatableTopic) -> TopicRequest:
    assignments = {item.partition_index: item.broker_ids for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise InvalidReplicaAssignmentError("Found multiple manual assignments for a partition.")
    configs = {config.name: config.value for config in topic.configs}
    return TopicRequest(
        topic.name, topic.num_partitions, topic.replication_factor, assignments, configs
    )


def _created(services: BrokerServices, plan: TopicPlan, *, validated: bool) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=plan.request.name,
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
            for entry in services.configs.entries_with(plan.request.configs)
        ],
    )


def _refusal(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _failed(body: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_refusal(topic.name, code, None) for topic in body.topics])


API = ServedApi(CreateTopicsRequest, handle, _failed, changes_metadata=always)
