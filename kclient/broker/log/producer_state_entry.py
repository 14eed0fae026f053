"""What a log remembers of one producer (Kafka: ProducerStateEntry, BatchMetadata)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

NUM_BATCHES_TO_RETAIN = 5
NO_SEQUENCE = -1
NO_PRODUCER_EPOCH = -1
NO_PRODUCER_ID = -1
MAX_SEQUENCE = 2**31 - 1


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence `increment` further on; behind 2^31-1 comes 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence `decrement` further back; before 0 comes 2^31-1."""
    return (sequence - decrement) & MAX_SEQUENCE


def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether one sequence follows another."""
    return next_sequence == increment_sequence(last_sequence, 1)


class BatchMetadata(NamedTuple):
    """A batch that was appended.

    Attributes:
        last_sequence: Sequence of its last record.
        last_offset: Offset of its last record.
        offset_delta: Number of its records less one.
        timestamp: Its greatest timestamp.
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
    """A producer's epoch and its last batches.

    Attributes:
        producer_id: Id the broker gave it.
        producer_epoch: Epoch of its last batch or marker; -1 if none is known.
        coordinator_epoch: Epoch of the last transaction marker's coordinator; -1 if none.
        last_timestamp: Timestamp of its last batch or marker; it is kept in snapshots.
        current_txn_first_offset: First offset of its open transaction, or None.
        batches: The last five batches of this epoch, oldest first.
        last_update_ms: Monotonic time of its last append, or of its loading, by which it expires.
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
        """Sequence of the last record; -1 if none is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """Offset of the last record; -1 if none is known."""
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        """Number of the last batch's records less one; 0 if none is known."""
        return self.batches[-1].offset_delta if self.batches else 0

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        """Note a batch; one of a new epoch replaces those of the old."""
        self.update_epoch(epoch)
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def update_epoch(self, epoch: int) -> None:
        """Take on an epoch; a new one forgets the batches of the old."""
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def find_duplicate(
        self, epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchMetadata | None:
        """Return the remembered batch with these sequences, or None."""
        if epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def copy(self) -> "ProducerStateEntry":
        """Return an entry that can be changed apart from this one."""
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self.batches.copy(),
            self.last_update_ms,
        )
