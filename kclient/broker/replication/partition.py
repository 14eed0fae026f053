"""Partition hosted by this broker."""

from dataclasses import dataclass
from typing import NamedTuple

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import AppendOrigin, LogAppendInfo, LogBounds
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.fetch_params import (
    FetchIsolation,
    FetchPartition,
    FetchResult,
)
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kclient.common.files import FileSlice, WirePart
from kclient.common.runtime import Condition
from kclient.common.types import OffsetAndTimestamp, TopicPartition

ACKS_ALL = -1

_SENDFILE_FROM = 16 * 1024
"""Below this size, one write of header and records is faster than a separate sendfile."""


class EpochEndOffset(NamedTuple):
    """End offset of a leader epoch (Kafka: OffsetForLeaderEpochResponse.EpochEndOffset)."""

    leader_epoch: int
    end_offset: int


@dataclass(slots=True)
class ReplicaState:
    """Progress of one replica, as the leader knows it (Kafka: Replica.ReplicaState).

    Attributes:
        log_end_offset: End offset of the replica's log. For the local replica, the end of the
            records that are flushed as flush.messages requires; for a follower, its fetch offset.
    """

    log_end_offset: int = -1


class Partition:
    """Partition with a replica on this broker (Kafka: Partition).

    The high watermark is the minimum of the in-sync replicas' log end offsets. The lock guards the
    registration, the replica states and the count of bytes; the log has a lock of its own, which is
    acquired after this one.

    Attributes:
        topic_partition: Topic and partition number.
        topic_id: Topic id, 16 bytes.
        log: Log of the local replica.
        replicas: State of each replica by broker id.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        node_id: int,
        log: UnifiedLog,
        lock: Condition,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._node_id = node_id
        self._lock = lock
        self._leader = -1
        self._leader_epoch = -1
        self._local = ReplicaState(log.log_end_offset)
        self.replicas: dict[int, ReplicaState] = {node_id: self._local}
        self._isr: tuple[int, ...] = ()
        self._in_sync: list[ReplicaState] = []
        self._appended_bytes = 0
        self._min_isr = log.config.min_insync_replicas

    @property
    def leader_epoch(self) -> int:
        """Current leader epoch."""
        return self._leader_epoch

    @property
    def leader(self) -> int:
        """Node id of the leader, -1 for none."""
        return self._leader

    @property
    def appended_bytes(self) -> int:
        """Number of bytes appended since the broker started."""
        return self._appended_bytes

    def apply(self, registration: PartitionRegistration) -> None:
        """Apply a change of the cluster metadata."""
        with self._lock:
            self._leader = registration.leader
            self._leader_epoch = registration.leader_epoch
            self._isr = registration.isr
            known = self.replicas
            self.replicas = {
                replica: known.get(replica) or ReplicaState()
                for replica in (*registration.replicas, self._node_id)
            }
            self._in_sync = [self.replicas[replica] for replica in self._isr]
            self._advance_high_watermark()

    def configure(self, config: LogConfig) -> None:
        """Replace the topic configuration."""
        self.log.config = config
        self._min_isr = config.min_insync_replicas

    def append_records_to_leader(
        self, records: MemoryRecords, required_acks: int, origin: AppendOrigin = "client"
    ) -> tuple[LogAppendInfo, int]:
        """Append record batches as the leader; return that and the high watermark after it.

        Raises:
            KafkaStorageError: The disk failed. If only the flush failed, the records are in the
                log, above the high watermark; see `flush_local_replica`.
            KafkaError: The records were rejected; nothing was written.
        """
        with self._lock:
            if self._leader != self._node_id:
                raise self._not_leader()
            if required_acks == ACKS_ALL and len(self._isr) < self._min_isr:
                raise self._not_enough_replicas()
            info = self.log.append_as_leader(records, self._leader_epoch, origin=origin)
            self._appended_bytes += records.size_in_bytes
            self._local.log_end_offset = self.log.log_end_offset
            return info, self._advance_high_watermark()

    def _not_enough_replicas(self) -> NotEnoughReplicasError:
        return NotEnoughReplicasError(
            f"The size of the current ISR {len(self._isr)} is insufficient to satisfy the "
            f"min.isr requirement of {self._min_isr} for partition {self.topic_partition}"
        )

    def flush_local_replica(self) -> None:
        """Flush records whose append failed in its flush, and advance the high watermark.

        Raises:
            KafkaError: The flush failed, or the log is closed.
        """
        with self._lock:
            end_offset = self.log.log_end_offset
            if self._local.log_end_offset < end_offset:
                self.log.flush()
                self._local.log_end_offset = end_offset
                self._advance_high_watermark()

    def update_follower(self, replica: int, fetch_offset: int) -> None:
        """Record the offset that a follower fetches from: it has all records before it.

        Raises:
            NotLeaderOrFollowerError: The broker has no replica of this partition.
        """
        with self._lock:
            state = self.replicas.get(replica)
            if state is None or state is self._local:
                raise NotLeaderOrFollowerError(
                    f"broker {replica} is not a follower of {self.topic_partition}"
                )
            state.log_end_offset = fetch_offset
            self._advance_high_watermark()

    def is_committed(self, end_offset: int) -> bool:
        """Return whether all records before an offset are committed.

        Raises:
            NotLeaderOrFollowerError: This broker is not the leader any more.
            NotEnoughReplicasAfterAppendError: They are, by fewer than min.insync.replicas.
        """
        self._check_leader()
        if self.log.high_watermark < end_offset:
            return False
        if len(self._isr) < self._min_isr:
            raise NotEnoughReplicasAfterAppendError
        return True

    def fetch_records(
        self, wanted: FetchPartition, isolation: FetchIsolation, limit: int, *, at_least_one: bool
    ) -> FetchResult:
        """Read complete batches, starting at an offset.

        Args:
            wanted: Offset to read from, and the leader epoch the client knows.
            isolation: Upper bound of the read.
            limit: Maximum number of bytes.
            at_least_one: Whether the first batch is returned even if it is larger than `limit`.

        Raises:
            OffsetOutOfRangeError: The offset is outside the log.
            KafkaError: This broker is not the leader in the client's epoch.
        """
        self.check_leader_epoch(wanted.current_leader_epoch)
        log, offset = self.log, wanted.fetch_offset
        appended_bytes = self._appended_bytes  # what follows from now on is new
        bounds = log.bounds()
        diverging = self._diverging(wanted) if wanted.last_fetched_epoch >= 0 else None
        records: WirePart = b""
        aborted: list[tuple[int, int]] | None = None
        if diverging is None:
            if not bounds.log_start_offset <= offset <= log.log_end_offset:
                raise self._out_of_range(offset, bounds.log_start_offset)
            is_committed = isolation is FetchIsolation.TXN_COMMITTED
            end = self._readable_end(bounds, isolation)
            if offset < end:
                found = log.read(
                    offset,
                    limit,
                    min_one_message=at_least_one,
                    max_offset=end,
                    include_aborted=is_committed,
                )
                records = _small_in_memory(found.records)
                aborted = found.aborted() if is_committed else None
            else:
                # As for most partitions of a consumer that has read everything.
                log.check_usable()
                aborted = [] if is_committed else None
        return FetchResult(None, *bounds, records, aborted, diverging, appended_bytes)

    def _out_of_range(self, offset: int, log_start_offset: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"Received request for offset {offset} for partition {self.topic_partition}, but we "
            f"only have log segments from offset {log_start_offset} to {self.log.log_end_offset}."
        )

    def readable_end(self, isolation: FetchIsolation) -> int:
        """Return the first offset that is not readable with an isolation level."""
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.log.high_watermark
        return self._readable_end(self.log.bounds(), isolation)

    def check_leader_epoch(self, epoch: int) -> None:
        """Check the leader epoch of a client; -1 is unknown and always valid.

        Raises:
            KafkaError: This broker is not the leader, or not in that epoch.
        """
        self._check_leader()
        if epoch < 0 or epoch == self._leader_epoch:
            return
        if epoch < self._leader_epoch:
            raise FencedLeaderEpochError(
                f"{self.topic_partition}: got leader epoch {epoch}, current is {self._leader_epoch}"
            )
        raise UnknownLeaderEpochError(
            f"{self.topic_partition}: got leader epoch {epoch}, current is {self._leader_epoch}"
        )

    def earliest_offset(self) -> OffsetAndTimestamp:
        """Return the log start offset."""
        return self.log.earliest_offset()

    def latest_offset(self, isolation: FetchIsolation) -> OffsetAndTimestamp:
        """Return the first offset that is not readable with an isolation level."""
        return OffsetAndTimestamp(self.readable_end(isolation), -1, self._leader_epoch)

    def max_timestamp_offset(self) -> OffsetAndTimestamp | None:
        """Return the record with the maximum timestamp, or None if there is none."""
        return self.log.offset_of_max_timestamp()

    def offset_for_timestamp(self, timestamp: int, end: int) -> OffsetAndTimestamp | None:
        """Return the first record at or after a timestamp and before offset `end`, or None."""
        found = self.log.offset_for_timestamp(timestamp)
        return None if found is None or found.offset >= end else found

    def last_offset_for_leader_epoch(self, current: int, wanted: int) -> EpochEndOffset:
        """Return the largest epoch not above `wanted`, and its end offset.

        Raises:
            KafkaError: This broker is not the leader in epoch `current`.
        """
        self.check_leader_epoch(current)
        epoch, end_offset = self.log.end_offset_for_epoch(wanted)
        return EpochEndOffset(epoch, end_offset)

    def delete_records(self, offset: int) -> int:
        """Delete records before an offset, -1 for the high watermark; return the log start offset.

        Raises:
            PolicyViolationError: The topic is compacted only.
            OffsetOutOfRangeError: The offset is beyond the high watermark.
        """
        self._check_leader()
        log = self.log
        if "delete" not in log.config.cleanup_policy:
            raise PolicyViolationError("the topic's cleanup.policy does not contain delete")
        high_watermark = log.high_watermark
        wanted = high_watermark if offset == -1 else offset
        if not 0 <= wanted <= high_watermark:
            raise OffsetOutOfRangeError(
                f"The offset {offset} for partition {self.topic_partition} is out of range."
            )
        return log.delete_records_before(wanted)

    def _check_leader(self) -> None:
        if self._leader != self._node_id:
            raise self._not_leader()

    def _not_leader(self) -> NotLeaderOrFollowerError:
        return NotLeaderOrFollowerError(
            f"Leader of partition {self.topic_partition} is broker {self._leader}"
        )

    def _advance_high_watermark(self) -> int:
        """Advance the high watermark to what all in-sync replicas have, and return it."""
        in_sync = self._in_sync
        if self._leader != self._node_id or not in_sync:
            return self.log.high_watermark
        committed = in_sync[0].log_end_offset
        if len(in_sync) > 1:
            committed = min([replica.log_end_offset for replica in in_sync])
        return self.log.advance_high_watermark(committed)

    def _readable_end(self, bounds: LogBounds, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.TXN_COMMITTED:
            return bounds.last_stable_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return bounds.high_watermark
        return self.log.log_end_offset

    def _diverging(self, wanted: FetchPartition) -> tuple[int, int] | None:
        epoch, end_offset = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if end_offset < 0:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: epoch {wanted.last_fetched_epoch} is before its log"
            )
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return epoch, end_offset
        return None


def _small_in_memory(records: FileSlice | bytes) -> WirePart:
    """Return records with few bytes as bytes."""
    if isinstance(records, FileSlice) and len(records) < _SENDFILE_FROM:
        return records.read()
    return records
