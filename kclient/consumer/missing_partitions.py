"""Detection of topics and partitions that do not exist, from the cluster metadata.

A missing topic or partition may be about to be created, so Kafka's consumer retries until the call
times out. Here a call fails as soon as the metadata has confirmed that it does not exist.
"""

from collections.abc import Iterable, Sequence

from kclient.client.metadata import Metadata
from kclient.common.broker_errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.consumer.subscription_state import SubscriptionState

# Time after which a new topic is known to every broker.
_CREATION_MS = 2_000.0
_LOG_INTERVAL_MS = 60_000.0
_MOST_NAMES = 10


def shortened(names: Sequence[object]) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(map(str, names[:_MOST_NAMES]))
    others = len(names) - _MOST_NAMES
    return f"{shown} and {others} more" if others > 0 else shown


def topic_problem(metadata: Metadata, topic: str) -> KafkaError | None:
    """Return the error that the metadata reports for a topic; None if it reports none."""
    error = metadata.topic_error(topic)
    if isinstance(error, UnknownTopicOrPartitionError):
        return _missing(topic, f"topic {topic} does not exist")
    return None if error is None else type(error)(f"{topic}: {error}")


def partition_problem(metadata: Metadata, partition: TopicPartition) -> KafkaError | None:
    """Return the error of a partition without leader; None if it has one or is not known yet."""
    topic, cluster = partition.topic, metadata.cluster()
    count = cluster.partition_count(topic)
    if count is None:
        error = topic_problem(metadata, topic)
        missing = isinstance(error, UnknownTopicOrPartitionError)
        return _missing(str(partition), f"topic {topic} does not exist") if missing else error
    if partition.partition >= count:
        partitions = "1 partition" if count == 1 else f"{count} partitions"
        return _missing(str(partition), f"topic {topic} has {partitions}")
    if cluster.leader_for(partition) is None:
        name = LeaderNotAvailableError.error_name
        return LeaderNotAvailableError(f"{partition}: {name}: the partition has no leader")
    return None


class ExistenceCheck:
    """Confirms for one call that partitions do not exist.

    One metadata response received during the call confirms that a partition number is too high.
    A missing topic needs responses over two seconds, since it may have just been created.
    """

    def __init__(self, metadata: Metadata, partitions: Iterable[TopicPartition]) -> None:
        """Start the check of a call.

        Args:
            metadata: Cluster metadata.
            partitions: Partitions of the call; metadata requests must include their topics.
        """
        self._metadata = metadata
        self._partitions = tuple(partitions)
        self._version = metadata.update_version()
        self._missing_since: dict[str, float] = {}

    def raise_missing(self, now_ms: float) -> None:
        """Raise if it is confirmed that a partition does not exist.

        Raises:
            UnknownTopicOrPartitionError: The metadata has confirmed it.
        """
        if self._metadata.update_version() <= self._version:
            return
        for partition in self._partitions:
            problem = partition_problem(self._metadata, partition)
            if not isinstance(problem, UnknownTopicOrPartitionError):
                self._missing_since.pop(partition.topic, None)
                continue
            since_ms = self._missing_since.setdefault(partition.topic, now_ms)
            topic_exists = self._metadata.cluster().partition_count(partition.topic) is not None
            if topic_exists or now_ms >= since_ms + _CREATION_MS:
                raise problem


class MissingPartitionsLog:
    """Logs subscribed topics and assigned partitions that do not exist.

    Each is logged as a warning once and then every minute, and once when it exists; those found at
    the same time in one line.
    """

    def __init__(
        self,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._log = log_context.logger(__name__)
        self._next_ms: dict[str | TopicPartition, float] = {}
        self._seen: tuple[object, ...] = ()
        self._next_look_ms = 0.0

    def step(self, now_ms: float) -> None:
        """Log missing partitions if the metadata has changed or a minute has passed."""
        subscriptions = self._subscriptions
        seen = (self._metadata.cluster(), subscriptions.version, subscriptions.topics)
        if seen == self._seen and now_ms < self._next_look_ms:
            return
        self._seen = seen
        self._next_look_ms = now_ms + _LOG_INTERVAL_MS
        problems = self._problems()
        gone = [name for name in self._next_ms if name not in problems]
        for name in gone:
            del self._next_ms[name]
        created = [name for name in gone if self._is_wanted(name)]
        if created:
            self._log.info(
                "%s %s now", shortened(created), "exists" if len(created) == 1 else "exist"
            )
        due: dict[type[KafkaError], list[str | TopicPartition]] = {}
        for name, problem in problems.items():
            if now_ms >= self._next_ms.get(name, 0.0):
                self._next_ms[name] = now_ms + _LOG_INTERVAL_MS
                due.setdefault(type(problem), []).append(name)
        for kind, names in due.items():
            if len(names) == 1:
                self._log.warning("%s", problems[names[0]])
            else:
                shown = shortened(names)
                self._log.warning("%d missing: %s: %s", len(names), kind.error_name, shown)

    def _problems(self) -> dict[str | TopicPartition, KafkaError]:
        found: dict[str | TopicPartition, KafkaError | None]
        if self._subscriptions.is_group_managed():
            found = {
                topic: topic_problem(self._metadata, topic)
                for topic in sorted(self._subscriptions.topics)
            }
        else:
            found = {
                partition: partition_problem(self._metadata, partition)
                for partition in self._subscriptions.assigned
            }
        return {
            name: problem
            for name, problem in found.items()
            if problem is not None and not isinstance(problem, LeaderNotAvailableError)
        }

    def _is_wanted(self, name: str | TopicPartition) -> bool:
        if isinstance(name, TopicPartition):
            return name in self._subscriptions.assigned
        return self._subscriptions.is_group_managed() and name in self._subscriptions.topics


def _missing(what: str, why: str) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"{what}: {UnknownTopicOrPartitionError.error_name}: {why}")
