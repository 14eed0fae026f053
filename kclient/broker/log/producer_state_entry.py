"""State of one producer in a log, and its changes by an append (Kafka: ProducerStateEntry)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.broker.log.transaction_verification import (
    VerificationGuard,
    VerificationStateEntry,
)
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kclient.record import (
    NO_PRODUCER_EPOCH,
    BatchHeader,
    ControlRecordType,
    EndTxnMarker,
    RecordBatch,
    decrement_sequence,
    increment_sequence,
)
from kclient.record.batch_header import NO_SEQUENCE, TRANSACTIONAL_FLAG

NUM_BATCHES_TO_RETAIN = 5

MAX_PRODUCER_EPOCH = 2**15 - 1
"""Epoch of the markers of a producer id whose epochs are exhausted."""

TRANSACTION_V2 = 2
"""First ``transaction.version`` in which each end of a transaction raises the epoch (KIP-890)."""


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

    @classmethod
    def of(cls, header: BatchHeader) -> Self:
        """Return the metadata of a batch."""
        delta = header.last_offset_delta
        last_offset = header.base_offset + delta
        return cls(header.last_sequence, last_offset, delta, header.max_timestamp)

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

    def has_ongoing_transaction(self, epoch: int) -> bool:
        """Return whether a transaction of an epoch is open."""
        return self.current_txn_first_offset is not None and self.producer_epoch == epoch

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


class TxnMetadata(NamedTuple):
    """Producer id and first offset of an ongoing transaction."""

    producer_id: int
    first_offset: int


class CompletedTxn(NamedTuple):
    """Completed transaction: producer, first offset, offset of the marker, outcome."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool

    def index_entry(self, last_stable_offset: int) -> AbortedTxn:
        """Return the entry of the transaction index."""
        return AbortedTxn(self.producer_id, self.first_offset, self.last_offset, last_stable_offset)


class ProducerAppendInfo:
    """Changes of an append to one producer's state (Kafka: ProducerAppendInfo).

    Attributes:
        entry: The new state.
        started: Transactions that start with the append.
        is_transactional: Whether records of a transaction, or its end, are appended.
        marker_epoch: Epoch of the last batch if it is a marker, else None.
    """

    def __init__(
        self,
        partition: str,
        current: ProducerStateEntry,
        origin: AppendOrigin | None,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
        verification: VerificationStateEntry | None = None,
    ) -> None:
        """Create an append on the current state.

        Args:
            partition: Partition name for error messages.
            current: State of the producer; it is not modified.
            origin: Epochs and sequences are checked for clients, epochs only for coordinators;
                None, for batches that were appended before, as in recovery, checks neither.
            transaction_version: ``transaction.version`` of the transaction that a marker ends.
            guard: Guard of the append to a transaction; None if transactions are not verified.
            verification: Verification of the producer in progress, or None.
        """
        self._partition = partition
        self._origin = origin
        self._transaction_version = transaction_version
        self._guard = guard
        self._verification = verification
        self.entry = current.copy()
        self.started: list[TxnMetadata] = []
        self.is_transactional = False
        self.marker_epoch: int | None = None

    def append_data(self, header: BatchHeader) -> None:
        """Add a batch of records.

        Raises:
            InvalidProducerEpochError: The producer is fenced by a later epoch.
            OutOfOrderSequenceError: Records before these are missing.
            InvalidTxnStateError: A non-transactional batch within an ongoing transaction, or a
                transactional one whose transaction is neither open nor verified.
        """
        if self._origin is not None:
            self._check_epoch(header)
        if header.attributes & TRANSACTIONAL_FLAG:
            self.is_transactional, self.marker_epoch = True, None
            if self._guard is not None:
                self._check_verification(header, self._guard)
        if self._origin == "client":
            self._check_sequence(header)
        entry = self.entry
        entry.add_batch(header.producer_epoch, BatchMetadata.of(header))
        if entry.current_txn_first_offset is not None:
            if not header.is_transactional and self._origin is not None:
                raise InvalidTxnStateError(
                    f"{self._partition}: producer {header.producer_id} wrote outside of its "
                    "transaction while it was open"
                )
        elif header.attributes & TRANSACTIONAL_FLAG:
            entry.current_txn_first_offset = header.base_offset
            self.started.append(TxnMetadata(header.producer_id, header.base_offset))

    def append_marker(self, batch: RecordBatch) -> CompletedTxn | None:
        """Add a control batch; return the transaction that its marker completes, if any.

        Raises:
            InvalidProducerEpochError: The marker's epoch is below the producer's.
            TransactionCoordinatorFencedError: The coordinator is fenced by a later epoch.
        """
        records = batch.records()
        if not records:  # compacted
            return None
        marker = EndTxnMarker.parse(records[0].key, records[0].value)
        if self._origin is not None:
            self._check_marker_epoch(batch)
            self._check_coordinator(marker)
        self.entry.update_epoch(batch.producer_epoch)
        self.is_transactional, self.marker_epoch = True, batch.producer_epoch
        completed = None
        first_offset = self.entry.current_txn_first_offset
        if first_offset is not None:
            completed = CompletedTxn(
                batch.producer_id,
                first_offset,
                batch.last_offset,
                marker.control_type is ControlRecordType.ABORT,
            )
        self.entry.current_txn_first_offset = None
        self.entry.coordinator_epoch = marker.coordinator_epoch
        self.entry.last_timestamp = batch.max_timestamp
        return completed

    def _check_verification(self, header: BatchHeader, guard: VerificationGuard) -> None:
        """Check that the transaction is open or verified (Kafka: batchMissingRequiredVerification).

        The sequences of a producer without state in the log are checked by those that wait.
        """
        if self.entry.has_ongoing_transaction(header.producer_epoch):
            return
        verification = self._verification
        if verification is None or verification.guard is not guard:
            raise InvalidTxnStateError(
                f"{self._partition}: producer {header.producer_id}: the record was not part of an "
                "open transaction"
            )
        if self._origin != "client":
            return
        expected = verification.lowest_sequence
        if verification.supports_epoch_bump and not self.entry.batches:
            expected = 0
        if header.base_sequence > expected:
            raise self._out_of_order(header, expected)

    def _check_coordinator(self, marker: EndTxnMarker) -> None:
        if self.entry.coordinator_epoch > marker.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"{self._partition}: got a marker of coordinator epoch "
                f"{marker.coordinator_epoch}, expected at least {self.entry.coordinator_epoch}"
            )

    def _check_epoch(self, header: BatchHeader) -> None:
        self._require_epoch(header, self.entry.producer_epoch)

    def _check_marker_epoch(self, header: BatchHeader) -> None:
        """Check the epoch of a marker (Kafka: checkProducerEpoch).

        In transactions of version 2 the marker has a later epoch than the records that it ends. An
        equal one is that of a marker that the coordinator repeats, or of an exhausted producer id.
        """
        entry = self.entry
        required = entry.producer_epoch
        if (
            self._transaction_version >= TRANSACTION_V2
            and entry.current_txn_first_offset is not None
            and required < MAX_PRODUCER_EPOCH
        ):
            required += 1
        self._require_epoch(header, required)

    def _require_epoch(self, header: BatchHeader, required: int) -> None:
        if header.producer_epoch < required:
            raise InvalidProducerEpochError(
                f"{self._partition}: producer {header.producer_id}: got epoch "
                f"{header.producer_epoch}, expected at least {required}"
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        """Check that the base sequence follows the last sequence.

        The first batch of a producer without state may have any sequence.
        """
        known_epoch = self.entry.producer_epoch
        is_same_epoch = header.producer_epoch == known_epoch
        expected = increment_sequence(self.entry.last_sequence, 1) if is_same_epoch else 0
        if header.base_sequence != expected and known_epoch != NO_PRODUCER_EPOCH:
            raise self._out_of_order(header, expected)

    def _out_of_order(self, header: BatchHeader, expected: int) -> OutOfOrderSequenceError:
        return OutOfOrderSequenceError(
            f"{self._partition}: producer {header.producer_id} epoch {header.producer_epoch}: "
            f"got sequence {header.base_sequence}, expected {expected}"
        )
