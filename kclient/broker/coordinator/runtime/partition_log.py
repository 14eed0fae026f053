"""Log of a coordinator: the partitions of an internal topic."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.log.memory_records import MemoryRecords, keyed_batch
from kclient.broker.log.transaction_verification import VerificationGuard
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.partition import ACKS_ALL
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptRecordError,
    FencedLeaderEpochError,
    InvalidFetchSizeError,
    KafkaStorageError,
    NetworkError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownLeaderEpochError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.record import (
    NO_PRODUCER_ID,
    ConsumerRecord,
    ControlRecordType,
    EndTxnMarker,
    ProducerIdAndEpoch,
    Record,
    RecordBatch,
    build_end_txn_batch,
    iter_records,
    read_batches,
)

_LOAD_BUFFER_SIZE = 5 * 1024 * 1024

_NO_TIMEOUT_MS = 2**31 - 1
"""The runtime limits the time until the reply; the append itself waits until it is committed."""

_NOT_AVAILABLE = (
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
_NOT_COORDINATOR = (KafkaStorageError, NotLeaderOrFollowerError)
_WRONG_EPOCH = (FencedLeaderEpochError, UnknownLeaderEpochError)
_TOO_LARGE = (InvalidFetchSizeError, RecordBatchTooLargeError, RecordTooLargeError)

KeyAndValue = tuple[bytes, bytes | None]


AppendCallback = Callable[[KafkaError | None, int], None]
"""Receives the error or None, and the offset after the records, which is -1 with an error."""


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of a group or transactional id.

    It is the absolute value of Java's string hash, modulo the number of partitions. The hash is a
    signed number of 32 bits; the lowest one counts as 0 (Kafka: Utils.abs).
    """
    value = 0
    units = key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    absolute = value if value < 1 << 31 else -value & 0x7FFFFFFF
    return absolute % partition_count


class ReadBounds(NamedTuple):
    """Offsets of a partition, as its leader knows them."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class TransactionOwner(NamedTuple):
    """Producer of the transaction that records belong to.

    Attributes:
        producer_id: Producer id.
        producer_epoch: Producer epoch.
        guard: Guard of the append to the transaction; None if transactions are not verified.
    """

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None = None


class TransactionEnd(NamedTuple):
    """End of a transaction in a partition.

    Attributes:
        producer: Id of the producer, and epoch of the marker.
        committed: Whether the transaction is committed.
        coordinator_epoch: Epoch of the transaction coordinator.
        transaction_version: ``transaction.version`` of the transaction.
    """

    producer: ProducerIdAndEpoch
    committed: bool
    coordinator_epoch: int
    transaction_version: int = 0

    def batch(self, timestamp_ms: int) -> memoryview:
        """Return the control batch with the marker."""
        kind = ControlRecordType.COMMIT if self.committed else ControlRecordType.ABORT
        marker = EndTxnMarker(kind, self.coordinator_epoch)
        return build_end_txn_batch(marker, *self.producer, timestamp_ms)


class LogBatch(NamedTuple):
    """Batch that a read has returned: records, or the marker that ends a transaction.

    Attributes:
        records: Records, oldest first; none of a marker.
        producer_id: Producer id of a batch that is part of a transaction or ends it, else -1.
        committed: Whether the transaction that a marker ends is committed; None for records.
    """

    records: Iterable[ConsumerRecord | Record]
    producer_id: int = NO_PRODUCER_ID
    committed: bool | None = None


class LogChunk(NamedTuple):
    """Batches that one read has returned.

    Attributes:
        batches: The batches, oldest first.
        next_offset: Offset of the next read; that of this one if no batch is left.
    """

    batches: Iterable[LogBatch]
    next_offset: int


class PartitionLog(Protocol):
    """Partitions of a coordinator's topic."""

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic, or of the topic to be created."""
        ...

    def bounds(self, partition: int, leader_epoch: int) -> ReadBounds:
        """Return the offsets of a partition.

        Raises:
            NotLeaderOrFollowerError: This broker is not its leader.
            FencedLeaderEpochError: The partition is in a later epoch.
            UnknownLeaderEpochError: It is in an earlier epoch.
            KafkaError: The partition cannot be read.
        """
        ...

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[KeyAndValue],
        on_done: AppendCallback,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        """Append records in one batch; `on_done` is called when they are committed or failed.

        They are part of a transaction of `transaction_of`, if given. They are committed only if
        this broker leads the partition in `leader_epoch` before the append and when the high
        watermark passes them. `on_done` is called with the error NOT_COORDINATOR as soon as that is
        no longer possible.
        """
        ...

    def append_marker(
        self, partition: int, leader_epoch: int, end: TransactionEnd, on_done: AppendCallback
    ) -> None:
        """Append the marker that ends a transaction, as `append`.

        `on_done` may also receive InvalidProducerEpochError or TransactionCoordinatorFencedError.
        """
        ...

    def read(self, partition: int, offset: int) -> LogChunk:
        """Read at most 5 MiB from an offset on, but at least one batch if there is one."""
        ...


class ReplicatedLog:
    """Log in the partitions of a topic of this broker.

    Args:
        topic: Name of the topic.
        replica_manager: Manager of the partitions.
        clock: Clock of the records' timestamps.
        count_partitions: Returns the number of partitions of the topic, existing or to be created.
    """

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        clock: Clock,
        count_partitions: Callable[[], int],
    ) -> None:
        self._topic = topic
        self._replicas = replica_manager
        self._clock = clock
        self._count_partitions = count_partitions

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic, existing or to be created."""
        return self._count_partitions()

    def bounds(self, partition: int, leader_epoch: int) -> ReadBounds:
        """Return the offsets of a partition, as `PartitionLog.bounds`."""
        key = TopicPartition(self._topic, partition)
        found = self._replicas.partition(key)
        found.check_leader_epoch(leader_epoch)
        log = found.log
        # The high watermark first: it must not be newer than the end.
        high_watermark, log_start_offset = log.high_watermark, log.log_start_offset
        return ReadBounds(log_start_offset, high_watermark, log.log_end_offset)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[KeyAndValue],
        on_done: AppendCallback,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        """Append records in one batch; `on_done` is called when they are committed or failed.

        Errors are those that clients of a coordinator handle: COORDINATOR_NOT_AVAILABLE is retried,
        NOT_COORDINATOR makes them look up the coordinator again.
        """
        producer = None if transaction_of is None else transaction_of[:2]
        batch = keyed_batch(self._clock.wall_ms(), records, producer)
        guard = None if transaction_of is None else transaction_of.guard
        self._append(partition, leader_epoch, batch, on_done, guard=guard)

    def append_marker(
        self, partition: int, leader_epoch: int, end: TransactionEnd, on_done: AppendCallback
    ) -> None:
        """Append the marker that ends a transaction, as `PartitionLog.append_marker`."""
        batch = end.batch(self._clock.wall_ms())
        self._append(partition, leader_epoch, batch, on_done, end.transaction_version)

    def _append(
        self,
        partition: int,
        leader_epoch: int,
        batch: memoryview,
        on_done: AppendCallback,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> None:
        key = TopicPartition(self._topic, partition)
        error = self._leadership_error(key, leader_epoch)
        if error is not None:
            on_done(error, -1)
            return

        def on_appended(results: AppendResults) -> None:
            result = results[key]
            # As epochs do not fall, the epoch was the same all the time if it is now.
            error = coordinator_error(key, result.error)
            error = error or self._leadership_error(key, leader_epoch)
            on_done(error, -1 if error is not None else result.end_offset)

        self._replicas.append_records(
            ACKS_ALL,
            {key: MemoryRecords(batch)},
            _NO_TIMEOUT_MS,
            on_appended,
            "coordinator",
            transaction_version,
            None if guard is None else {key: guard},
        )

    def _leadership_error(self, key: TopicPartition, leader_epoch: int) -> KafkaError | None:
        """Return the error if this broker does not lead a partition in an epoch."""
        try:
            self._replicas.partition(key).check_leader_epoch(leader_epoch)
        except _WRONG_EPOCH as error:
            return NotCoordinatorError(str(error))
        except KafkaError as error:
            return coordinator_error(key, error)
        return None

    def read(self, partition: int, offset: int) -> LogChunk:
        """Read at most 5 MiB from an offset on, but at least one batch if there is one."""
        log = self._replicas.partition(TopicPartition(self._topic, partition)).log
        found = log.read(offset, _LOAD_BUFFER_SIZE).records
        batches = list(
            read_batches(memoryview(found.read() if isinstance(found, FileSlice) else found))
        )
        if found and not (batches and batches[-1].next_offset > offset):
            raise CorruptRecordError(f"{log.partition}: no batch at offset {offset}")
        next_offset = batches[-1].next_offset if batches else offset
        return LogChunk(map(_log_batch, batches), next_offset)


def _log_batch(batch: RecordBatch) -> LogBatch:
    if batch.is_control:
        return LogBatch((), batch.producer_id, _is_committed(batch))
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    return LogBatch(iter_records(batch), producer_id)


def _is_committed(batch: RecordBatch) -> bool | None:
    """Return whether a marker commits; None if it ends no transaction, or was compacted."""
    for record in iter_records(batch):
        kind = ControlRecordType.parse(record.key)
        if kind in {ControlRecordType.COMMIT, ControlRecordType.ABORT}:
            return kind is ControlRecordType.COMMIT
    return None


def coordinator_error(key: TopicPartition, error: KafkaError | None) -> KafkaError | None:
    """Return the error of a coordinator for that of an append (Kafka: handleOperationException)."""
    if isinstance(error, _NOT_AVAILABLE):
        return CoordinatorNotAvailableError(f"{key}: the write is not committed: {error}")
    if isinstance(error, _NOT_COORDINATOR):
        return NotCoordinatorError(f"{key} cannot be written: {error}")
    if isinstance(error, NetworkError):
        return CoordinatorLoadInProgressError(f"{key}: {error}")
    return error


def operation_error(error: KafkaError) -> KafkaError:
    """Return the error of a membership request whose write has failed.

    A record that is too large for the log is no fault of the client's request (Kafka:
    handleOperationException).
    """
    return UnknownServerError(str(error)) if isinstance(error, _TOO_LARGE) else error
