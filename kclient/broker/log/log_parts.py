"""State of one log, shared by the classes that implement it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kclient.broker.log.checkpoint_file import LeaderEpochCheckpointFile, PartitionMetadataFile
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_loader import LogLoader
from kclient.broker.log.producer_state_manager import ProducerLimits, ProducerStateManager
from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.common.runtime import Condition, Runtime
from kclient.common.types import TopicPartition


@dataclass(slots=True)
class LogOffsets:
    """Log start offset, high watermark and cleaner offset of a log."""

    log_start: int = 0
    high_watermark: int = 0
    cleaned_to: int = 0


@dataclass(frozen=True, slots=True)
class LogParts:
    """State of a log. `lock` guards all attributes but `failures` and `runtime`."""

    runtime: Runtime
    partition: TopicPartition
    failures: LogDirFailureChannel
    lock: Condition
    local: LocalLog
    producers: ProducerStateManager
    epochs: LeaderEpochFileCache
    metadata: PartitionMetadataFile
    offsets: LogOffsets = field(default_factory=LogOffsets)

    @contextmanager
    def locked(self, action: str) -> Iterator[None]:
        """Hold the lock, and convert the operating system's errors into storage errors.

        Raises:
            KafkaStorageError: The directory is offline, or the action failed.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        with self.lock, self.failures.guarding(f"{self.partition}: {action}"):
            if self.local.is_closed:
                raise NotLeaderOrFollowerError(f"{self.partition}: the log was closed")
            yield

    def loader(self) -> LogLoader:
        """Return a loader of this log."""
        return LogLoader(self.runtime.files, self.local, self.producers, self.epochs)

    def raise_log_start(self, offset: int) -> None:
        """Advance the log start offset, unless it is there already."""
        if offset > self.offsets.log_start:
            self.offsets.log_start = offset
            self.offsets.high_watermark = max(self.offsets.high_watermark, offset)
            self.producers.on_log_start_offset_incremented(offset)
            self.epochs.truncate_from_start(offset)


def make_parts(
    runtime: Runtime,
    directory: Path,
    partition: TopicPartition,
    config: LogConfig,
    failures: LogDirFailureChannel,
    producers: ProducerLimits,
) -> LogParts:
    """Return the state of a log that is not loaded yet."""
    files = runtime.files
    return LogParts(
        runtime,
        partition,
        failures,
        runtime.tasks.condition(),
        LocalLog(files, runtime.clock, directory, partition, config, runtime.random),
        ProducerStateManager(files, runtime.clock, directory, str(partition), producers),
        LeaderEpochFileCache(LeaderEpochCheckpointFile(files, directory)),
        PartitionMetadataFile(files, directory),
    )
