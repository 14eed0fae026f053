"""Log of one partition (Kafka: UnifiedLog)."""

from pathlib import Path

from kclient.broker.log.follower_appender import FollowerAppender
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_cleaning import LogCleaning
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.log_maintenance import LogMaintenance
from kclient.broker.log.log_offset_metadata import (
    AppendOrigin,
    FetchDataInfo,
    LogAppendInfo,
    LogBounds,
)
from kclient.broker.log.log_state import LogState
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS, ProducerLimits
from kclient.broker.log.transaction_verification import VerificationGuard
from kclient.common.broker_errors import OffsetOutOfRangeError
from kclient.common.files import WireBytes
from kclient.common.runtime import Runtime
from kclient.common.types import OffsetAndTimestamp, TopicPartition

_NO_TIMESTAMP = -1


class UnifiedLog:
    """Log of a partition: append by leader or follower, read by offset, truncation at both ends.

    One condition guards segments, indexes, producer state, leader epochs and offsets. It is not
    held while batches are transferred to consumers, nor during fsync.

    Attributes:
        partition: The partition.
        maintenance: Flush, retention, deletion.
        cleaning: Compaction.
    """

    def __init__(
        self,
        runtime: Runtime,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        failures: LogDirFailureChannel,
        producers: ProducerLimits = DEFAULT_LIMITS,
    ) -> None:
        state = LogState(runtime, directory, partition, config, failures, producers)
        self.partition = partition
        self._state = state
        self._lock = state.lock
        self._local = state.local
        self._epochs = state.epochs
        self._appender = LogAppender(runtime.clock, state.local, state.producers, state.epochs)
        self._follower = FollowerAppender(state, self._appender)
        self.maintenance = LogMaintenance(state, self._appender)
        self.cleaning = LogCleaning(state, self._appender)

    def load(self, checkpoint: LogCheckpoint | None = None) -> None:
        """Open or create the files of the directory, and recover them after a crash.

        Args:
            checkpoint: Checkpointed state of the log; None to recover all segments.

        Raises:
            KafkaStorageError: A file could not be read or written.
            CorruptRecordError: After a clean shutdown, batches are damaged.
            InconsistentTopicIdError: partition.metadata cannot be read.
        """
        state = self._state
        with state.locked("load"):
            state.load(checkpoint or LogCheckpoint())

    @property
    def directory(self) -> Path:
        """Directory of the files."""
        return self._local.directory

    @property
    def config(self) -> LogConfig:
        """Topic configuration."""
        return self._local.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        with self._lock:
            self._local.config = config

    def limit_producers(self, limits: ProducerLimits) -> None:
        """Replace the limits of the producers."""
        with self._lock:
            self._state.producers.limits = limits

    @property
    def topic_id(self) -> bytes | None:
        """Topic id, 16 bytes, or None if none is assigned."""
        return self._state.topic_id

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Assign the topic id.

        It is written to partition.metadata before the first record, or by the next periodic flush
        (Kafka: PartitionMetadataFile.maybeFlush): an immediate flush would slow down the creation
        of many partitions.

        Raises:
            InconsistentTopicIdError: The directory belongs to another topic of that name.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        with self._state.locked("assign topic id"):
            self._state.assign_topic_id(topic_id)

    @property
    def log_start_offset(self) -> int:
        """Log start offset: first offset that can be read."""
        return self._state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Log end offset: offset of the next record."""
        return self._local.log_end_offset

    @property
    def first_segment_base_offset(self) -> int:
        """Base offset of the first segment; the log start offset may be above it."""
        return self._local.first_offset

    @property
    def high_watermark(self) -> int:
        """High watermark: offset up to which records are replicated and visible to consumers."""
        return self._state.high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        with self._lock:
            self._state.set_high_watermark(offset)

    def advance_high_watermark(self, offset: int) -> int:
        """Set the high watermark if it is below an offset; return it."""
        state = self._state
        if offset > state.high_watermark:
            with self._lock:
                state.set_high_watermark(offset)
        return state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: all transactions before it are completed (read_committed)."""
        with self._lock:
            return self._state.last_stable_offset()

    def bounds(self) -> LogBounds:
        """Return the offsets that a fetch returns.

        Without transactions it does not acquire the lock, which the maintenance holds while it
        writes files: a fetch of many partitions would wait at each of them.
        """
        state = self._state
        high_watermark = state.high_watermark  # before the transactions, which precede it
        if state.producers.first_unstable_offset is None:
            return LogBounds(high_watermark, high_watermark, state.log_start_offset)
        with self._lock:
            return LogBounds(
                state.high_watermark, state.last_stable_offset(), state.log_start_offset
            )

    def active_producers(self) -> list[ProducerStateEntry]:
        """Return copies of the states of all producers."""
        with self._lock:
            return [entry.copy() for entry in self._state.producers.entries.values()]

    def check_usable(self) -> None:
        """Check that the log can be read, as `read` does.

        Raises:
            KafkaStorageError: The directory is offline.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        self._state.check_usable()

    @property
    def latest_epoch(self) -> int | None:
        """Latest leader epoch of the records, or None."""
        with self._lock:
            return self._epochs.latest_epoch

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        with self._lock:
            return self._local.size_in_bytes()

    def append_as_leader(
        self,
        records: WireBytes | MemoryRecords,
        leader_epoch: int,
        *,
        origin: AppendOrigin = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Append the batches of a request, all or none.

        Args:
            records: Whole batches, parsed or not; offsets and epoch are written into this
                memory if it is writable, else into a copy.
            leader_epoch: Epoch of this leader.
            origin: Origin of the append; coordinators may write control batches, and out of order.
            transaction_version: ``transaction.version`` of the transaction that a marker ends.
            guard: Guard of the append to a transaction (`begin_verification`); None if
                transactions are not verified.

        Raises:
            CorruptRecordError: A checksum is wrong, or the bytes are not a batch.
            RecordTooLargeError: A batch is larger than max.message.bytes.
            RecordBatchTooLargeError: Together they are larger than a segment.
            InvalidRecordError: A batch is inconsistent, or of a kind that clients may not write.
            RecordValidationError: The key or timestamp of single records is invalid.
            UnsupportedForMessageFormatError: A batch has an older format.
            InvalidProducerEpochError: The producer is fenced by a later epoch.
            OutOfOrderSequenceError: Records before these are missing.
            InvalidTxnStateError: The transaction is neither open nor verified, or the batch is not
                part of the open one.
            TransactionCoordinatorFencedError: A marker is of an earlier coordinator epoch.
            KafkaStorageError: The disk failed, or is full; nothing was appended, unless only the
                flush of ``flush.messages`` failed.
        """
        if not isinstance(records, MemoryRecords):
            records = MemoryRecords(records)
        # Not by `locked`: a context manager costs more than the checks it makes.
        state = self._state
        with self._lock:
            state.check_usable()
            try:
                if state.has_unwritten_topic_id:
                    state.write_topic_id()
                info = self._appender.append(
                    records, leader_epoch, origin, transaction_version, guard
                )
            except OSError as problem:
                raise state.storage_error("append", problem) from problem
            info.log_start_offset = state.log_start_offset
            must_flush = self._local.must_flush
        if must_flush:
            # Also for a duplicate: it may be a retry after a failed flush.
            self.flush()
        return info

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """Return the guard of an append, as `ProducerStateManager.begin_verification`."""
        with self._lock:
            return self._state.producers.begin_verification(
                producer_id, epoch, sequence, supports_epoch_bump=supports_epoch_bump
            )

    def append_as_follower(
        self, records: WireBytes, leader_epoch: int, *, verify: bool = True
    ) -> LogAppendInfo | None:
        """Append the batches that were fetched from a leader, unchanged; all or none.

        Base offsets may be above the log end offset, where the leader's log is compacted. The first
        batch may begin before the end of an empty log, which then begins with the batch. Batches
        of an epoch above `leader_epoch`, and all that follow, are left out.

        Args:
            records: Batches; an incomplete one at the end is left out.
            leader_epoch: Epoch in which they were fetched.
            verify: Whether to verify checksums.

        Returns:
            Offsets of the batches, or None if nothing was appended.

        Raises:
            CorruptRecordError: A checksum is wrong, or the bytes are not a batch.
            UnsupportedForMessageFormatError: A batch has an older format.
            InvalidOffsetError: The offsets do not ascend from the log end offset on.
            KafkaStorageError: The disk failed, or is full; nothing was appended, unless only the
                flush of ``flush.messages`` failed.
        """
        received = MemoryRecords(records, writable=False)
        state = self._state
        with state.locked("append as follower"):
            if state.has_unwritten_topic_id:
                state.write_topic_id()
            info = self._follower.append(received, leader_epoch, verify=verify)
            must_flush = self._local.must_flush
        if must_flush:
            self.flush()
        return info

    def assign_epoch_start(self, epoch: int) -> None:
        """Let a leader epoch start at the log end offset, unless it is known already.

        The checkpoint is written with the first record of the epoch.
        """
        with self._lock:
            self._epochs.begin(epoch, self._local.log_end_offset)

    def read(
        self,
        start_offset: int,
        max_length: int,
        *,
        min_one_message: bool = True,
        max_offset: int | None = None,
        include_aborted: bool = False,
    ) -> FetchDataInfo:
        """Return batches as a slice of the file, starting with the one that contains an offset.

        Args:
            start_offset: First offset to read.
            max_length: Maximum bytes; it may cut off the last of several batches.
            min_one_message: Return the first batch even if it is larger (KIP-74).
            max_offset: End of the readable range, exclusive: high watermark or last stable offset
                for consumers; None for the log end offset.
            include_aborted: Return overlapping aborted transactions.

        Raises:
            OffsetOutOfRangeError: The offset is not in the log.
            CorruptRecordError: A batch in the file is damaged.
            KafkaStorageError: The disk failed.
        """
        state, local = self._state, self._local
        with self._lock:
            state.check_usable()
            log_end = local.log_end_offset
            if not state.log_start_offset <= start_offset <= log_end:
                raise OffsetOutOfRangeError(
                    f"{self.partition}: got offset {start_offset}, expected "
                    f"{state.log_start_offset} to {log_end}"
                )
            try:
                end = local.position_of(log_end if max_offset is None else min(max_offset, log_end))
                info = local.read(start_offset, max_length, end, min_one_message=min_one_message)
                if include_aborted:
                    info.aborted_transactions = local.collect_aborted_transactions(info)
            except OSError as problem:
                raise state.storage_error("read", problem) from problem
            return info

    def size_between(self, offset: int, end: int) -> int:
        """Return the number of bytes from the batch of an offset up to an end offset.

        If they are in several segments, it is at least the size of a segment: a fetch of them does
        not wait for more.

        Raises:
            OffsetOutOfRangeError: The offset is not in the log any more.
            KafkaStorageError: The disk failed.
        """
        state, local = self._state, self._local
        with self._lock:
            state.check_usable()
            try:
                first = local.position_of(offset)
                last = local.position_of(min(end, local.log_end_offset))
            except OSError as problem:
                raise state.storage_error("read", problem) from problem
        if first.segment_base_offset != last.segment_base_offset:
            return self.config.segment_bytes
        return last.relative_position - first.relative_position

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp at or after this one, or None.

        Raises:
            KafkaStorageError: The disk failed.
            CorruptRecordError: A batch is damaged.
        """
        with self._state.locked("offset for timestamp"):
            log_start = self.log_start_offset
            for segment in self._local.segments_between(log_start):
                if segment.greatest_timestamp >= timestamp:
                    found = segment.find_offset_by_timestamp(timestamp, log_start)
                    if found is not None:
                        return found
        return None

    def offset_of_max_timestamp(self) -> OffsetAndTimestamp | None:
        """Return the first record with the max timestamp of the log, or None (KIP-734).

        Raises:
            KafkaStorageError: The disk failed.
            CorruptRecordError: A batch is damaged.
        """
        with self._state.locked("offset of max timestamp"):
            log_start = self.log_start_offset
            timestamp, segment = max(
                (
                    (segment.greatest_timestamp_from(log_start), segment)
                    for segment in self._local.segments_between(log_start)
                ),
                key=lambda pair: pair[0],
            )
            if timestamp < 0:
                return None
            return segment.find_offset_by_timestamp(timestamp, log_start)

    def earliest_offset(self) -> OffsetAndTimestamp:
        """Return the log start offset and its leader epoch."""
        with self._lock:
            start = self.log_start_offset
            epoch = self._epochs.epoch_for_offset(start)
            return OffsetAndTimestamp(start, _NO_TIMESTAMP, epoch)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch that is at most `epoch`, and its end offset."""
        with self._lock:
            return self._epochs.end_offset_for(epoch, self._local.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset, and return it.

        Args:
            offset: New log start offset; -1 for the high watermark.

        Raises:
            OffsetOutOfRangeError: The offset is above the high watermark.
            KafkaStorageError: The disk failed, or is full.
        """
        with self._state.locked("delete records"):
            target = self.high_watermark if offset == -1 else offset
            if not 0 <= target <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.partition}: got offset {offset}, expected 0 to the high watermark "
                    f"{self.high_watermark}, or -1 for it"
                )
            self._state.raise_log_start(target)
            return self.log_start_offset

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Advance the log start offset to that of the leader, and the high watermark with it.

        Returns:
            Whether it was below `offset`.

        Raises:
            OffsetOutOfRangeError: The offset is above the log end offset.
            NotLeaderOrFollowerError: The log was closed or deleted.
            KafkaStorageError: The disk failed, or is full.
        """
        state = self._state
        if offset <= state.log_start_offset:
            return False
        with state.locked("increment log start offset"):
            if offset > self._local.log_end_offset:
                raise OffsetOutOfRangeError(
                    f"{self.partition}: got log start offset {offset}, expected at most the log "
                    f"end offset {self._local.log_end_offset}"
                )
            state.raise_log_start(offset)
            return True

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset.

        Leader epochs that start there are removed too, also those without records. The high
        watermark is lowered to the offset.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self._state.locked("truncate"):
            if offset < self.log_end_offset:
                self._state.truncate_to(offset)
            else:
                self._epochs.truncate_from_end(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all batches, leader epochs and producers, and start the log at an offset.

        Log start offset, high watermark and log end offset become that offset.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self._state.locked("truncate fully"):
            self._state.truncate_fully_and_start_at(offset, offset)

    def flush(self) -> None:
        """Flush all records.

        Raises:
            KafkaStorageError: The flush failed; the directory is offline.
        """
        self.maintenance.flush()

    def close(self) -> None:
        """Close cleanly, so that the next load needs no recovery. Idempotent.

        Raises:
            KafkaStorageError: The disk failed; the log is recovered when it is loaded.
        """
        self.maintenance.close()
