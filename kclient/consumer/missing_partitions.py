"""Errors of topics and partitions that cannot be used, by the cluster metadata.

A topic or partition that does not exist may still be under creation, so Kafka's consumer retries
until the timeout of the call. Here a call fails as soon as the metadata has confirmed it.
"""

from collections.abc import Iterable

from kclient.client.metadata import Metadata
from kclient.common.broker_errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.consumer.subscription_state import SubscriptionState

# A topic that was just created is known to every broker by then.
_CREATION_MS = 2_000.0
_LOG_INTERVAL_MS = 60_000.0


def topic_problem(metadata: Metadata, topic: str) -> KafkaError | None:
    """Return the error that the metadata reports for a topic; None if it reports none."""
    error = metadata.topic_error(topic)
    if isinstance(error, UnknownTopicOrPartitionError):
        return _missing(topic, f"topic {topic} does not exist")
    return None if error is None else type(error)(f"{topic}: {error}")


def partition_problem(metadata: Metadata, partition: TopicPartition) -> KafkaError | None:
    """Return why a partition has no leader; None if it has one, or was never described."""
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

    A partition number that is too high is confirmed by one response received after the call began;
    a missing topic by responses over two seconds, since it may have been created just before.
    """

    def __init__(self, metadata: Metadata, partitions: Iterable[TopicPartition]) -> None:
        """Begin a call.

        Args:
            metadata: What is known of the cluster.
            partitions: Partitions of the call; metadata requests must include their topics.
        """
        self._metadata = metadata
        self._partitions = tuple(partitions)
        self._version = metadata.update_version()
        self._missing_since: dict[str, float] = {}

    def raise_missing(self, now_ms: float) -> None:
        """Raise if a partition is known not to exist.

        Args:
            now_ms: The time now.

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
    """Logs topics and partitions to read that do not exist.

    Each is logged once as a warning, again every minute while it lasts, and when it is over.
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
        self._next_ms: dict[str, float] = {}
        self._seen: tuple[object, ...] = ()
        self._next_look_ms = 0.0

    def step(self, now_ms: float) -> None:
        """Log what is due."""
        subscriptions = self._subscriptions
        seen = (self._metadata.cluster(), subscriptions.version, subscriptions.topics)
        if seen == self._seen and now_ms < self._next_look_ms:
            return
        self._seen = seen
        self._next_look_ms = now_ms + _LOG_INTERVAL_MS
        problems = self._problems()
        for name in [name for name in self._next_ms if name not in problems]:
            del self._next_ms[name]
            if self._is_wanted(name):
                self._log.info("%s exists now", name)
        for name, problem in problems.items():
            if now_ms >= self._next_ms.get(name, 0.0):
                self._next_ms[name] = now_ms + _LOG_INTERVAL_MS
                self._log.warning("%s", problem)

    def _problems(self) -> dict[str, KafkaError]:
        found: dict[str, KafkaError | None]
        if self._subscriptions.is_group_managed():
            found = {
                topic: topic_problem(self._metadata, topic)
                for topic in sorted(self._subscriptions.topics)
            }
        else:
            found = {
                str(partition): partition_problem(self._metadata, partition)
                for partition in self._subscriptions.assigned
            }
        return {
            name: problem
            for name, problem in found.items()
            if problem is not None and not isinstance(problem, LeaderNotAvailableError)
        }

    def _is_wanted(self, name: str) -> bool:
        if self._subscriptions.is_group_managed():
            return name in self._subscriptions.topics
        return any(str(partition) == name for partition in self._subscriptions.assigned)


def _missing(what: str, why: str) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"{what}: {UnknownTopicOrPartitionError.error_name}: {why}")
