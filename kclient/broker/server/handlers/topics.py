"""Creation and deletion of topics and partitions.

- CreateTopics, versions 2-7.
- CreatePartitions, versions 0-3.
- DeleteTopics, versions 1-6; version 6 names topics by id too.

What the client may not do is refused here; the active controller decides on the rest. A response is
sent when this broker has applied the change, and at the latest when `timeout_ms` or 1 s after the
commit has passed. Differences from Apache Kafka: no change is refused because `timeout_ms` has
passed; a change that the controller refuses for other reasons than that the topic exists or does
not counts against the quota of changes of partitions.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import partial

from kclient.broker.controller.topic_requests import TopicKey, naming_problem, topics_to_delete
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.controller_channel import are_created
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    NONE,
    ThrottlingQuotaExceededError,
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
)

_UNAUTHORIZED = code_of(TopicAuthorizationError)
_THROTTLED = code_of(ThrottlingQuotaExceededError)
_QUOTA_EXCEEDED = "The throttling quota has been exceeded."
_STRICT_CREATION, _STRICT_PARTITIONS, _STRICT_DELETION = 6, 3, 5
"""First versions that are refused over the quota, instead of only throttled (KIP-599)."""

_NO_REASON = ""  # as that of Apache Kafka


def _create_topics(services: BrokerServices, request: Request, body: CreateTopicsRequest) -> None:
    """Create the topics that the client may create."""
    names = list(dict.fromkeys(topic.name for topic in body.topics))
    creatable = _creatable(services, request, names)
    allowed = [topic for topic in body.topics if topic.name in creatable]
    is_strict = request.header.api_version >= _STRICT_CREATION
    wanted = [
        topic
        for topic in allowed
        if _admits_creation(services, request, topic, is_strict=is_strict)
    ]
    throttled = {topic.name for topic in allowed} - {topic.name for topic in wanted}

    def on_done(outcome: CreateTopicsResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            request.respond(failed_creation(body, code_of(outcome)))
            return
        found = {result.name: result for result in outcome.topics}
        found |= {name: _refused_topic(name, _THROTTLED, _QUOTA_EXCEEDED) for name in throttled}
        for topic in wanted:
            _describe_created(services, request, found[topic.name], topic)
        request.respond(
            CreateTopicsResponse(topics=[found.get(name) or _may_not(name) for name in names])
        )

    if not wanted:
        on_done(CreateTopicsResponse())
        return
    services.controller.change(
        CreateTopicsRequest(
            topics=wanted, timeout_ms=body.timeout_ms, validate_only=body.validate_only
        ),
        on_done,
        None if body.validate_only else are_created,
        services.clock.monotonic_ms() + body.timeout_ms,
    )


def _admits_creation(
    services: BrokerServices, request: Request, topic: CreatableTopic, *, is_strict: bool
) -> bool:
    if topic.name in services.metadata.image.topics:
        return True  # the controller refuses it, whatever the quota
    count = len(topic.assignments) or topic.num_partitions
    count = services.config.num_partitions if count == -1 else max(count, 0)
    return services.quotas.admits_mutations(request, count, is_strict=is_strict)


def _creatable(services: BrokerServices, request: Request, names: Iterable[str]) -> Container[str]:
    """Return the topics that the client may create."""
    auth, operation = services.auth, AclOperation.CREATE
    names = set(names)
    if auth.authorize_cluster(request, operation, is_logged=False):
        return names
    return {name for name in names if auth.authorize_topic(request, operation, name)}


def _may_not(name: str) -> CreatableTopicResult:
    return _refused_topic(name, _UNAUTHORIZED, "Authorization failed.")


def _describe_created(
    services: BrokerServices, request: Request, result: CreatableTopicResult, topic: CreatableTopic
) -> None:
    """Add the settings of a created topic, if the client may know them."""
    if result.error_code != NONE:
        return
    kind, operation = ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS
    if services.auth.authorize(request, operation, kind, topic.name, is_logged=False):
        given = {config.name: config.value for config in topic.configs}
        result.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in services.configs.entries_with(services.metadata.image, given)
        ]
        return
    result.topic_config_error_code = _UNAUTHORIZED
    result.num_partitions = result.replication_factor = -1
    result.configs = None


def _refused_topic(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def failed_creation(body: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
    """Return the response that refuses a whole request."""
    return CreateTopicsResponse(
        topics=[_refused_topic(topic.name, code, None) for topic in body.topics]
    )


def _create_partitions(
    services: BrokerServices, request: Request, body: CreatePartitionsRequest
) -> None:
    """Add partitions to the topics that the client may alter."""
    names = list(dict.fromkeys(topic.name for topic in body.topics))
    alterable = {
        name for name in names if services.auth.authorize_topic(request, AclOperation.ALTER, name)
    }
    allowed = [topic for topic in body.topics if topic.name in alterable]
    is_strict = request.header.api_version >= _STRICT_PARTITIONS
    wanted = [
        topic for topic in allowed if _admits_growth(services, request, topic, is_strict=is_strict)
    ]
    throttled = {topic.name for topic in allowed} - {topic.name for topic in wanted}

    def on_done(outcome: CreatePartitionsResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            request.respond(failed_partitions(body, code_of(outcome)))
            return
        found = {result.name: result for result in outcome.results}
        found |= {
            name: CreatePartitionsTopicResult(
                name=name, error_code=_THROTTLED, error_message=_QUOTA_EXCEEDED
            )
            for name in throttled
        }
        results = [
            found.get(name)
            or CreatePartitionsTopicResult(
                name=name, error_code=_UNAUTHORIZED, error_message="Authorization failed."
            )
            for name in names
        ]
        request.respond(CreatePartitionsResponse(results=results))

    if not wanted:
        on_done(CreatePartitionsResponse())
        return
    services.controller.change(
        CreatePartitionsRequest(
            topics=wanted, timeout_ms=body.timeout_ms, validate_only=body.validate_only
        ),
        on_done,
        None if body.validate_only else partial(_have_partitions, wanted),
        services.clock.monotonic_ms() + body.timeout_ms,
    )


def _admits_growth(
    services: BrokerServices, request: Request, topic: CreatePartitionsTopic, *, is_strict: bool
) -> bool:
    present = services.metadata.image.topics.get(topic.name)
    added = 0 if present is None else topic.count - len(present.partitions)
    if added <= 0:
        return True  # the controller refuses it, whatever the quota
    return services.quotas.admits_mutations(request, added, is_strict=is_strict)


def _have_partitions(
    wanted: Sequence[CreatePartitionsTopic],
    response: CreatePartitionsResponse,
    image: MetadataImage,
) -> bool:
    added = {result.name for result in response.results if result.error_code == NONE}
    counts = {topic.name: topic.count for topic in wanted if topic.name in added}
    return all(
        len(image.topics[name].partitions) >= count
        for name, count in counts.items()
        if name in image.topics
    )


def failed_partitions(body: CreatePartitionsRequest, code: int) -> CreatePartitionsResponse:
    """Return the response that refuses a whole request."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in body.topics
        ]
    )


def _delete_topics(services: BrokerServices, request: Request, body: DeleteTopicsRequest) -> None:
    """Delete the topics that the client may delete."""
    topics = topics_to_delete(body)
    named = Counter((topic.name, topic.topic_id) for topic in topics)
    valid = [key for key, count in named.items() if naming_problem(key, count) is None]
    names = {key: _shown_name(services, request, key) for key in valid}
    refused = {
        key: DeletableTopicResult(
            name=name, topic_id=key[1], error_code=_UNAUTHORIZED, error_message=_NO_REASON
        )
        for key, name in names.items()
        if not _may_delete(services, request, key, name)
    }
    is_strict = request.header.api_version >= _STRICT_DELETION
    for key in valid:
        if key not in refused and not _admits_deletion(services, request, key, is_strict=is_strict):
            refused[key] = DeletableTopicResult(
                name=names[key],
                topic_id=key[1],
                error_code=_THROTTLED,
                error_message=_QUOTA_EXCEEDED,
            )
    wanted = [topic for topic in topics if (topic.name, topic.topic_id) not in refused]

    def on_done(outcome: DeleteTopicsResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            request.respond(failed_deletion(body, code_of(outcome)))
            return
        sent = [key for key in named if key not in refused]
        found = dict(zip(sent, outcome.responses, strict=True))
        for key, result in found.items():
            result.name = result.name or names.get(key)
        responses = [refused.get(key) or found[key] for key in named]
        request.respond(DeleteTopicsResponse(responses=responses))

    if not wanted:
        on_done(DeleteTopicsResponse())
        return
    services.controller.change(
        DeleteTopicsRequest(topics=wanted, timeout_ms=body.timeout_ms),
        on_done,
        _are_deleted,
        services.clock.monotonic_ms() + body.timeout_ms,
    )


def _admits_deletion(
    services: BrokerServices, request: Request, key: TopicKey, *, is_strict: bool
) -> bool:
    image = services.metadata.image
    name = image.topic_names.get(key[1]) if key[0] is None else key[0]
    topic = None if name is None else image.topics.get(name)
    if topic is None:
        return True  # the controller refuses it, whatever the quota
    return services.quotas.admits_mutations(request, len(topic.partitions), is_strict=is_strict)


def _are_deleted(response: DeleteTopicsResponse, image: MetadataImage) -> bool:
    return not any(
        result.error_code == NONE and result.topic_id in image.topic_names
        for result in response.responses
    )


def _shown_name(services: BrokerServices, request: Request, key: TopicKey) -> str | None:
    """Return the name of a topic to delete, or None if the client may not learn that of its id."""
    name, topic_id = key
    if name is not None:
        return name
    found = services.metadata.image.topic_names.get(topic_id)
    if found is None or not services.auth.authorize_topic(request, AclOperation.DESCRIBE, found):
        return None
    return found


def _may_delete(
    services: BrokerServices, request: Request, key: TopicKey, name: str | None
) -> bool:
    """Return whether the client may delete a topic; it may learn that an id is unknown."""
    if name is None:
        return key[1] not in services.metadata.image.topic_names
    return services.auth.authorize_topic(request, AclOperation.DELETE, name)


def failed_deletion(body: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
    """Return the response that refuses a whole request."""
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics_to_delete(body)
        ]
    )


APIS = (
    ServedApi(CreateTopicsRequest, _create_topics, failed_creation),
    ServedApi(CreatePartitionsRequest, _create_partitions, failed_partitions),
    ServedApi(DeleteTopicsRequest, _delete_topics, failed_deletion),
)
