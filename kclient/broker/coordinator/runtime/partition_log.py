"""Log of a coordinator: the partitions of an internal topic."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from kclient.broker.log.memory_records import MemoryRecords, keyed_batch
from kclient.broker.replication.partition import ACKS_ALL
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    CorruptRecordError,
    KafkaStorageError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.record import read_batches

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

KeyAndValue = tuple[bytes, bytes | None]


class PartitionLog(Protocol):
    """Partitions of a coordinator's topic."""

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic, or of the topic to be created."""
        ...

    def append(
        self,
        partition: int,
        records: Sequence[KeyAndValue],
        on_done: Callable[[KafkaError | None], None],
    ) -> None:
        """Append records in one batch; `on_done` is called when they are committed or failed."""
        ...

    def read(self, partition: int) -> Iterable[tuple[WireBytes | None, WireBytes | None]]:
        """Return keys and values of a whole partition, oldest first."""
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

    def append(
        self,
        partition: int,
        records: Sequence[KeyAndValue],
        on_done: Callable[[KafkaError | None], None],
    ) -> None:
        """Append records in one batch; `on_done` is called when they are committed or failed.

        Errors are those that clients of a coordinator handle: COORDINATOR_NOT_AVAILABLE is retried,
        NOT_COORDINATOR makes them look up the coordinator again.
        """
        key = TopicPartition(self._topic, partition)
        batch = keyed_batch(self._clock.wall_ms(), records)
        self._replicas.append_records(
            ACKS_ALL,
            {key: MemoryRecords(batch)},
            _NO_TIMEOUT_MS,
            lambda results: on_done(_coordinator_error(key, results[key].error)),
            "coordinator",
        )

    def read(self, partition: int) -> Iterator[tuple[WireBytes | None, WireBytes | None]]:
        """Yield keys and values of a whole partition, oldest first; none if it does not exist."""
        try:
            log = self._replicas.partition(TopicPartition(self._topic, partition)).log
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


def _coordinator_error(key: TopicPartition, error: KafkaError | None) -> KafkaError | None:
    if isinstance(error, _NOT_AVAILABLE):
        return CoordinatorNotAvailableError(f"{key}: the write is not committed: {error}")
    if isinstance(error, _NOT_COORDINATOR):
        return NotCoordinatorError(f"{key} cannot be written: {error}")
    return error
