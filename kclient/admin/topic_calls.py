"""Admin calls for topics and partitions."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    CreatedTopic,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
)
from kclient.admin.arguments import (
    check_int,
    check_list,
    check_new_topic,
    check_topic_ids,
    check_topic_names,
    check_total_counts,
)
from kclient.admin.new_topic import NewTopic
from kclient.admin.refused_changes import send_until_accepted
from kclient.admin.requester import Requester, item_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError, KafkaError, ProtocolError
from kclient.common.uuids import ZERO_UUID, uuid_to_text
from kclient.common.waiting import Steps
from kclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    DescribeTopicPartitionsTopicRequest,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kclient.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DEFAULT_PAGE_SIZE = 2_000
"""Maximum number of partitions of a response."""

_DELETES_IDS = 6
_DESCRIBES_IDS = 12


def create_topics(
    requester: Requester,
    topics: NewTopic | Iterable[NewTopic],
    *,
    validate_only: bool = False,
    retry_on_quota_violation: bool = True,
    timeout: float | None = None,
) -> Steps[Results[str, CreatedTopic]]:
    """Create topics; with `validate_only`, only check whether they could be created.

    Args:
        topics: Topics to create.
        validate_only: Whether to check only.
        retry_on_quota_violation: Whether to try again, until the timeout, to create the topics
            that ``controller_mutation_rate`` refuses (KIP-599).
        timeout: Timeout in seconds.

    Returns:
        Result or error by name.

    Raises:
        TopicExistsError: A topic of that name exists; the error of this topic.
        ThrottlingQuotaExceededError: The quota refused the topic; the error of this topic.
        InvalidArgumentError: A name or a count is illegal.
        KafkaTimeoutError: The timeout expired.
    """
    wanted = check_list("topics", topics, NewTopic)
    for topic in wanted:
        check_new_topic(topic)
    creatable = [_creatable(topic) for topic in wanted]
    requester.limit(timeout)
    # Version 4 is the first that accepts -1, the broker's default, as a count.
    defaults = any(t.num_partitions == -1 and not t.replica_assignments for t in wanted)

    def read(response: CreateTopicsResponse) -> Outcomes[str, CreatedTopic]:
        return {topic.name: _created(topic) for topic in response.topics}

    def send(names: list[str]) -> Steps[Outcomes[str, CreatedTopic]]:
        asked = set(names)
        request = CreateTopicsRequest(
            topics=[topic for topic in creatable if topic.name in asked],
            timeout_ms=requester.remaining_ms(),
            validate_only=validate_only,
        )
        builder = SimpleBuilder(request, oldest=4 if defaults else None)
        return requester.send_to_controller(builder, CreateTopicsResponse, read)

    steps = send_until_accepted(
        requester,
        "create_topics",
        dict.fromkeys(topic.name for topic in wanted),
        send,
        retries_quota=retry_on_quota_violation,
    )
    return raising_if_single(steps, topics, NewTopic)


def _created(topic: CreatableTopicResult) -> CreatedTopic | KafkaError:
    error = item_error(f"topic {topic.name!r}", topic.error_code, topic.error_message)
    return error or CreatedTopic(
        topic.name, _id_text(topic.topic_id), topic.num_partitions, topic.replication_factor
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignments = topic.replica_assignments or {}
    if assignments and (topic.num_partitions != -1 or topic.replication_factor != -1):
        raise InvalidArgumentError(
            f"topic {topic.name!r}: got replica_assignments and counts, expected one of them"
        )
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in assignments.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value)
            for name, value in (topic.configs or {}).items()
        ],
    )


def delete_topics(
    requester: Requester,
    names: str | Iterable[str] | None = None,
    *,
    topic_ids: str | Iterable[str] | None = None,
    retry_on_quota_violation: bool = True,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Delete topics with all their records, by name or by id.

    An id never names a topic that was created again under the same name (KIP-516).

    Args:
        names: Names of the topics.
        topic_ids: Ids of the topics, instead of names.
        retry_on_quota_violation: Whether to try again, until the timeout, to delete the topics
            that ``controller_mutation_rate`` refuses (KIP-599).
        timeout: Timeout in seconds.

    Returns:
        None or error by name, or by id.

    Raises:
        UnknownTopicOrPartitionError: There is no topic of this name; the error of this topic.
        UnknownTopicIdError: There is no topic of this id; the error of this topic.
        ThrottlingQuotaExceededError: The quota refused the topic; the error of this topic.
        UnsupportedVersionError: The broker has no topic ids (Kafka 2.8).
    """
    retry = retry_on_quota_violation
    if names is None or topic_ids is not None:
        ids = check_topic_ids(names, topic_ids)
        requester.limit(timeout)
        return raising_if_single(_delete_ids(requester, ids, retry=retry), topic_ids, str)
    checked = check_topic_names(names)
    requester.limit(timeout)
    return raising_if_single(_delete_names(requester, checked, retry=retry), names, str)


def _delete_names(
    requester: Requester, names: Sequence[str], *, retry: bool
) -> Steps[Results[str, None]]:
    def read(response: DeleteTopicsResponse) -> Outcomes[str, None]:
        return {
            topic.name or "": item_error(
                f"topic {topic.name or ''!r}", topic.error_code, topic.error_message
            )
            for topic in response.responses
        }

    def send(wanted: list[str]) -> Steps[Outcomes[str, None]]:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted],
            topic_names=wanted,
            timeout_ms=requester.remaining_ms(),
        )
        return requester.send_to_controller(_DeleteTopics(request), DeleteTopicsResponse, read)

    return send_until_accepted(requester, "delete_topics", names, send, retries_quota=retry)


def _delete_ids(
    requester: Requester, ids: Mapping[str, bytes], *, retry: bool
) -> Steps[Results[str, None]]:
    def read(response: DeleteTopicsResponse) -> Outcomes[str, None]:
        outcomes: Outcomes[str, None] = {}
        for topic in response.responses:
            text = uuid_to_text(topic.topic_id)
            outcomes[text] = item_error(f"topic id {text!r}", topic.error_code, topic.error_message)
        return outcomes

    def send(wanted: list[str]) -> Steps[Outcomes[str, None]]:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=None, topic_id=ids[text]) for text in wanted],
            timeout_ms=requester.remaining_ms(),
        )
        builder = SimpleBuilder(request, oldest=_DELETES_IDS)
        return requester.send_to_controller(builder, DeleteTopicsResponse, read)

    return send_until_accepted(requester, "delete_topics", ids, send, retries_quota=retry)


class _DeleteTopics(SimpleBuilder):
    """Builder of a DeleteTopics request, whose names moved to another list in version 6."""

    def build(self, version: int) -> DeleteTopicsRequest:
        request = self.request
        assert isinstance(request, DeleteTopicsRequest)  # noqa: S101 (narrows for the type checker)
        if version >= 6:
            return DeleteTopicsRequest(topics=request.topics, timeout_ms=request.timeout_ms)
        return DeleteTopicsRequest(topic_names=request.topic_names, timeout_ms=request.timeout_ms)


def list_topics(
    requester: Requester, *, include_internal: bool = False, timeout: float | None = None
) -> Steps[list[TopicListing]]:
    """List the topics."""
    requester.limit(timeout)

    def read(response: MetadataResponse) -> list[TopicListing]:
        return [
            TopicListing(topic.name or "", _id_text(topic.topic_id), topic.is_internal)
            for topic in response.topics
            if include_internal or not topic.is_internal
        ]

    builder = _metadata_request(None)
    return requester.send_to_least_loaded(builder, MetadataResponse, read)


def describe_topics(
    requester: Requester,
    names: str | Iterable[str] | None = None,
    *,
    topic_ids: str | Iterable[str] | None = None,
    partition_size_limit_per_response: int = DEFAULT_PAGE_SIZE,
    timeout: float | None = None,
) -> Steps[Results[str, TopicDescription]]:
    """Describe topics by name, through DescribeTopicPartitions where the broker has it, or by id.

    Args:
        names: Names of the topics.
        topic_ids: Ids of the topics, instead of names (KIP-516).
        partition_size_limit_per_response: Most partitions of a response (KIP-966).
        timeout: Timeout in seconds.

    Returns:
        Description or error by name, or by id.

    Raises:
        UnknownTopicOrPartitionError: There is no topic of this name; the error of this topic.
        UnknownTopicIdError: There is no topic of this id; the error of this topic.
        UnsupportedVersionError: The broker does not describe topics by id (Kafka 3.1).
    """
    page_size = partition_size_limit_per_response
    check_int("partition_size_limit_per_response", page_size, 1)
    if names is None or topic_ids is not None:
        ids = check_topic_ids(names, topic_ids)
        requester.limit(timeout)
        return raising_if_single(_describe_ids(requester, ids), topic_ids, str)
    checked = check_topic_names(names)
    requester.limit(timeout)
    return raising_if_single(_describe(requester, checked, page_size), names, str)


def _describe(
    requester: Requester, names: Sequence[str], page_size: int
) -> Steps[Results[str, TopicDescription]]:
    try:
        outcomes = yield from _describe_in_pages(requester, names, page_size)
    except UnsupportedVersionError:
        outcomes = yield from _describe_at_once(requester, names)
    return Results("describe_topics", outcomes, names)


def _describe_in_pages(
    requester: Requester, names: Sequence[str], page_size: int
) -> Steps[Outcomes[str, TopicDescription]]:
    outcomes: Outcomes[str, TopicDescription] = {}
    cursor: Cursor | None = None
    wanted = sorted(set(names))
    while wanted:
        response = yield from _page(requester, wanted, page_size, cursor)
        for topic in response.topics:
            name = topic.name or ""
            error = item_error(f"topic {name!r}", topic.error_code, None)
            known = outcomes.get(name)
            known_partitions = known.partitions if isinstance(known, TopicDescription) else ()
            outcomes[name] = error or _described(topic, known_partitions)
        following = response.next_cursor
        if following is None:
            break
        cursor = _checked_cursor(cursor, following)
        wanted = [name for name in wanted if name >= cursor.topic_name]
    return outcomes


def _page(
    requester: Requester,
    names: Sequence[str],
    page_size: int,
    cursor: Cursor | None,
) -> Steps[DescribeTopicPartitionsResponse]:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsTopicRequest(name=name) for name in names],
        response_partition_limit=page_size,
        cursor=cursor,
    )

    def read(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        return response

    return requester.send_to_least_loaded(
        SimpleBuilder(request), DescribeTopicPartitionsResponse, read
    )


def _checked_cursor(cursor: Cursor | None, following: Cursor) -> Cursor:
    """Return the cursor of the next page, which must be beyond the present one."""
    if cursor is not None:
        old = cursor.topic_name, cursor.partition_index
        if (following.topic_name, following.partition_index) <= old:
            raise ProtocolError(f"DescribeTopicPartitions: the cursor did not advance from {old}")
    return following


def _described(
    topic: DescribeTopicPartitionsResponseTopic, known: tuple[TopicPartitionInfo, ...]
) -> TopicDescription:
    return TopicDescription(
        name=topic.name or "",
        topic_id=_id_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=known
        + tuple(
            TopicPartitionInfo(
                partition=partition.partition_index,
                leader=partition.leader_id if partition.leader_id >= 0 else None,
                replicas=tuple(partition.replica_nodes),
                isr=tuple(partition.isr_nodes),
                elr=_ids(partition.eligible_leader_replicas),
                last_known_elr=_ids(partition.last_known_elr),
            )
            for partition in topic.partitions
        ),
    )


def _ids(listed: list[int] | None) -> tuple[int, ...] | None:
    return None if listed is None else tuple(listed)


def _describe_at_once(
    requester: Requester, names: Sequence[str]
) -> Steps[Outcomes[str, TopicDescription]]:
    """Describe topics at a broker without pages."""

    def read(response: MetadataResponse) -> Outcomes[str, TopicDescription]:
        return {
            topic.name or "": item_error(f"topic {topic.name or ''!r}", topic.error_code, None)
            or _description(topic)
            for topic in response.topics
        }

    return requester.send_to_least_loaded(_metadata_request(names), MetadataResponse, read)


def _describe_ids(
    requester: Requester, ids: Mapping[str, bytes]
) -> Steps[Results[str, TopicDescription]]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=each, name=None) for each in ids.values()],
        allow_auto_topic_creation=False,
    )

    def read(response: MetadataResponse) -> Results[str, TopicDescription]:
        outcomes: Outcomes[str, TopicDescription] = {}
        for topic in response.topics:
            text = uuid_to_text(topic.topic_id)
            error = item_error(f"topic id {text!r}", topic.error_code, None)
            outcomes[text] = error or _description(topic)
        return Results("describe_topics", outcomes, ids)

    builder = SimpleBuilder(request, oldest=_DESCRIBES_IDS)
    return requester.send_to_least_loaded(builder, MetadataResponse, read)


def _metadata_request(names: Sequence[str] | None) -> SimpleBuilder:
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    # Version 4 is the first that can prevent the creation of missing topics.
    return SimpleBuilder(MetadataRequest(topics=topics, allow_auto_topic_creation=False), oldest=4)


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        name=topic.name or "",
        topic_id=_id_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(
            TopicPartitionInfo(
                partition=partition.partition_index,
                leader=partition.leader_id if partition.leader_id >= 0 else None,
                replicas=tuple(partition.replica_nodes),
                isr=tuple(partition.isr_nodes),
            )
            for partition in partitions
        ),
    )


def create_partitions(
    requester: Requester,
    total_counts: Mapping[str, int],
    *,
    validate_only: bool = False,
    retry_on_quota_violation: bool = True,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Increase the partition counts of topics to the given totals.

    Args:
        total_counts: Total number of partitions by topic.
        validate_only: Whether to check only whether the counts could be increased.
        retry_on_quota_violation: Whether to try again, until the timeout, to increase the counts
            that ``controller_mutation_rate`` refuses (KIP-599).
        timeout: Timeout in seconds.

    Returns:
        None or error by name.

    Raises:
        InvalidPartitionsError: A total is not larger than the current count; the error of this
            topic.
        ThrottlingQuotaExceededError: The quota refused the topic; the error of this topic.
    """
    check_total_counts(total_counts)
    requester.limit(timeout)

    def read(response: CreatePartitionsResponse) -> Outcomes[str, None]:
        return {
            result.name: item_error(
                f"topic {result.name!r}", result.error_code, result.error_message
            )
            for result in response.results
        }

    def send(names: list[str]) -> Steps[Outcomes[str, None]]:
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=name, count=total_counts[name], assignments=None)
                for name in names
            ],
            timeout_ms=requester.remaining_ms(),
            validate_only=validate_only,
        )
        return requester.send_to_controller(SimpleBuilder(request), CreatePartitionsResponse, read)

    return send_until_accepted(
        requester, "create_partitions", total_counts, send, retries_quota=retry_on_quota_violation
    )


def _id_text(topic_id: bytes) -> str | None:
    return None if topic_id == ZERO_UUID else uuid_to_text(topic_id)
