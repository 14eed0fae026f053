"""`AdminClient`: administration of topics, groups and the cluster."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar, Unpack

from kclient.admin import cluster_calls, group_calls, topic_calls
from kclient.admin.admin_core import ADMIN_CONFIG, AdminCall, AdminCore, AdminOptions
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
    check_partition,
    check_states,
    check_total_counts,
)
from kclient.common.arguments import check_timeout
from kclient.common.config_def import merged
from kclient.common.errors import (
    ClosedError,
    ForkedClientError,
)
from kclient.common.event_loop import refuse_in_event_loop
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import NewTopic, OffsetAndMetadata, TopicPartition, check_topic_name
from kclient.common.waiting import run_steps
from kclient.network.system_runtime import system_runtime

T = TypeVar("T")


class AdminClient(ProcessBound):
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

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        runtime = runtime if runtime is not None else system_runtime()
        self._clock, self._tasks = runtime.clock, runtime.tasks
        self._process_id = self._tasks.process_id()
        self._core = AdminCore(ADMIN_CONFIG.parse(merged(config, options)), runtime)

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
        self, names: str | Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TopicDescription]:
        """Describe topics by name.

        Raises:
            UnknownTopicOrPartitionError: There is no such topic.
        """
        checked = [check_topic_name(name) for name in check_list("names", names, str)]
        return self._call(
            "describe_topics",
            timeout,
            lambda requester, end: topic_calls.describe_topics(requester, checked, end),
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

    def describe_cluster(self, *, timeout: float | None = None) -> ClusterDescription:
        """Return the id, the controller and the brokers of the cluster."""
        return self._call(
            "describe_cluster",
            timeout,
            cluster_calls.describe_cluster,
        )

    def describe_topic_configs(
        self, topic: str, *, timeout: float | None = None
    ) -> dict[str, ConfigEntry]:
        """Return a topic's configuration by dotted name."""
        check_topic_name(topic)
        return self._call(
            "describe_topic_configs",
            timeout,
            lambda requester, end: cluster_calls.describe_configs(
                requester, cluster_calls.TOPIC, topic, end
            ),
        )

    def describe_broker_configs(
        self, broker_id: int, *, timeout: float | None = None
    ) -> dict[str, ConfigEntry]:
        """Return a broker's configuration by dotted name."""
        check_int("broker_id", broker_id, 0)
        return self._call(
            "describe_broker_configs",
            timeout,
            lambda requester, end: cluster_calls.describe_configs(
                requester, cluster_calls.BROKER, str(broker_id), end
            ),
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
            wanted = check_list("partitions", partitions, TopicPartition)
            for partition in wanted:
                check_partition(partition)
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

    # -- lifecycle ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every connection, after the call that runs, if any; idempotent."""
        if self._is_foreign():
            self._core.abandon()
            return
        with deferred_signals():
            self._core.close()

    def __enter__(self) -> Self:
        """Return the client; the end of the block closes it.

        Raises:
            ClosedError: The client is closed.
        """
        if self._core.is_closed:
            raise ClosedError("admin client: closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit modules may be gone, hence the argument `warn`.
        core: AdminCore | None = getattr(self, "_core", None)
        if core is None or core.is_closed or self._is_foreign():
            return
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def _call(self, name: str, timeout: float | None, call: AdminCall[T]) -> T:
        timeout_ms = check_timeout(timeout, default_ms=self._core.timeout_ms)
        if self._is_foreign():
            raise ForkedClientError(
                f"admin client: created in process {self._process_id}; create a new one after fork"
            )
        refuse_in_event_loop(name, f"admin.{name}, …")
        return run_steps(self._core.call(call, timeout_ms), self._clock)

    def _is_foreign(self) -> bool:
        """Return whether this process was forked from the one that created the client."""
        return self._tasks.process_id() != self._process_id
