"""Partitioners: by the hash of the key, and the built-in sticky one."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from kclient.record import murmur2

Partitioner = Callable[[str, bytes | None, int], int]
"""Called with (topic, serialized key, number of partitions); returns a partition, or -1 for the
sticky one."""


def partition_of_key(key: bytes, partition_count: int) -> int:
    """Return the partition of a key by Kafka's hash, as the Java client does.

    The hot path of `send` computes the same inline.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def partitions_of_keys(keys: Sequence[bytes | None], partition_count: int) -> list[int]:
    """Return the partition of each key as `partition_of_key` does, -1 for None."""
    # Inline: a call for each key would cost a third of the loop.
    return [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partition_count for key in keys]


def murmur2_partition(topic: str, key: bytes | None, partition_count: int) -> int:
    """Choose by Kafka's hash of the key, as the Java client does; -1 without a key."""
    if key is None:
        return -1
    return partition_of_key(key, partition_count)


def murmur3_partition(topic: str, key: bytes | None, partition_count: int) -> int:
    """Choose by MurmurHash3 of the key, unlike the Java client; -1 without a key."""
    import mmh3  # noqa: PLC0415 (only if this partitioner is configured)

    if key is None:
        return -1
    return int(mmh3.hash(key, signed=False)) % partition_count


_LONGEST_STICK_MS = 100.0


class PartitionLoad(NamedTuple):
    """Weights of partitions, as running sums, and the highest of the partitions."""

    partitions: Sequence[int]
    running_sums: Sequence[int]
    highest: int


class BuiltInPartitioner:
    """Sticky partitioner of records without key (KIP-794; Kafka: BuiltInPartitioner).

    Records stick to one partition until ``batch.size`` bytes were appended there, or for 100 ms,
    which is not in KIP-794: few records would go to the same partition for minutes, and one of
    its consumers would process all of them. The next partition is drawn at random, weighted by
    queue length, so that slow brokers get fewer records. Both are checked when a batch is created:
    switches happen between batches, and single records cost nothing.
    """

    def __init__(self, batch_size: int, uniform: Callable[[], float]) -> None:
        """Start without a partition.

        Args:
            batch_size: Bytes after which the next one is drawn.
            uniform: Returns a random number from 0 (included) to 1 (excluded).
        """
        self.current = -1
        self._batch_size = max(batch_size, 1)
        self._uniform = uniform
        self._produced = 0
        self._drawn_ms = -math.inf
        self._load: PartitionLoad | None = None

    def choose(self, available: Sequence[int], partition_count: int) -> int:
        """Return the partition to stick to, drawing one if there is none yet.

        Args:
            available: Partitions that have a leader.
            partition_count: Number of all partitions.
        """
        if 0 <= self.current < partition_count:
            return self.current
        return self.draw(available, partition_count)

    def count(self, size: int, now_ms: float) -> bool:
        """Count the bytes of a batch; return whether the next one needs a `draw`.

        Args:
            size: Bytes of the last batch, 0 for none.
            now_ms: Current time.
        """
        self._produced += size
        if self._produced < self._batch_size and (
            not self._produced or now_ms - self._drawn_ms < _LONGEST_STICK_MS
        ):
            return False
        self._produced, self._drawn_ms = 0, now_ms
        return True

    def draw(self, available: Sequence[int], partition_count: int) -> int:
        """Draw the partition to stick to, and return it; the arguments are those of `choose`."""
        load = self._load
        if load is not None and load.highest < partition_count:
            drawn = int(self._uniform() * load.running_sums[-1])
            self.current = load.partitions[bisect_right(load.running_sums, drawn)]
        elif available:
            self.current = available[int(self._uniform() * len(available))]
        else:
            self.current = int(self._uniform() * partition_count)
        return self.current

    def update_load(
        self, queue_sizes: Sequence[int], partitions: Sequence[int], total: int
    ) -> None:
        """Set the queue lengths that weight the next draws.

        Args:
            queue_sizes: Number of queued batches of each of `partitions`.
            partitions: Partitions that may be drawn: with a leader that does not lag.
            total: Number of partitions of the topic.
        """
        if not partitions or total < 2:
            self._load = None
        elif len(partitions) == total and len(set(queue_sizes)) == 1:
            self._load = None  # all weights are equal
        else:
            most = max(queue_sizes) + 1
            sums = list(accumulate([most - size for size in queue_sizes]))
            self._load = PartitionLoad(partitions, sums, max(partitions))
