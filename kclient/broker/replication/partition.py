"""Partition hosted by this broker."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import AppendOrigin, LogAppendInfo, LogBounds
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.transaction_verification import VerificationGuard
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.fetch_params import (
    FetchIsolation,
    FetchPartition,
    FetchResult,
)
from kclient.broker.replication.in_sync_replicas import InSyncReplicas
from kclient.broker.replication.replica_state import ReplicaState
from kclient.broker.replication.replication_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    ReplicationContext,
)
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kclient.common.errors import InvalidOffsetError
from kclient.common.files import FileSlice, WireBytes, WirePart
from kclient.common.runtime import Condition
from kclient.common.types import OffsetAndTimestamp, TopicPartition

ACKS_ALL = -1

_SENDFILE_FROM = 16 * 1024
"""Below this size, one write of header and records is faster than a separate sendfile."""


class EpochEndOffset(NamedTuple):
    """End offset of a leader epoch (Kafka: OffsetForLeaderEpochResponse.EpochEndOffset)."""

    leader_epoch: int
    end_offset: int


class Partition:
    """Partition with a replica on this broker (Kafka: Partition).

    Metadata, append, fetch and the responses of the controller change it in different threads. The
    lock guards leadership and the replicas; the log has a lock of its own, which is acquired after
    this one. The functions of the context are called without the lock.

    Attributes:
        topic_partition: Topic and partition number.
        topic_id: Topic id, 16 bytes.
        log: Log of the local replica.
        in_sync: The replicas and the ISR; only the leader's are up to date.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        context: ReplicationContext,
        log: UnifiedLog,
        lock: Condition,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._context = context
        self._node_id = context.node_id
        self._lock = lock
        self._leader = -1
        self._leader_epoch = -1
        self._local = ReplicaState(log.log_end_offset)
        self.in_sync = InSyncReplicas(context, self._local, log.config.min_insync_replicas)
        # Both are copied from `in_sync` when it changes, for the append.
        self._is_local_only = self._is_under_min_isr = False

    @property
    def replicas(self) -> Mapping[int, ReplicaState]:
        """State of each replica by broker id."""
        return self.in_sync.replicas

    @property
    def leader_epoch(self) -> int:
        """Current leader epoch."""
        return self._leader_epoch

    @property
    def leader(self) -> int:
        """Node id of the leader, -1 for none."""
        return self._leader

    @property
    def is_leader(self) -> bool:
        """Whether this broker is the leader."""
        return self._leader == self._node_id

    def apply(self, registration: PartitionRegistration) -> bool:
        """Apply a change of the cluster metadata (Kafka: makeLeader, makeFollower).

        An older partition epoch is ignored; the present one has been applied, by the metadata or by
        a response of the controller.

        Returns:
            Whether a leader epoch has begun, for this broker as leader or as follower.

        """
        with self._lock:
            in_sync = self.in_sync
            if registration.partition_epoch <= in_sync.partition_epoch:
                return False
            is_new_epoch = registration.leader_epoch > self._leader_epoch
            leads = registration.leader == self._node_id
            if leads and is_new_epoch:
                # Followers with records of later epochs than any of these must find out where to
                # truncate, also before the first append.
                self.log.assign_epoch_start(registration.leader_epoch)
            self._leader, self._leader_epoch = registration.leader, registration.leader_epoch
            in_sync.assign(registration)
            if not leads:
                in_sync.end_epoch()
            elif is_new_epoch:
                self._local.log_end_offset = end_offset = self.log.log_end_offset
                in_sync.begin_epoch(end_offset, self._context.now_ms())
            self._copy_counts()
            self._advance_high_watermark()
            return is_new_epoch

    def configure(self, config: LogConfig) -> None:
        """Replace the topic configuration."""
        with self._lock:
            self.log.config = config
            self.in_sync.configure(config.min_insync_replicas)
            self._copy_counts()

    def append_records_to_leader(
        self,
        records: MemoryRecords,
        required_acks: int,
        origin: AppendOrigin = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> tuple[LogAppendInfo, int, int]:
        """Append record batches as the leader; return it, the high watermark and leader epoch.

        Raises:
            KafkaStorageError: The disk failed. If only the flush failed, the records are in the
                log, above the high watermark; see `flush_local_replica`.
            KafkaError: The records were rejected; nothing was written.
        """
        with self._lock:
            if self._leader != self._node_id:
                raise self._not_leader()
            if required_acks == ACKS_ALL and self._is_under_min_isr:
                raise self._not_enough_replicas()
            info = self.log.append_as_leader(
                records,
                self._leader_epoch,
                origin=origin,
                transaction_version=transaction_version,
                guard=guard,
            )
            self._local.log_end_offset = self.log.log_end_offset
            return info, self._advance_high_watermark(), self._leader_epoch

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """Return the guard of an append, as `ProducerStateManager.begin_verification`.

        Raises:
            NotLeaderOrFollowerError: This broker is not the leader.
        """
        with self._lock:
            self._check_leader()
            return self.log.begin_verification(
                producer_id, epoch, sequence, supports_epoch_bump=supports_epoch_bump
            )

    def _not_enough_replicas(self) -> NotEnoughReplicasError:
        in_sync = self.in_sync
        return NotEnoughReplicasError(
            f"The size of the current ISR {len(in_sync.isr)} is insufficient to satisfy the "
            f"min.isr requirement of {in_sync.min_isr} for partition {self.topic_partition}"
        )

    def append_records_to_follower(
        self, records: WireBytes, leader_epoch: int, fetch_offset: int
    ) -> LogAppendInfo | None:
        """Append batches that were fetched from the leader, unchanged.

        Args:
            records: The batches.
            leader_epoch: Epoch in which they were fetched.
            fetch_offset: Offset from which they were fetched.

        Raises:
            NotLeaderOrFollowerError: The epoch has ended, this broker is the leader, or the log was
                closed.
            InvalidOffsetError: The log does not end at the fetch offset, or the batches do not
                follow it.
            KafkaError: As `UnifiedLog.append_as_follower`.
        """
        with self._lock:
            self.check_followed_epoch(leader_epoch)
            if self.log.log_end_offset != fetch_offset:
                raise InvalidOffsetError(
                    f"{self.topic_partition}: fetched from offset {fetch_offset}, but the log ends "
                    f"at {self.log.log_end_offset}"
                )
            info = self.log.append_as_follower(records, leader_epoch)
            self._local.log_end_offset = self.log.log_end_offset
            return info

    def update_bounds_of_follower(
        self, high_watermark: int, log_start_offset: int, leader_epoch: int
    ) -> bool:
        """Take over high watermark and log start offset of the leader, after an append.

        Args:
            high_watermark: The leader's; it may be beyond this log's end, or fall in a new epoch.
            log_start_offset: The leader's.
            leader_epoch: Epoch in which they were fetched.

        Returns:
            Whether consumers and the leader may notice it.

        Raises:
            NotLeaderOrFollowerError: The epoch has ended.
            KafkaError: As `UnifiedLog.maybe_increment_log_start_offset`.
        """
        with self._lock:
            self.check_followed_epoch(leader_epoch)
            log = self.log
            before = log.high_watermark
            if high_watermark >= 0:
                log.high_watermark = high_watermark
            end_offset = log.log_end_offset
            moved = log.maybe_increment_log_start_offset(min(log_start_offset, end_offset))
            return moved or log.high_watermark != before

    def truncate_follower(self, truncate: Callable[[UnifiedLog], None], leader_epoch: int) -> None:
        """Truncate the log of a follower.

        Args:
            truncate: Truncates it.
            leader_epoch: Epoch of the leader that requires it.

        Raises:
            NotLeaderOrFollowerError: The epoch has ended.
            KafkaError: As `truncate`.
        """
        with self._lock:
            self.check_followed_epoch(leader_epoch)
            truncate(self.log)
            self._local.log_end_offset = self.log.log_end_offset

    def check_followed_epoch(self, leader_epoch: int) -> None:
        """Check that this broker follows the leader of an epoch.

        Raises:
            NotLeaderOrFollowerError: It is the leader, or the epoch is another one.
        """
        if self._leader == self._node_id or leader_epoch != self._leader_epoch:
            raise NotLeaderOrFollowerError(
                f"{self.topic_partition}: epoch {leader_epoch} of the leader has ended; it is "
                f"broker {self._leader} in epoch {self._leader_epoch}"
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

    def update_follower(
        self,
        replica: int,
        fetch_offset: int,
        *,
        log_start_offset: int = 0,
        broker_epoch: int = -1,
        leader_end_offset: int | None = None,
        leader_epoch: int | None = None,
    ) -> bool:
        """Record the offset that a follower fetches from: it has all records before it.

        The follower joins the ISR when it has caught up.

        Args:
            replica: Broker id of the follower.
            fetch_offset: Its log end offset.
            log_start_offset: Its log start offset.
            broker_epoch: Broker epoch of its request, -1 if unknown.
            leader_end_offset: Log end offset when the fetch was read; None for the present one.
            leader_epoch: Leader epoch in which it was read; None for the present one.

        Returns:
            Whether delayed operations may be complete.

        Raises:
            NotLeaderOrFollowerError: The broker has no replica of this partition, is of an earlier
                life, or this broker is not the leader in that epoch any more.
        """
        item: AlterPartitionItem | None = None
        with self._lock:
            self._check_leader()
            in_sync = self.in_sync
            state = in_sync.follower(replica)
            if state is None or leader_epoch not in {None, self._leader_epoch}:
                raise NotLeaderOrFollowerError(
                    f"broker {replica} is not a follower of {self.topic_partition}"
                )
            end_offset = self.log.log_end_offset
            seen = end_offset if leader_end_offset is None else leader_end_offset
            before = (self.log.high_watermark, state.log_start_offset)
            in_sync.update(replica, state, fetch_offset, log_start_offset, seen, broker_epoch)
            if in_sync.has_caught_up(replica, self.log.high_watermark):
                item = in_sync.propose((*in_sync.isr, replica), self._change_of_isr)
            after = (self._advance_high_watermark(), log_start_offset)
        if item is not None:
            self._context.alter_partition(item)
        return after != before

    def shrink_isr(self) -> None:
        """Ask the controller to remove the members of the ISR that lag.

        It is called each half of replica.lag.time.max.ms (Kafka: maybeShrinkIsr).
        """
        if self._is_local_only or not self.is_leader:
            return
        with self._lock:
            in_sync = self.in_sync
            if self._leader != self._node_id:
                return
            lagging = in_sync.lagging(self.log.log_end_offset)
            if not lagging:
                return
            isr = [each for each in in_sync.isr if each not in lagging]
            item = in_sync.propose(isr, self._change_of_isr)
        self._context.alter_partition(item)

    def low_watermark(self) -> int:
        """Return the lowest log start offset of the live replicas."""
        with self._lock:
            return self.in_sync.low_watermark(self.log.log_start_offset)

    def is_committed(self, end_offset: int, leader_epoch: int) -> bool:
        """Return whether all records before an offset are committed.

        Args:
            end_offset: The offset.
            leader_epoch: Leader epoch in which they were appended.

        Raises:
            NotLeaderOrFollowerError: This broker does not lead this epoch any more; the records may
                have been truncated in between.
            NotEnoughReplicasAfterAppendError: They are, by fewer than min.insync.replicas.
        """
        self._check_leader()
        if self._leader_epoch != leader_epoch:
            raise NotLeaderOrFollowerError(
                f"{self.topic_partition}: appended in leader epoch {leader_epoch}, it is "
                f"{self._leader_epoch} now"
            )
        if self.log.high_watermark < end_offset:
            return False
        in_sync = self.in_sync
        if len(in_sync.maximal_isr) < in_sync.min_isr:
            raise NotEnoughReplicasAfterAppendError
        return True

    def fetch_as_follower(
        self,
        replica: int,
        broker_epoch: int,
        wanted: FetchPartition,
        limit: int,
        *,
        at_least_one: bool,
    ) -> tuple[FetchResult, bool]:
        """Read for a follower up to the log end, and record its progress.

        It is recorded only if its log does not diverge, and after the read.

        Args:
            replica: Broker id of the follower.
            broker_epoch: Broker epoch of its request, -1 if unknown.
            wanted: As `fetch_records`.
            limit: As `fetch_records`.
            at_least_one: As `fetch_records`.

        Returns:
            The result, and whether delayed operations may be complete.

        Raises:
            UnknownLeaderEpochError: The broker has no replica; its metadata may be newer.
            KafkaError: As `fetch_records` and `update_follower`.
        """
        self.check_leader_epoch(wanted.current_leader_epoch)
        leader_epoch = self._leader_epoch
        if self.in_sync.follower(replica) is None and wanted.current_leader_epoch >= 0:
            raise UnknownLeaderEpochError(
                f"broker {replica} is not a follower of {self.topic_partition}"
            )
        end_offset = self.log.log_end_offset
        result = self.fetch_records(
            wanted, FetchIsolation.LOG_END, limit, at_least_one=at_least_one
        )
        if result.diverging_epoch is not None:
            return result, False
        changed = self.update_follower(
            replica,
            wanted.fetch_offset,
            log_start_offset=wanted.log_start_offset,
            broker_epoch=broker_epoch,
            leader_end_offset=end_offset,
            leader_epoch=leader_epoch,
        )
        return result._replace(high_watermark=self.log.high_watermark), changed

    def fetch_records(
        self,
        wanted: FetchPartition,
        isolation: FetchIsolation,
        limit: int,
        *,
        at_least_one: bool,
        only_leader: bool = True,
    ) -> FetchResult:
        """Read complete batches, starting at an offset.

        Args:
            wanted: Offset to read from, and the leader epoch the client knows.
            isolation: Upper bound of the read.
            limit: Maximum number of bytes.
            at_least_one: Whether the first batch is returned even if it is larger than `limit`.
            only_leader: Whether only the leader may be read; a follower is read up to its own
                high watermark (KIP-392).

        Raises:
            OffsetOutOfRangeError: The offset is outside the log.
            KafkaError: This broker is not the leader in the client's epoch.
        """
        self.check_leader_epoch(wanted.current_leader_epoch, only_leader=only_leader)
        log, offset = self.log, wanted.fetch_offset
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
        return FetchResult(None, *bounds, records, aborted, diverging)

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

    def check_leader_epoch(self, epoch: int, *, only_leader: bool = True) -> None:
        """Check the leader epoch of a client; -1 is unknown and always valid.

        Raises:
            FencedLeaderEpochError: The client's epoch is older.
            UnknownLeaderEpochError: It is newer.
            NotLeaderOrFollowerError: This broker is not the leader, if `only_leader`.
        """
        current = self._leader_epoch
        if 0 <= epoch != current:
            kind = FencedLeaderEpochError if epoch < current else UnknownLeaderEpochError
            raise kind(f"{self.topic_partition}: got leader epoch {epoch}, current is {current}")
        if only_leader and self._leader != self._node_id:
            raise self._not_leader()

    def earliest_offset(self) -> OffsetAndTimestamp:
        """Return the log start offset."""
        return self.log.earliest_offset()

    def latest_offset(self, isolation: FetchIsolation) -> OffsetAndTimestamp:
        """Return the first offset that is not readable with an isolation level.

        Raises:
            OffsetNotAvailableError: As `check_high_watermark`.
        """
        self.check_high_watermark(isolation)
        return OffsetAndTimestamp(self.readable_end(isolation), -1, self._leader_epoch)

    def check_high_watermark(self, isolation: FetchIsolation) -> None:
        """Check that the high watermark has reached the beginning of the leader epoch (KIP-207).

        Until then the end that clients read may be below the one that they have read before.

        Raises:
            OffsetNotAvailableError: It has not.
        """
        if isolation is FetchIsolation.LOG_END:
            return
        start, high_watermark = self.in_sync.epoch_start_offset, self.log.high_watermark
        if high_watermark < start:
            raise OffsetNotAvailableError(
                f"Failed to fetch offsets for {self.topic_partition}: the high watermark "
                f"{high_watermark} is below the start offset {start} of the leader epoch"
            )

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
        """Advance the high watermark of the leader to what all replicas that count have."""
        log = self.log
        if self._leader != self._node_id:
            return log.high_watermark
        if self._is_local_only and not self._is_under_min_isr:
            return log.advance_high_watermark(self._local.log_end_offset)
        return log.advance_high_watermark(self.in_sync.committed_end(log.log_end_offset))

    def _copy_counts(self) -> None:
        self._is_local_only = self.in_sync.is_local_only
        self._is_under_min_isr = self.in_sync.is_under_min_isr

    def _change_of_isr(
        self, partition_epoch: int, isr: tuple[tuple[int, int], ...]
    ) -> AlterPartitionItem:
        return AlterPartitionItem(
            self.topic_partition,
            self.topic_id,
            self._leader_epoch,
            partition_epoch,
            isr,
            self._on_isr_result,
        )

    def _on_isr_result(self, item: AlterPartitionItem, result: AlterPartitionResult) -> bool:
        """Apply the controller's response; return whether to send the request again."""
        with self._lock:
            before = self.log.high_watermark
            retry = self.in_sync.on_result(item, self._leader_epoch, result)
            self._copy_counts()
            advanced = self._advance_high_watermark() > before
        if advanced:
            self._context.changed(self.topic_partition)
        return retry

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
