"""Transaction of a transactional id, as its coordinator keeps it."""

from dataclasses import dataclass, replace

from kclient.broker.coordinator.transaction.transaction_state import (
    TransactionState,
    check_transition,
)
from kclient.common.types import TopicPartition
from kclient.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch

MAX_EPOCH = 32767
EXHAUSTED_EPOCH = MAX_EPOCH - 1
"""Last epoch of a producer; the one after it only fences."""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """State of a transactional id (Kafka: TransactionMetadata); a transition makes a new one.

    Attributes:
        transactional_id: The id.
        producer_id: Producer id.
        producer_epoch: Epoch, `NO_PRODUCER_EPOCH` before the first initialization.
        timeout_ms: Longest time of a transaction.
        state: State.
        partitions: Partitions of the transaction; those that still need a marker are part of it.
        start_ms: Wall-clock time of the first partition, -1 for none.
        last_update_ms: Wall-clock time of the last transition.
        last_producer_epoch: Epoch before the last rise that the producer had asked for, to detect
            a repeated request; -1 after the log was loaded.
        previous_producer_id: Producer id whose epochs were exhausted, -1 for none.
        next_producer_id: Producer id that the completion of the transaction switches to, -1 for
            none.
        client_version: Level of transaction.version that the producer of the transaction follows.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    last_update_ms: int = -1
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """Producer id and epoch."""
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for another producer."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    @property
    def next_producer(self) -> ProducerIdAndEpoch:
        """Producer id and epoch after the completion of a prepared transaction."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer
        return ProducerIdAndEpoch(self.next_producer_id, 0)

    def moved(
        self, state: TransactionState, now_ms: int, **changes: object
    ) -> "TransactionMetadata":
        """Return the metadata after a transition.

        Raises:
            IllegalStateError: The transition does not exist.
        """
        check_transition(self.transactional_id, self.state, state)
        values: dict[str, object] = {"state": state, "last_update_ms": now_ms} | changes
        return replace(self, **values)  # type: ignore[arg-type]  # names of fields

    def prepared(
        self, *, commits: bool, bumps: bool, version: int, next_producer_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """Return the metadata with the decision to end the transaction.

        Args:
            commits: Whether it is committed.
            bumps: Whether the epoch is raised.
            version: Level of transaction.version that the end follows.
            next_producer_id: Producer id for the next transaction, if this one is exhausted.
            now_ms: Wall-clock time.
        """
        epoch = self.producer_epoch
        return self.moved(
            TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(epoch + 1, MAX_EPOCH) if bumps else epoch,
            last_producer_epoch=epoch if bumps else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            client_version=version,
            start_ms=now_ms if self.start_ms < 0 else self.start_ms,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """Return the metadata after all markers are written."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        has_next = self.next_producer_id != NO_PRODUCER_ID
        producer = self.next_producer
        return self.moved(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            now_ms,
            partitions=frozenset(),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            previous_producer_id=self.producer_id if has_next else self.previous_producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def expired(self, now_ms: int) -> "TransactionMetadata":
        """Return the metadata while its tombstone is written."""
        return self.moved(TransactionState.DEAD, now_ms)
