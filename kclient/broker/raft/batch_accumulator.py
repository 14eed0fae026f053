"""Batches that a leader has not written yet (Kafka: BatchAccumulator).

The records of one call are one batch, which is in the log completely or not at all. Batches are
written together after the linger time, with one flush.
"""

from collections.abc import Sequence
from math import inf

from kclient.broker.log.memory_records import keyed_batch
from kclient.broker.raft.raft_types import MAX_BATCH_BYTES, CommittedBatch
from kclient.common.broker_errors import NotLeaderOrFollowerError, RecordBatchTooLargeError
from kclient.common.errors import BufferExhaustedError, InvalidArgumentError


class BatchAccumulator:
    """Batches of one epoch.

    Args:
        epoch: Epoch of the leader.
        next_offset: End offset of the log.
        linger_ms: Time that batches are kept, to be written together.
        max_bytes: Maximum size of all batches.
    """

    def __init__(self, epoch: int, next_offset: int, linger_ms: float, max_bytes: int) -> None:
        self._epoch = epoch
        self._next_offset = next_offset
        self._linger_ms = linger_ms
        self._max_bytes = max_bytes
        self._batches: list[tuple[memoryview, CommittedBatch]] = []
        self._bytes = 0
        self._due_ms = inf

    def append(
        self, records: Sequence[bytes], epoch: int, timestamp_ms: int, now_ms: float
    ) -> CommittedBatch:
        """Add a batch; return it with the offsets that it will have.

        Args:
            records: Values, at least one.
            epoch: Epoch that the caller leads.
            timestamp_ms: Wall time.
            now_ms: Monotonic time.

        Raises:
            NotLeaderOrFollowerError: The epoch has ended.
            InvalidArgumentError: There are no records, or the epoch is a later one.
            RecordBatchTooLargeError: The batch is larger than 8 MiB.
            BufferExhaustedError: Too many bytes are waiting.
        """
        if epoch < self._epoch:
            raise NotLeaderOrFollowerError(f"append in epoch {epoch}: it is {self._epoch} now")
        if epoch > self._epoch or not records:
            raise InvalidArgumentError(
                f"append: got {len(records)} records of epoch {epoch}, expected some of epoch "
                f"{self._epoch}"
            )
        size = sum(map(len, records))
        if size > MAX_BATCH_BYTES:
            raise RecordBatchTooLargeError(f"append: got {size} bytes, expected {MAX_BATCH_BYTES}")
        if self._bytes + size > self._max_bytes:
            raise BufferExhaustedError(f"append: {self._bytes} bytes are waiting to be written")
        data = keyed_batch(timestamp_ms, [(None, value) for value in records])
        if len(data) > MAX_BATCH_BYTES:
            raise RecordBatchTooLargeError(
                f"append: got a batch of {len(data)} bytes, expected at most {MAX_BATCH_BYTES}"
            )
        base_offset = self._next_offset
        self._next_offset += len(records)
        batch = CommittedBatch(
            base_offset,
            self._next_offset - 1,
            self._epoch,
            timestamp_ms,
            len(data),
            tuple(records),
        )
        self._batches.append((data, batch))
        self._bytes += len(data)
        self._due_ms = min(self._due_ms, now_ms + self._linger_ms)
        return batch

    @property
    def next_offset(self) -> int:
        """Offset of the first record of the next batch."""
        return self._next_offset

    @property
    def due_ms(self) -> float:
        """Time at which the batches have to be written; infinite if there are none."""
        return self._due_ms

    def drain(self) -> tuple[bytes, list[CommittedBatch]]:
        """Remove and return all batches: their bytes, and the same with their offsets."""
        data = b"".join(each for each, _ in self._batches)
        batches = [batch for _, batch in self._batches]
        self._batches = []
        self._bytes = 0
        self._due_ms = inf
        return data, batches

    def advance_to(self, offset: int) -> None:
        """Continue at an offset, after control records were written and with nothing waiting."""
        self._next_offset = offset
