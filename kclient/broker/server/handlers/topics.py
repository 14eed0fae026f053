"""Creation and deletion of topics and partitions.

- CreateTopics, versions 2-7.
- CreatePartitions, versions 0-3.
- DeleteTopics, versions 1-6; version 6 names topics by id too.

A response is sent when this broker has applied the change, and at the latest when `timeout_ms` or
1 s after the commit has passed. Differences from Apache Kafka: no change is refused because
`timeout_ms` has passed.
"""

from collections import Counter
from collections.abc import Container, Iterable

from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    TopicAuthorizationError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kclient.protocol.types import ZERO_UUID

_TOPIC_STATES = 6

_Named = tuple[str | None, bytes]
"""A topic's name or, where that is None, its id."""


def _create_topics(services: BrokerServices, request: Request, body: CreateTopicsRequest) -> None:
    """Create topics in one batch; a rejected topic does not affect the others."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    wanted: dict[str, TopicRequest] = {}
    outcomes: dict[str, TopicPlan | KafkaError] = {}
    creatable = _creatable(services, request, distinct)
    for name, topic in distinct.items():
        try:
            if name not in creatable:
                raise TopicAuthorizationError("Authorization failed.")
            if named[name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            wanted[name] = _topic_request(topic)
        except KafkaError as error:
            outcomes[name] = error

    def on_done(plans: list[TopicPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        results = [_topic_result(services, request, name, outcomes[name]) for name in distinct]
        request.respond(CreateTopicsResponse(topics=results))

    services.controller.create_topics(
        list(wanted.values()),
        on_done,
        validate_only=body.validate_only,
        deadline_ms=services.clock.monotonic_ms() + body.timeout_ms,
    )


def _creatable(services: BrokerServices, request: Request, names: Iterable[str]) -> Container[str]:
    """Return the topics that the client may create."""
    auth, operation = services.auth, AclOperation.CREATE
    names = set(names)
    if auth.authorize_cluster(request, operation, is_logged=False):
        return names
    return {name for name in names if auth.authorize_topic(request, operation, name)}


def _topic_result(
    services: BrokerServices,
    request: Request,
    name: str,
    outcome: TopicPlan | KafkaError,
) -> CreatableTopicResult:
    if isinstance(outcome, KafkaError):
        return _refused_topic(name, code_of(outcome), str(outcome))
    kind, operation = ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS
    if services.auth.authorize(request, operation, kind, name, is_logged=False):
        return _created_topic(services, outcome)
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_message=None,
        topic_config_error_code=code_of(TopicAuthorizationError),
        configs=None,
    )


def _topic_request(topic: CreatableTopic) -> TopicRequest:
    assignments = {item.partition_index: item.broker_ids for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise InvalidReplicaAssignmentError("Found multiple manual assignments for a partition.")
    configs = {config.name: config.value for config in topic.configs}
    return TopicRequest(
        topic.name, topic.num_partitions, topic.replication_factor, assignments, configs
    )


def _created_topic(services: BrokerServices, plan: TopicPlan) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=plan.request.name,
        topic_id=plan.topic_id,
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


def _refused_topic(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _failed_creation(body: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[_refused_topic(topic.name, code, None) for topic in body.topics]
    )


def _create_partitions(
    services: BrokerServices, request: Request, body: CreatePartitionsRequest
) -> None:
    """Add partitions to topics in one batch; a rejected topic does not affect the others."""
    named = Counter(topic.name for topic in body.topics)
    distinct = {topic.name: topic for topic in body.topics}
    outcomes: dict[str, PartitionsPlan | KafkaError] = {
        name: InvalidRequestError("Duplicate topic name.")
        for name, count in named.items()
        if count > 1
    }
    for name in distinct:
        if not services.auth.authorize_topic(request, AclOperation.ALTER, name):
            outcomes[name] = TopicAuthorizationError("Authorization failed.")
    wanted = [
        _partitions_request(topic) for name, topic in distinct.items() if name not in outcomes
    ]

    def on_done(plans: list[PartitionsPlan | KafkaError]) -> None:
        outcomes.update(zip((each.name for each in wanted), plans, strict=True))
        results = [_partitions_result(name, outcomes[name]) for name in distinct]
        request.respond(CreatePartitionsResponse(results=results))

    services.controller.create_partitions(
        wanted,
        on_done,
        validate_only=body.validate_only,
        deadline_ms=services.clock.monotonic_ms() + body.timeout_ms,
    )


def _partitions_request(topic: CreatePartitionsTopic) -> PartitionsRequest:
    assignments = topic.assignments
    return PartitionsRequest(
        topic.name,
        topic.count,
        None if assignments is None else [item.broker_ids for item in assignments],
    )


def _partitions_result(
    name: str, outcome: PartitionsPlan | KafkaError
) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(
            name=name, error_code=code_of(outcome), error_message=str(outcome)
        )
    return CreatePartitionsTopicResult(name=name)


def _failed_partitions(body: CreatePartitionsRequest, code: int) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in body.topics
        ]
    )


def _delete_topics(services: BrokerServices, request: Request, body: DeleteTopicsRequest) -> None:
    """Delete topics in one batch; a rejected topic does not affect the others."""
    topics = body.topics
    if request.header.api_version < _TOPIC_STATES:
        topics = [DeleteTopicState(name=name) for name in body.topic_names]
    named = Counter((topic.name, topic.topic_id) for topic in topics)
    outcomes: dict[_Named, DeletionPlan | KafkaError] = {
        key: InvalidRequestError(problem)
        for key, count in named.items()
        if (problem := _naming_problem(key, count)) is not None
    }
    names = {key: _shown_name(services, request, key) for key in named if key not in outcomes}
    for key, name in names.items():
        if not _may_delete(services, request, key, name):
            outcomes[key] = TopicAuthorizationError()
    wanted = [key for key in named if key not in outcomes]

    def on_done(plans: list[DeletionPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        results = [_deletion_result(key, outcomes[key], names.get(key, key[0])) for key in named]
        request.respond(DeleteTopicsResponse(responses=results))

    services.controller.delete_topics(
        wanted, on_done, deadline_ms=services.clock.monotonic_ms() + body.timeout_ms
    )


def _shown_name(services: BrokerServices, request: Request, key: _Named) -> str | None:
    """Return the name of a topic to delete, or None if the client may not learn that of its id."""
    name, topic_id = key
    if name is not None:
        return name
    found = services.metadata.image.topic_names.get(topic_id)
    if found is None or not services.auth.authorize_topic(request, AclOperation.DESCRIBE, found):
        return None
    return found


def _may_delete(services: BrokerServices, request: Request, key: _Named, name: str | None) -> bool:
    """Return whether the client may delete a topic; it may learn that an id is unknown."""
    if name is None:
        return key[1] not in services.metadata.image.topic_names
    return services.auth.authorize_topic(request, AclOperation.DELETE, name)


def _naming_problem(key: _Named, count: int) -> str | None:
    name, topic_id = key
    if count > 1:
        return "Duplicate topic name or id."
    if (name is None) == (topic_id == ZERO_UUID):
        return "Exactly one of topic name and topic id must be set."
    return None


def _deletion_result(
    key: _Named, outcome: DeletionPlan | KafkaError, name: str | None
) -> DeletableTopicResult:
    if isinstance(outcome, KafkaError):
        return DeletableTopicResult(
            name=name,
            topic_id=key[1],
            error_code=code_of(outcome),
            error_message=str(outcome),
        )
    return DeletableTopicResult(name=outcome.topic.name, topic_id=outcome.topic.topic_id)


def _failed_deletion(body: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
    topics = body.topics or [DeleteTopicState(name=name) for name in body.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics
        ]
    )


APIS = (
    ServedApi(CreateTopicsRequest, _create_topics, _failed_creation),
    ServedApi(CreatePartitionsRequest, _create_partitions, _failed_partitions),
    ServedApi(DeleteTopicsRequest, _delete_topics, _failed_deletion),
)
