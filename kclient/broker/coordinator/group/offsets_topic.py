"""Log of the group coordinator: the partitions of ``__consumer_offsets``."""

from collections.abc import Callable, Iterable, Iterator

from kclient.broker.coordinator.group.group_records import GROUP_METADATA_TOPIC, Record
from kclient.broker.replication.delayed_produce import AppendResults
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    CorruptRecordError,
    KafkaStorageError,
    NotCoordinatorError,
    UnknownTopicOrPartitionError,
)
from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    RecordBatchBuilder,
    read_batches,
    record_size_upper_bound,
)

_ACKS_ALL = -1
_LOAD_BUFFER_SIZE = 5 * 1024 * 1024


class OffsetsTopic:
    """Writer and reader of the topic's partitions.

    Args:
        replica_manager: Manager of the partitions.
        clock: Clock of the records' timestamps.
        count_partitions: Returns the number of partitions of the topic, existing or to be created.
    """

    def __init__(
        self, replica_manager: ReplicaManager, clock: Clock, count_partitions: Callable[[], int]
    ) -> None:
        self._replicas = replica_manager
        self._clock = clock
        self._count_partitions = count_partitions

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic, existing or to be created."""
        return self._count_partitions()

    def append(self, partition: int, records: Iterable[Record]) -> None:
        """Append keyed records in one batch.

        Raises:
            CoordinatorNotAvailableError: The topic does not exist yet.
            NotCoordinatorError: The disk is full or failed; clients look up the coordinator again
                and retry.
            KafkaError: The append failed; nothing was written.
        """
        key = TopicPartition(GROUP_METADATA_TOPIC, partition)
        outcome: AppendResults = {}
        batch = self._batch(list(records))
        self._replicas.append_records(_ACKS_ALL, {key: batch}, 0, outcome.update, "coordinator")
        error = outcome[key].error
        if isinstance(error, UnknownTopicOrPartitionError):
            raise CoordinatorNotAvailableError(f"there is no partition {key} yet") from error
        if isinstance(error, KafkaStorageError):
            raise NotCoordinatorError(f"{key} cannot be written: {error}") from error
        if error is not None:
            raise error

    def _batch(self, records: list[Record]) -> memoryview:
        size = RECORD_BATCH_OVERHEAD
        size += sum(record_size_upper_bound(key, value, None) for key, value in records)
        builder = RecordBatchBuilder(bytearray(size))
        now_ms = self._clock.wall_ms()
        for key, value in records:
            builder.append(now_ms, key, value, None)
        return builder.seal()

    def read(self, partition: int) -> Iterator[tuple[WireBytes | None, WireBytes | None]]:
        """Yield keys and values of a whole partition, oldest first; none if it does not exist."""
        try:
            log = self._replicas.partition(TopicPartition(GROUP_METADATA_TOPIC, partition)).log
        except UnknownTopicOrPartitionError:
            return
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = log.read(offset, _LOAD_BUFFER_SIZE).records
            data = found.read() if isinstance(found, FileSlice) else found
            before = offset
            for batch in read_batches(memoryview(data)):
                offset = batch.next_offset
                if not batch.is_control:
                    for record in batch.records():
                        yield record.key, record.value
            if not data:
                return  # compacted away
            if offset == before:
                raise CorruptRecordError(f"{log.partition}: no batch at offset {offset}")
