"""Last seen leader epoch of each partition, with the topic id that it belongs to."""

from collections.abc import Callable

from kclient.client.metadata_snapshot import UNKNOWN_EPOCH
from kclient.common.types import TopicPartition


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
