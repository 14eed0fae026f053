"""State of one producer in a log (Kafka: ProducerStateEntry, BatchMetadata)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

NUM_BATCHES_TO_RETAIN = 5
NO_SEQUENCE = -1
NO_PRODUCER_EPOCH = -1
NO_PRODUCER_ID = -1
MAX_SEQUENCE = 2**31 - 1


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence plus `increment`; sequences wrap from 2^31-1 to 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence minus `decrement`; sequences wrap from 0 to 2^31-1."""
    return (sequence - decrement) & MAX_SEQUENCE


def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether one sequence follows another."""
    return next_sequence == increment_sequence(last_sequence, 1)


class BatchMetadata(NamedTuple):
    """Metadata of an appended batch.

    Attributes:
        last_sequence: Sequence of the last record.
        last_offset: Offset of the last record.
        offset_delta: Last offset minus first offset.
        timestamp: Max timestamp.
    """

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


def _no_batches() -> deque[BatchMetadata]:
    return deque(maxlen=NUM_BATCHES_TO_RETAIN)


@dataclass(slots=True)
class ProducerStateEntry:
    """Epoch and last batches of a producer.

    Attributes:
        producer_id: Producer id.
        producer_epoch: Epoch of the last batch or marker, -1 if unknown.
        coordinator_epoch: Coordinator epoch of the last transaction marker, -1 if none.
        last_timestamp: Timestamp of the last batch or marker; part of snapshots.
        current_txn_first_offset: First offset of the ongoing transaction, or None.
        batches: The last five batches of this epoch, oldest first.
        last_update_ms: Monotonic time of the last append or of loading; start of the expiration.
    """

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    current_txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=_no_batches)
    last_update_ms: float = field(default=0.0, compare=False)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 if unknown."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """Offset of the last record, -1 if unknown."""
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        """Offset delta of the last batch, 0 if unknown."""
        return self.batches[-1].offset_delta if self.batches else 0

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        """Add a batch; the first one of a new epoch replaces all others."""
        self.update_epoch(epoch)
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def update_epoch(self, epoch: int) -> None:
        """Set the epoch; a change removes the batches of the previous one."""
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def find_duplicate(
        self, epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchMetadata | None:
        """Return the retained batch with these sequences, or None."""
        if epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def copy(self) -> "ProducerStateEntry":
        """Return an independent copy."""
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self.batches.copy(),
            self.last_update_ms,
        )
