"""Judges how many bytes an offset brings, by a sample of what is to be read next."""

from collections.abc import Mapping

from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.errors import LogTruncationError, OffsetsOutOfRangeError

Offsets = Mapping[TopicPartition, int]

_FETCH = {"max.partition.fetch.bytes": str(64 * 1024)}
_PATIENCE_MS = 2000.0
_GLANCE_S = 0.05


class SizeSample:
    """Reads the first records of each partition and weighs them.

    Args:
        config: Configuration of a consumer, by dotted name.
        runtime: Door to the world.
    """

    def __init__(self, config: Mapping[str, str], runtime: Runtime) -> None:
        self._config = {**config, **_FETCH}
        self._runtime = runtime
        self._consumer: Consumer | None = None
        self._weights: dict[TopicPartition, float] = {}

    def offsets_for(self, most_bytes: int, begins: Offsets, ends: Offsets) -> int:
        """Return how many offsets, shared out by size, have about so many bytes; at least 1.

        Bytes are those of keys, values and headers, with a few for each record.

        Args:
            most_bytes: Bytes wanted.
            begins: Where reading begins.
            ends: Where it ends at most.
        """
        sizes = {one: ends[one] - begins[one] for one in ends if ends[one] > begins[one]}
        self._weigh({one: begins[one] for one in sizes})
        known = {one: size for one, size in sizes.items() if one in self._weights}
        total = sum(size * self._weights[one] for one, size in known.items())
        if not total:
            return max(1, sum(sizes.values()))
        return max(1, int(most_bytes * sum(known.values()) / total))

    def close(self) -> None:
        """Close the connection; idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    # --- inside

    def _weigh(self, begins: Offsets) -> None:
        if self._consumer is None:
            self._consumer = Consumer(self._config, runtime=self._runtime)
        consumer = self._consumer
        consumer.assign(list(begins))
        consumer.resume(*begins)
        for partition, offset in begins.items():
            consumer.seek(partition, offset)
        clock = self._runtime.clock
        deadline_ms = clock.monotonic_ms() + _PATIENCE_MS
        left = set(begins)
        while left and clock.monotonic_ms() < deadline_ms:
            try:
                batch = consumer.poll_columns(_GLANCE_S)
            except (OffsetsOutOfRangeError, LogTruncationError):
                return  # what is gone is found, and told, by those who read
            if not batch.num_rows:
                continue
            partition = TopicPartition(batch.column("topic")[0].as_py(), batch.column(1)[0].as_py())
            if partition in left:
                read = consumer.position(partition) - begins[partition]
                size = sum(batch.column(name).nbytes for name in ("key", "value", "headers"))
                self._weights[partition] = size / max(read, 1)
                left.discard(partition)
                consumer.pause(partition)
