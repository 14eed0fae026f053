"""Conversion of metadata responses into snapshots; leader epochs never decrease."""

from collections.abc import Callable

from kclient.client.metadata_snapshot import (
    NO_LEADER,
    UNKNOWN_EPOCH,
    MetadataSnapshot,
    PartitionMetadata,
    TopicMetadata,
)
from kclient.common.broker_errors import (
    NONE,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    code_of,
    error_for_code,
)
from kclient.common.log_context import LogContext
from kclient.common.types import Node, TopicPartition
from kclient.common.uuids import ZERO_UUID, uuid_to_text
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class LastSeenEpochs:
    """Lower bounds of the leader epochs of metadata (Kafka: Metadata.lastSeenLeaderEpochs).

    A topic that is deleted and created again starts at epoch 0 with another id. The id is kept as
    long as the epochs: metadata discards a topic that a broker reports as missing, and a topic of
    that name that is created later must still be recognized as another one.

    Not thread-safe: `Metadata` calls it under its own lock.
    """

    def __init__(self) -> None:
        self._topic_ids: dict[str, bytes] = {}
        self._missing: set[str] = set()  # topics without ids that were reported as missing
        self._epochs: dict[str, dict[int, int]] = {}

    def get(self, partition: TopicPartition) -> int:
        """Return the last seen epoch of a partition, or -1."""
        return self._epochs.get(partition.topic, {}).get(partition.partition, UNKNOWN_EPOCH)

    def put(self, partition: TopicPartition, epoch: int) -> None:
        """Set the last seen epoch of a partition."""
        self._epochs.setdefault(partition.topic, {})[partition.partition] = epoch

    def missing(self, topic: str) -> None:
        """Record that a broker reported a topic as missing."""
        if topic in self._epochs and topic not in self._topic_ids:
            self._missing.add(topic)

    def described(self, topic: str, topic_id: bytes | None) -> bool:
        """Set a topic's id; discard its epochs if they belong to a deleted topic.

        Brokers before 2.8 return no id. With them, a topic that was missing counts as recreated:
        epochs kept by mistake would leave it without a leader, whereas an old leader, reported by a
        broker that lags, refuses the next request.

        Returns:
            Whether epochs were discarded.
        """
        known_id = self._topic_ids.get(topic)
        was_missing = topic in self._missing
        self._missing.discard(topic)
        if topic_id is not None:
            self._topic_ids[topic] = topic_id
        recreated = topic_id not in (None, known_id) if known_id is not None else was_missing
        return recreated and self._epochs.pop(topic, None) is not None

    def retain(self, wanted: Callable[[str], bool]) -> None:
        """Keep only the topics for which `wanted` returns True."""
        for topic in [topic for topic in self._epochs | self._topic_ids if not wanted(topic)]:
            self._epochs.pop(topic, None)
            self._topic_ids.pop(topic, None)
            self._missing.discard(topic)


class MetadataResponseReader:
    """Reads a response and compares it with the known metadata (Kafka: Metadata).

    If the leader epoch of a partition is older than the last seen one, the known description is
    kept: the broker that sent the response lags behind. If the id of a topic changed, the topic was
    deleted and created again, and its epochs are reset.

    Attributes:
        refresh_needed: Whether the response shows that another update is needed.
    """

    def __init__(
        self,
        known: MetadataSnapshot,
        last_seen_epochs: LastSeenEpochs,
        retain: Callable[[str, bool], bool],
        log_context: LogContext,
    ) -> None:
        self._log_context = log_context
        self.refresh_needed = False
        self._known = known
        self._epochs = last_seen_epochs
        self._retain = retain

    def read(self, response: MetadataResponse) -> MetadataSnapshot:
        """Return the snapshot; updates the `LastSeenEpochs`."""
        topics = {
            topic.name: self._topic(topic.name, topic)
            for topic in response.topics
            if topic.name is not None and self._retain(topic.name, topic.is_internal)
        }
        return MetadataSnapshot(
            {
                broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
                for broker in response.brokers
            },
            topics,
            response.cluster_id,
            response.controller_id,
        )

    def _topic(self, name: str, topic: MetadataResponseTopic) -> TopicMetadata:
        error_code, detail = topic.error_code, ""
        if error_code == NONE:
            detail = _odd_partitions(name, topic)
            error_code = code_of(LeaderNotAvailableError) if detail else NONE
        if error_code != NONE:
            return self._without_partitions(name, topic, error_code, detail)
        topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else None
        if self._epochs.described(name, topic_id):
            shown = "unknown" if topic_id is None else uuid_to_text(topic_id)
            log = self._log_context.logger(__name__)
            log.info("topic %s was deleted and created again; its id is %s", name, shown)
        partitions = {
            partition.partition_index: self._partition(name, partition)
            for partition in topic.partitions
        }
        return TopicMetadata(topic_id, topic.is_internal, partitions)

    def _without_partitions(
        self, name: str, topic: MetadataResponseTopic, error_code: int, detail: str
    ) -> TopicMetadata:
        described = TopicMetadata(
            is_internal=topic.is_internal, error_code=error_code, error_detail=detail
        )
        error = described.error
        if error is not None and error.invalid_metadata:
            self.refresh_needed = True
        known = self._known.topic(name)
        if isinstance(error, LeaderNotAvailableError) and known is not None and known.partitions:
            return known  # a leader is being elected: keep the old description
        if isinstance(error, UnknownTopicOrPartitionError):
            self._epochs.missing(name)
        return described

    def _partition(self, topic: str, partition: MetadataResponsePartition) -> PartitionMetadata:
        error = error_for_code(partition.error_code)
        if error is not None and error.invalid_metadata:
            self.refresh_needed = True
        key = TopicPartition(topic, partition.partition_index)
        seen = self._epochs.get(key)
        known = self._known.partition(topic, partition.partition_index)
        if partition.leader_epoch != UNKNOWN_EPOCH:
            if partition.leader_epoch < seen:
                self.refresh_needed = True
                return known or PartitionMetadata(NO_LEADER, seen, tuple(partition.replica_nodes))
            if partition.leader_epoch > seen:
                self._epochs.put(key, partition.leader_epoch)
        return PartitionMetadata(
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )


def _odd_partitions(name: str, topic: MetadataResponseTopic) -> str:
    """Return the problem if the partitions of a topic are missing or have gaps; else empty."""
    numbers = {partition.partition_index for partition in topic.partitions}
    if not numbers:
        return f"topic {name} has no partitions yet"
    if min(numbers) == 0 and max(numbers) == len(numbers) - 1:
        return ""
    return (
        f"topic {name}: got {len(numbers)} partitions from {min(numbers)} to {max(numbers)},"
        f" expected 0 to {len(numbers) - 1}"
    )
