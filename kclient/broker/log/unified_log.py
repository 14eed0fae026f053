"""Log of one partition (Kafka: UnifiedLog)."""

from pathlib import Path

from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_cleaning import LogCleaning
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.log_maintenance import LogMaintenance
from kclient.broker.log.log_offset_metadata import AppendOrigin, FetchDataInfo, LogAppendInfo
from kclient.broker.log.log_parts import make_parts
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.offset_lookup import OffsetLookup
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS, ProducerLimits
from kclient.common.broker_errors import InconsistentTopicIdError, OffsetOutOfRangeError
from kclient.common.files import WireBytes
from kclient.common.runtime import Runtime
from kclient.common.types import OffsetAndTimestamp, TopicPartition


class UnifiedLog:
    """Log of a partition: append by the leader, read by offset, truncation at both ends.

    One condition guards segments, indexes, producer state, leader epochs and offsets. It is not
    held while batches are transferred to consumers, nor during fsync.

    Attributes:
        partition: The partition.
        lookup: Look-up of offsets by timestamp and epoch.
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
        parts = make_parts(runtime, directory, partition, config, failures, producers)
        self.partition = partition
        self._parts = parts
        self._lock = parts.lock
        self._local = parts.local
        self._offsets = parts.offsets
        self._appender = LogAppender(runtime.clock, parts.local, parts.producers, parts.epochs)
        self.lookup = OffsetLookup(parts)
        self.maintenance = LogMaintenance(parts, self._appender)
        self.cleaning = LogCleaning(parts, self._appender)
        self._topic_id: bytes | None = None

    def load(self, checkpoint: LogCheckpoint | None = None) -> None:
        """Open or create the files of the directory, and recover them after a crash.

        Args:
            checkpoint: Checkpointed state of the log; None to recover all segments.

        Raises:
            KafkaStorageError: A file could not be read or written.
            CorruptRecordError: After a clean shutdown, batches are damaged.
            InconsistentTopicIdError: partition.metadata cannot be read.
        """
        runtime = self._parts.runtime
        with self._parts.locked("load"):
            runtime.files.make_directory(self.directory)
            if self._parts.metadata.exists():
                self._topic_id = self._parts.metadata.read()
            loader = self._parts.loader()
            log_start = loader.load(checkpoint or LogCheckpoint())
            self._offsets.log_start = self._offsets.high_watermark = log_start
            self._local.last_flush_ms = runtime.clock.monotonic_ms()

    def __repr__(self) -> str:
        return (
            f"UnifiedLog({self.partition}, {self.log_start_offset} to {self.log_end_offset}, "
            f"high watermark {self.high_watermark})"
        )

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

    @property
    def topic_id(self) -> bytes | None:
        """Topic id, 16 bytes, or None if none is assigned."""
        return self._topic_id

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Assign the topic id.

        It is written to partition.metadata before the first record, or by the next periodic flush
        (Kafka: PartitionMetadataFile.record and maybeFlush): an immediate flush would slow down the
        creation of many partitions.

        Raises:
            InconsistentTopicIdError: The directory belongs to another topic of that name.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        with self._parts.locked("assign topic id"):
            if self._topic_id is None:
                self._parts.metadata.record(topic_id)
                self._topic_id = topic_id
            elif self._topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{self.partition}: the log on disk belongs to a topic with another id"
                )

    @property
    def log_start_offset(self) -> int:
        """Log start offset: first offset that can be read."""
        return self._offsets.log_start

    @property
    def log_end_offset(self) -> int:
        """Log end offset: offset of the next record."""
        return self._local.log_end_offset

    @property
    def first_segment_base_offset(self) -> int:
        """Base offset of the first segment; the log start offset may be above it."""
        return self._local.segments.first.base_offset

    @property
    def high_watermark(self) -> int:
        """High watermark: offset up to which records are replicated and visible to consumers."""
        return self._offsets.high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        with self._lock:
            bounded = max(self.log_start_offset, min(offset, self.log_end_offset))
            self._offsets.high_watermark = bounded
            self._parts.producers.on_high_watermark_updated(bounded)

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: all transactions before it are completed (read_committed)."""
        with self._lock:
            unstable = self._parts.producers.first_unstable_offset
            return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def latest_epoch(self) -> int | None:
        """Latest leader epoch of the records, or None."""
        with self._lock:
            return self._parts.epochs.latest_epoch

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        with self._lock:
            return self._local.segments.size_in_bytes()

    def append_as_leader(
        self,
        records: WireBytes | MemoryRecords,
        leader_epoch: int,
        *,
        origin: AppendOrigin = "client",
    ) -> LogAppendInfo:
        """Append the batches of a request, all or none.

        Args:
            records: Whole batches, parsed or not; offsets and epoch are written into this
                memory if it is writable, else into a copy.
            leader_epoch: Epoch of this leader.
            origin: Origin of the append; coordinators may write control batches, and out of order.

        Raises:
            CorruptRecordError: A checksum is wrong, or the bytes are not a batch.
            RecordTooLargeError: A batch is larger than max.message.bytes.
            RecordBatchTooLargeError: Together they are larger than a segment.
            InvalidRecordError: A batch is inconsistent, or of a kind that clients may not write.
            RecordValidationError: The key or timestamp of single records is invalid.
            UnsupportedForMessageFormatError: A batch has an older format.
            InvalidProducerEpochError: The producer is fenced by a later epoch.
            OutOfOrderSequenceError: Records before these are missing.
            KafkaStorageError: The disk failed, or is full; nothing was appended, unless only the
                flush of ``flush.messages`` failed.
        """
        if not isinstance(records, MemoryRecords):
            records = MemoryRecords(records)
        with self._parts.locked("append"):
            self._parts.metadata.maybe_flush()
            info = self._appender.append(records, leader_epoch, origin)
            info.log_start_offset = self._offsets.log_start
            must_flush = self._local.unflushed_messages >= self._local.config.flush_messages
        if must_flush:
            # Also for a duplicate: it may be a retry after a failed flush.
            self.flush()
        return info

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
        with self._parts.locked("read"):
            if not self.log_start_offset <= start_offset <= self.log_end_offset:
                raise OffsetOutOfRangeError(
                    f"{self.partition}: got offset {start_offset}, expected "
                    f"{self.log_start_offset} to {self.log_end_offset}"
                )
            end = self._local.position_of(
                self.log_end_offset if max_offset is None else min(max_offset, self.log_end_offset)
            )
            info = self._local.read(start_offset, max_length, end, min_one_message=min_one_message)
            if include_aborted:
                info.aborted_transactions = self.lookup.aborted_transactions(info)
            return info

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp at or after this one, or None."""
        return self.lookup.by_timestamp(timestamp)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch that is at most `epoch`, and its end offset."""
        return self.lookup.end_offset_for_epoch(epoch)

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset, and return it.

        Args:
            offset: New log start offset; -1 for the high watermark.

        Raises:
            OffsetOutOfRangeError: The offset is above the high watermark.
            KafkaStorageError: The disk failed, or is full.
        """
        with self._parts.locked("delete records"):
            target = self.high_watermark if offset == -1 else offset
            if not 0 <= target <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.partition}: got offset {offset}, expected 0 to the high watermark "
                    f"{self.high_watermark}, or -1 for it"
                )
            self._parts.raise_log_start(target)
            return self.log_start_offset

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self._parts.locked("truncate"):
            if offset >= self.log_end_offset:
                return
            if offset < self._local.segments.first.base_offset:
                self._local.truncate_fully_and_start_at(offset)
                self._parts.producers.truncate_fully_and_start_at(offset)
            else:
                self._local.truncate_to(offset)
            self._parts.epochs.truncate_from_end(offset)
            self._offsets.log_start = min(self.log_start_offset, offset)
            self._offsets.high_watermark = min(self.high_watermark, offset)
            self._offsets.cleaned_to = min(self._offsets.cleaned_to, offset)
            self._parts.loader().rebuild_producers(self.log_start_offset, offset)

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
