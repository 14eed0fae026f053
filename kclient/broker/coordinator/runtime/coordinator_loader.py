"""Loading of a coordinator from its log, in steps."""

from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice

from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorShard
from kclient.broker.coordinator.runtime.latest_records import LatestRecords, LoadedRecord
from kclient.broker.coordinator.runtime.partition_log import PartitionLog
from kclient.common.broker_errors import UnknownLeaderEpochError

_RECORDS_PER_STEP = 10_000


class LoadProgress(Enum):
    """Result of one step of loading."""

    RUNNING = auto()
    """The next step has work to do."""
    WAITING = auto()
    """The log is read, but its end is not committed yet; or this broker does not lead it yet."""
    LOADED = auto()
    """The shard has all records of the log, and all are committed."""
    RETRYING = auto()
    """The step failed for lack of disk space or descriptors, and changed nothing."""


class CoordinatorLoader:
    """Loads a shard from its partition in one leader epoch (Kafka: CoordinatorLoader).

    It reads up to the log end offset. The high watermark of a new leader may be below that of the
    previous one; responses before it has passed the end of what was read could lack acknowledged
    records. Of the versions of a key only the last is decoded (`LatestRecords`): a log contains
    many versions of an offset, and decoding costs more than reading.

    Args:
        log: Log of the coordinator.
        partition: Partition.
        leader_epoch: Leader epoch in which this broker leads the partition.
        shard: Receives the records.

    Attributes:
        end_offset: End offset of what was read, -1 before the first step.
    """

    def __init__(
        self, log: PartitionLog, partition: int, leader_epoch: int, shard: CoordinatorShard
    ) -> None:
        self._log = log
        self._partition = partition
        self._leader_epoch = leader_epoch
        self._shard = shard
        self._latest = LatestRecords()
        self._applying: Iterator[LoadedRecord] | None = None
        self.end_offset = -1

    def step(self) -> LoadProgress:
        """Read at most one chunk of the log, or apply a bounded number of records.

        Raises:
            NotLeaderOrFollowerError: This broker is not the leader.
            FencedLeaderEpochError: It leads the partition in a later epoch.
            KafkaError: The log cannot be read.
        """
        try:
            bounds = self._log.bounds(self._partition, self._leader_epoch)
        except UnknownLeaderEpochError:
            return LoadProgress.WAITING
        if self._applying is not None:
            self._apply()
            return LoadProgress.RUNNING
        self.end_offset = max(self.end_offset, bounds.log_start_offset)
        if self.end_offset < bounds.log_end_offset:
            self._read(bounds.log_end_offset)
            return LoadProgress.RUNNING
        if self._latest.has_any:
            for producer_id, committed in self._latest.take_ended().items():
                self._shard.end_transaction(producer_id, committed=committed)
            self._applying = self._latest.take_records()
            return LoadProgress.RUNNING
        if bounds.high_watermark < self.end_offset:
            return LoadProgress.WAITING
        return LoadProgress.LOADED

    def _read(self, log_end_offset: int) -> None:
        chunk = self._log.read(self._partition, self.end_offset)
        for batch in chunk.batches:
            self._latest.add(batch)
        # Without progress the rest of the log was compacted away.
        more = chunk.next_offset > self.end_offset
        self.end_offset = chunk.next_offset if more else log_end_offset

    def _apply(self) -> None:
        applied = 0
        for record in islice(self._applying or (), _RECORDS_PER_STEP):
            self._shard.load(*record)
            applied += 1
        if applied < _RECORDS_PER_STEP:
            self._applying = None
