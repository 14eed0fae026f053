"""Estimate of the bytes per offset, from a sample of the records to read next."""

from collections.abc import Mapping

from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.errors import LogTruncationError, OffsetsOutOfRangeError

Offsets = Mapping[TopicPartition, int]

_FETCH = {"max.partition.fetch.bytes": str(64 * 1024)}
_TIMEOUT_MS = 2000.0
_POLL_TIMEOUT_S = 0.05


class SizeSample:
    """Reads the first records of each partition to estimate the bytes per offset.

    Args:
        config: Configuration of a consumer, by dotted name.
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, config: Mapping[str, str], runtime: Runtime) -> None:
        self._config = {**config, **_FETCH}
        self._runtime = runtime
        self._consumer: Consumer | None = None
        self._bytes_per_offset: dict[TopicPartition, float] = {}

    def offsets_for(self, max_bytes: int, starts: Offsets, ends: Offsets) -> int:
        """Return the number of offsets that have about `max_bytes` bytes; at least 1.

        Counted are keys, values and headers, and a few bytes for each record.

        Args:
            max_bytes: Bytes of a micro-batch.
            starts: Where reading starts.
            ends: End offset of each partition.
        """
        sizes = {one: ends[one] - starts[one] for one in ends if ends[one] > starts[one]}
        self._read_sample({one: starts[one] for one in sizes})
        known = {one: size for one, size in sizes.items() if one in self._bytes_per_offset}
        total = sum(size * self._bytes_per_offset[one] for one, size in known.items())
        if not total:
            return max(1, sum(sizes.values()))
        return max(1, int(max_bytes * sum(known.values()) / total))

    def close(self) -> None:
        """Close the connection; idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _read_sample(self, starts: Offsets) -> None:
        if self._consumer is None:
            self._consumer = Consumer(self._config, runtime=self._runtime)
        consumer = self._consumer
        consumer.assign(list(starts))
        consumer.resume(*starts)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        clock = self._runtime.clock
        deadline_ms = clock.monotonic_ms() + _TIMEOUT_MS
        left = set(starts)
        while left and clock.monotonic_ms() < deadline_ms:
            try:
                batch = consumer.poll_columns(_POLL_TIMEOUT_S)
            except (OffsetsOutOfRangeError, LogTruncationError):
                return  # the tasks detect and report the loss
            if not batch.num_rows:
                continue
            partition = TopicPartition(batch.column("topic")[0].as_py(), batch.column(1)[0].as_py())
            if partition in left:
                read = consumer.position(partition) - starts[partition]
                size = sum(batch.column(name).nbytes for name in ("key", "value", "headers"))
                self._bytes_per_offset[partition] = size / max(read, 1)
                left.discard(partition)
                consumer.pause(partition)
