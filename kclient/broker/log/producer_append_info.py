"""Producer state changes of an append: validated first, applied after the write."""

from typing import NamedTuple

from kclient.broker.log.file_records import BatchHeader
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.producer_state_entry import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    BatchMetadata,
    ProducerStateEntry,
    in_sequence,
    increment_sequence,
)
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kclient.record import ControlRecordType, EndTxnMarker

_ABORT = ControlRecordType.ABORT


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


class ProducerAppendInfo:
    """Changes of an append to one producer's state (Kafka: ProducerAppendInfo).

    Attributes:
        entry: The new state.
        started: Transactions that start with the append.
    """

    def __init__(
        self, partition: str, current: ProducerStateEntry, origin: AppendOrigin | None
    ) -> None:
        """Create an append on the current state.

        Args:
            partition: Partition name for error messages.
            current: State of the producer; it is not modified.
            origin: Epochs and sequences are checked for clients, epochs only for coordinators;
                None, for batches that were appended before, as in recovery, checks neither.
        """
        self._partition = partition
        self._origin = origin
        self.entry = current.copy()
        self.started: list[TxnMetadata] = []

    def append(self, header: BatchHeader, *, transactional: bool) -> None:
        """Add a batch of records.

        Raises:
            InvalidProducerEpochError: The producer is fenced by a later epoch.
            OutOfOrderSequenceError: Records before these are missing.
            InvalidTxnStateError: A non-transactional batch within an ongoing transaction.
        """
        if self._origin is not None:
            self._check_epoch(header)
        if self._origin == "client":
            self._check_sequence(header)
        self.entry.add_batch(header.producer_epoch, metadata_of(header))
        if self.entry.current_txn_first_offset is not None:
            if not transactional and self._origin is not None:
                raise InvalidTxnStateError(
                    f"{self._partition}: producer {header.producer_id} wrote outside of its "
                    "transaction while it was open"
                )
        elif transactional:
            self.entry.current_txn_first_offset = header.base_offset
            self.started.append(TxnMetadata(header.producer_id, header.base_offset))

    def append_marker(self, header: BatchHeader, marker: EndTxnMarker) -> CompletedTxn | None:
        """Add an end transaction marker; return the transaction unless it was empty.

        Raises:
            InvalidProducerEpochError: The marker's epoch is below the producer's.
            TransactionCoordinatorFencedError: The coordinator is fenced by a later epoch.
        """
        if self._origin is not None:
            self._check_epoch(header)
            self._check_coordinator(marker)
        self.entry.update_epoch(header.producer_epoch)
        completed = None
        first_offset = self.entry.current_txn_first_offset
        if first_offset is not None:
            completed = CompletedTxn(
                header.producer_id, first_offset, header.last_offset, marker.control_type is _ABORT
            )
        self.entry.current_txn_first_offset = None
        self.entry.coordinator_epoch = marker.coordinator_epoch
        self.entry.last_timestamp = header.max_timestamp
        return completed

    def _check_coordinator(self, marker: EndTxnMarker) -> None:
        if self.entry.coordinator_epoch > marker.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"{self._partition}: got a marker of coordinator epoch "
                f"{marker.coordinator_epoch}, expected at least {self.entry.coordinator_epoch}"
            )

    def _check_epoch(self, header: BatchHeader) -> None:
        if header.producer_epoch < self.entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"{self._partition}: producer {header.producer_id}: got epoch "
                f"{header.producer_epoch}, expected at least {self.entry.producer_epoch}"
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        """Check that the base sequence follows the last sequence.

        The first batch of a producer without state may have any sequence.
        """
        known_epoch = self.entry.producer_epoch
        if header.producer_epoch != known_epoch:
            expected = 0
            fits = header.base_sequence == 0 or known_epoch == NO_PRODUCER_EPOCH
        else:
            last = self.entry.last_sequence
            expected = (last + 1) & 0x7FFFFFFF
            fits = known_epoch == NO_PRODUCER_EPOCH or in_sequence(last, header.base_sequence)
        if not fits:
            raise OutOfOrderSequenceError(
                f"{self._partition}: producer {header.producer_id} epoch {header.producer_epoch}: "
                f"got sequence {header.base_sequence}, expected {expected}"
            )


def metadata_of(header: BatchHeader) -> BatchMetadata:
    """Return the metadata of a batch that producer state retains."""
    last_sequence = (
        increment_sequence(header.base_sequence, header.last_offset_delta)
        if header.base_sequence >= 0
        else NO_SEQUENCE
    )
    return BatchMetadata(
        last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
    )
