"""The newest leader epoch seen of each partition, and the topic id that it belongs to."""

from collections.abc import Callable

from kclient.client.metadata_snapshot import UNKNOWN_EPOCH
from kclient.common.types import TopicPartition


class LastSeenEpochs:
    """The leader epochs that metadata must not go below (Kafka: Metadata.lastSeenLeaderEpochs).

    A topic that is deleted and created again starts over at epoch 0 under another id. The id is
    kept as long as the epochs: metadata drops a topic that a broker reports as missing, and a topic
    of that name that is created later must still be recognised as another one.

    Not thread-safe: `Metadata` calls it under its own lock.
    """

    def __init__(self) -> None:
        self._topic_ids: dict[str, bytes] = {}
        self._missing: set[str] = set()  # topics without ids, reported as missing since
        self._epochs: dict[str, dict[int, int]] = {}

    def get(self, partition: TopicPartition) -> int:
        """Return the newest epoch seen of a partition, or -1."""
        return self._epochs.get(partition.topic, {}).get(partition.partition, UNKNOWN_EPOCH)

    def put(self, partition: TopicPartition, epoch: int) -> None:
        """Set the newest epoch of a partition."""
        self._epochs.setdefault(partition.topic, {})[partition.partition] = epoch

    def missing(self, topic: str) -> None:
        """Note that a broker reported a topic as missing."""
        if topic in self._epochs and topic not in self._topic_ids:
            self._missing.add(topic)

    def described(self, topic: str, topic_id: bytes | None) -> bool:
        """Note a topic's id; discard its epochs where they are those of a deleted topic.

        Brokers before 2.8 report no id. There a topic that was missing counts as created again,
        since epochs that wrongly stay would leave it without a leader, whereas an old
        leader taken from a broker that lags refuses the next request.

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
        """Discard the topics for which `wanted` returns False."""
        for topic in [topic for topic in self._epochs | self._topic_ids if not wanted(topic)]:
            self._epochs.pop(topic, None)
            self._topic_ids.pop(topic, None)
            self._missing.discard(topic)
