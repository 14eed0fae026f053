"""`AdminClient`: administration of topics, groups and the cluster."""

from collections.abc import Iterable, Mapping

from kclient.admin import cluster_calls, group_calls, topic_calls
from kclient.admin.admin_types import (
    ClusterDescription,
    ConfigEntry,
    ConsumerGroupDescription,
    CreatedTopic,
    GroupListing,
    TopicDescription,
    TopicListing,
)
from kclient.admin.arguments import (
    check_group_id,
    check_int,
    check_list,
    check_new_topic,
    check_partitions,
    check_states,
    check_total_counts,
)
from kclient.admin.cluster_arguments import check_broker_ids
from kclient.admin.security_methods import SecurityMethods
from kclient.common.types import NewTopic, OffsetAndMetadata, TopicPartition, check_topic_name


class AdminClient(SecurityMethods):
    """Administers a cluster (Kafka: Admin).

    A call blocks until it has its result or its timeout (seconds; by default
    ``default.api.timeout.ms``) expires. Retriable errors are retried until then. With a timeout of
    0 it sends its first request and raises `KafkaTimeoutError`. A call for several items raises
    the error of the first that failed, with a note for each other one. A parameter that takes a
    list also takes a single item. Threads may share the client; their calls run one after the
    other. Inside a running event loop every call but `close` raises `EventLoopError`.

    Args:
        config: Options by dotted name, as an alternative to keywords.
        runtime: Clock, sockets and threads to use; by default the system's.
        **options: Options by keyword, such as ``bootstrap_servers="localhost:9092"``.

    Raises:
        ConfigError: An option is unknown or has a value of the wrong form.
    """

    # -- topics ----------------------------------------------------------------------------

    def create_topics(
        self,
        topics: NewTopic | Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics; with `validate_only`, only check whether they could be created.

        Raises:
            TopicExistsError: A topic of that name exists.
            InvalidArgumentError: A name or a count is illegal.
            KafkaTimeoutError: The timeout expired.
        """
        wanted = check_list("topics", topics, NewTopic)
        for topic in wanted:
            check_new_topic(topic)
        return self._call(
            "create_topics",
            timeout,
            lambda requester, end: topic_calls.create_topics(
                requester, wanted, end, validate_only=validate_only
            ),
        )

    def delete_topics(self, names: str | Iterable[str], *, timeout: float | None = None) -> None:
        """Delete topics with all their records.

        Raises:
            UnknownTopicOrPartitionError: There is no such topic.
        """
        checked = [check_topic_name(name) for name in check_list("names", names, str)]
        self._call(
            "delete_topics",
            timeout,
            lambda requester, end: topic_calls.delete_topics(requester, checked, end),
        )

    def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> list[TopicListing]:
        """List the topics."""
        return self._call(
            "list_topics",
            timeout,
            lambda requester, end: topic_calls.list_topics(
                requester, end, include_internal=include_internal
            ),
        )

    def describe_topics(
        self,
        names: str | Iterable[str],
        *,
        partition_size_limit_per_response: int = topic_calls.DEFAULT_PAGE_SIZE,
        timeout: float | None = None,
    ) -> dict[str, TopicDescription]:
        """Describe topics by name, through DescribeTopicPartitions where the broker has it.

        Args:
            names: Names of the topics.
            partition_size_limit_per_response: Most partitions of a response (KIP-966).
            timeout: Timeout in seconds.

        Raises:
            UnknownTopicOrPartitionError: There is no such topic.
        """
        checked = [check_topic_name(name) for name in check_list("names", names, str)]
        page_size = partition_size_limit_per_response
        check_int("partition_size_limit_per_response", page_size, 1)
        return self._call(
            "describe_topics",
            timeout,
            lambda requester, end: topic_calls.describe_topics(
                requester, checked, end, page_size=page_size
            ),
        )

    def create_partitions(
        self,
        total_counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Increase the partition counts of topics to the given totals.

        Raises:
            InvalidPartitionsError: A total is not larger than the current count.
        """
        check_total_counts(total_counts)
        self._call(
            "create_partitions",
            timeout,
            lambda requester, end: topic_calls.create_partitions(
                requester, total_counts, end, validate_only=validate_only
            ),
        )

    # -- cluster ---------------------------------------------------------------------------

    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Return the id, the controller and the brokers of the cluster (KIP-700).

        Args:
            include_fenced_brokers: Whether to include brokers that are fenced (KIP-1073).
            timeout: Timeout in seconds.

        Raises:
            UnsupportedVersionError: The broker does not report fenced brokers.
        """
        return self._call(
            "describe_cluster",
            timeout,
            lambda requester, end: cluster_calls.describe_cluster(
                requester, end, include_fenced_brokers=include_fenced_brokers
            ),
        )

    def describe_topic_configs(
        self, names: str | Iterable[str], *, timeout: float | None = None
    ) -> dict[str, dict[str, ConfigEntry]]:
        """Return the configurations of topics, by topic and dotted name (DescribeConfigs).

        Raises:
            UnknownTopicOrPartitionError: There is no such topic.
        """
        checked = [check_topic_name(name) for name in check_list("names", names, str)]
        return self._call(
            "describe_topic_configs",
            timeout,
            lambda requester, end: cluster_calls.describe_topic_configs(requester, checked, end),
        )

    def describe_broker_configs(
        self, broker_ids: int | Iterable[int], *, timeout: float | None = None
    ) -> dict[int, dict[str, ConfigEntry]]:
        """Return the configurations of brokers, by broker id and dotted name (DescribeConfigs).

        Raises:
            InvalidRequestError: There is no such broker.
        """
        wanted = check_broker_ids(broker_ids)
        return self._call(
            "describe_broker_configs",
            timeout,
            lambda requester, end: cluster_calls.describe_broker_configs(requester, wanted, end),
        )

    # -- groups ----------------------------------------------------------------------------

    def list_groups(
        self, *, states: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """List the groups, all of them or those in the given states, such as "Stable"."""
        wanted = check_states(states)
        return self._call(
            "list_groups",
            timeout,
            lambda requester, end: group_calls.list_groups(requester, wanted, end),
        )

    def describe_consumer_groups(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> dict[str, ConsumerGroupDescription]:
        """Describe groups by name; a group that does not exist is in state "Dead".

        Raises:
            UnsupportedVersionError: A group is not of type "classic", see `list_groups`.
        """
        wanted = [check_group_id(group_id) for group_id in check_list("group_ids", group_ids, str)]
        return self._call(
            "describe_consumer_groups",
            timeout,
            lambda requester, end: group_calls.describe_groups(requester, wanted, end),
        )

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: TopicPartition | Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets, for all partitions or for the given ones.

        Partitions without a committed offset are omitted.
        """
        check_group_id(group_id)
        wanted = None
        if partitions is not None:
            wanted = check_partitions(partitions)
        return self._call(
            "list_consumer_group_offsets",
            timeout,
            lambda requester, end: group_calls.list_offsets(requester, group_id, wanted, end),
        )

    def delete_consumer_groups(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Delete groups with their committed offsets.

        Raises:
            GroupNotEmptyError: A group has members.
            GroupIdNotFoundError: There is no such group.
        """
        wanted = [check_group_id(group_id) for group_id in check_list("group_ids", group_ids, str)]
        self._call(
            "delete_consumer_groups",
            timeout,
            lambda requester, end: group_calls.delete_groups(requester, wanted, end),
        )

    def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: TopicPartition | Iterable[TopicPartition],
        *,
        timeout: float | None = None,
    ) -> None:
        """Delete a group's committed offsets of partitions (OffsetDelete, KIP-496).

        Raises:
            GroupSubscribedToTopicError: A member of the group is subscribed to a topic.
            GroupIdNotFoundError: There is no such group.
        """
        check_group_id(group_id)
        wanted = check_partitions(partitions)
        self._call(
            "delete_consumer_group_offsets",
            timeout,
            lambda requester, end: group_calls.delete_offsets(requester, group_id, wanted, end),
        )
