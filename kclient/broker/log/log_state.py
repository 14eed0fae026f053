"""State of one log: its lock, failure guard, segments, producers and offsets."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kclient.broker.log.checkpoint_file import LeaderEpochCheckpointFile, PartitionMetadataFile
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_file_utils import partition_directory
from kclient.broker.log.log_loader import LogCheckpoint, LogLoader
from kclient.broker.log.producer_state_manager import ProducerLimits, ProducerStateManager
from kclient.broker.log.producer_state_recovery import restore_recent_batches
from kclient.common.broker_errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
)
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition


class LogState:
    """State of one log, owned by `UnifiedLog`.

    Attributes:
        partition: The partition.
        lock: Guards all other attributes but `files`.
        files: File system.
        local: The segments.
        producers: Producer state.
        epochs: Leader epochs.
        topic_id: Topic id, 16 bytes, or None if none is assigned.
        has_unwritten_topic_id: Whether the topic id is not written to partition.metadata yet.
        log_start_offset: First offset that can be read.
        high_watermark: Offset up to which records are replicated.
        cleaned_to: Offset up to which the log is compacted.
    """

    def __init__(
        self,
        runtime: Runtime,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        failures: LogDirFailureChannel,
        producers: ProducerLimits,
    ) -> None:
        self._failures = failures
        self._name = str(partition)
        self._clock = runtime.clock
        self.partition = partition
        self.files = files = runtime.files
        self.lock = runtime.tasks.condition()
        self.local = LocalLog(files, runtime.clock, directory, partition, config, runtime.random)
        self.producers = ProducerStateManager(
            files, runtime.clock, directory, self._name, producers
        )
        self.epochs = LeaderEpochFileCache(LeaderEpochCheckpointFile(files, directory))
        self.topic_id: bytes | None = None
        self.has_unwritten_topic_id = False
        self._metadata_file = PartitionMetadataFile(files, directory)
        self.log_start_offset = 0
        self.high_watermark = 0
        self.cleaned_to = 0

    @contextmanager
    def locked(self, action: str) -> Iterator[None]:
        """Hold the lock, and convert the operating system's errors into storage errors.

        Raises:
            KafkaStorageError: The directory is offline, or the action failed.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        with self.lock:
            self.check_usable()
            try:
                yield
            except OSError as problem:
                raise self.storage_error(action, problem) from problem

    def check_usable(self) -> None:
        """Check that the log is open on an online directory.

        A caller that changes the log holds the lock.

        Raises:
            KafkaStorageError: The directory is offline.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        if self._failures.is_offline:
            self._failures.check()
        if self.local.is_closed:
            raise NotLeaderOrFollowerError(f"{self.partition}: the log was closed")

    def storage_error(self, action: str, problem: OSError) -> KafkaStorageError:
        """Return the storage error for an error of the operating system."""
        return self._failures.storage_error(f"{self._name}: {action}", problem)

    def guarded(self, action: str, *, always_fatal: bool = False) -> AbstractContextManager[None]:
        """Convert the operating system's errors into storage errors, without the lock."""
        return self._failures.guarding(f"{self._name}: {action}", always_fatal=always_fatal)

    def wall_ms(self) -> int:
        """Return the wall time."""
        return self._clock.wall_ms()

    def monotonic_ms(self) -> float:
        """Return the monotonic time."""
        return self._clock.monotonic_ms()

    def load(self, checkpoint: LogCheckpoint) -> None:
        """Load and recover the files; the caller holds the lock."""
        self.files.make_directory(self.directory)
        if self._metadata_file.exists():
            self.topic_id = self._metadata_file.read()
        log_start = self._loader().load(checkpoint)
        self.log_start_offset = self.high_watermark = log_start
        self.local.last_flush_ms = self.monotonic_ms()

    @property
    def directory(self) -> Path:
        """Directory of the files."""
        return self.local.directory

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Assign the topic id; the caller holds the lock, and calls `write_topic_id` later.

        It must be written before any record: a log with records and no topic id could be mistaken
        for that of a recreated topic.

        Raises:
            InconsistentTopicIdError: The directory belongs to another topic of that name.
        """
        if self.topic_id is None:
            self.topic_id = topic_id
            self.has_unwritten_topic_id = True
        elif self.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"{self.partition}: the log on disk belongs to a topic with another id"
            )

    def write_topic_id(self) -> None:
        """Write an assigned topic id to partition.metadata; the caller holds the lock."""
        if self.has_unwritten_topic_id and self.topic_id is not None:
            if self.partition.partition:
                first = self.partition._replace(partition=0)
                directory = partition_directory(self.directory.parent, first)
                other = PartitionMetadataFile(self.files, directory)
                self._metadata_file.write_as(other, self.topic_id)
            else:
                self._metadata_file.write(self.topic_id)
            self.has_unwritten_topic_id = False

    def last_stable_offset(self) -> int:
        """Return the last stable offset; the caller holds the lock."""
        unstable = self.producers.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def set_high_watermark(self, offset: int) -> None:
        """Set the high watermark within the bounds of the log; the caller holds the lock."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.local.log_end_offset))
        self.producers.on_high_watermark_updated(self.high_watermark)

    def raise_log_start(self, offset: int) -> None:
        """Advance the log start offset, unless it is there already; the caller holds the lock."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.high_watermark = max(self.high_watermark, offset)
            self.producers.on_log_start_offset_incremented(offset)
            self.epochs.truncate_from_start(offset)

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset below the log end.

        The caller holds the lock.
        """
        if offset < self.local.first_offset:
            self.truncate_fully_and_start_at(offset, min(self.log_start_offset, offset))
            return
        self.local.truncate_to(offset)
        self.epochs.truncate_from_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.cleaned_to = min(self.cleaned_to, offset)
        loader = self._loader()
        loader.rebuild_producers(self.log_start_offset, offset)
        restore_recent_batches(self.local, self.producers)
        # Of the replayed transactions, those with a marker below the high watermark are stable.
        self.set_high_watermark(self.high_watermark)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int) -> None:
        """Remove all batches, and start the log at an offset; the caller holds the lock.

        Args:
            offset: Base offset of the first segment.
            log_start_offset: First offset that can be read, `offset` or above.
        """
        self.local.truncate_fully_and_start_at(offset)
        self.producers.truncate_fully_and_start_at(offset)
        self.epochs.clear()
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.cleaned_to = min(self.cleaned_to, offset)

    def rename_directory(self, target: Path) -> None:
        """Rename the directory, without a flush; the caller holds the lock."""
        self.local.rename_directory(target)
        self.producers.moved_to(target)
        self.epochs.use_checkpoint(LeaderEpochCheckpointFile(self.files, target))

    def _loader(self) -> LogLoader:
        return LogLoader(self.files, self.local, self.producers, self.epochs)
