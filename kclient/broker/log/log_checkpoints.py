"""The checkpoints of a data directory: four offsets for each of its logs (Kafka: LogManager)."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from kclient.broker.log.checkpoint_file import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    OffsetCheckpointFile,
)
from kclient.broker.log.log_errors import MalformedCheckpointError
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.files import Files
from kclient.common.types import TopicPartition

_log = logging.getLogger(__name__)

Logs = Mapping[TopicPartition, UnifiedLog]


class _Checkpoint:
    """One file, and what it said when the broker started."""

    def __init__(self, file: OffsetCheckpointFile) -> None:
        self._file = file
        self._read: dict[TopicPartition, int] = {}

    def read(self) -> None:
        try:
            self._read = self._file.read()
        except MalformedCheckpointError as problem:
            # Each of them can be done without; recovery then takes longer.
            _log.warning("%s: doing without it", problem)

    def get(self, partition: TopicPartition) -> int:
        return self._read.get(partition, 0)

    def forget(self, partition: TopicPartition) -> None:
        self._read.pop(partition, None)

    def write(self, logs: Logs, offset_of: Callable[[UnifiedLog], int | None]) -> None:
        # What belongs to a log that is not loaded, or not yet, stays.
        offsets = {tp: offset for tp, offset in self._read.items() if tp not in logs}
        for partition, log in logs.items():
            offset = offset_of(log)
            if offset is not None:
                offsets[partition] = offset
        self._file.write(offsets)


def _moved_start(log: UnifiedLog) -> int | None:
    """Return a log's start where its first segment does not tell it."""
    start = log.log_start_offset
    return start if start > log.first_segment_base_offset else None


class LogCheckpoints:
    """Reads and writes recovery points, log start offsets, high watermarks and cleaned offsets.

    Guarded by the log manager's lock.
    """

    def __init__(self, files: Files, data_dir: Path) -> None:
        def checkpoint(name: str) -> _Checkpoint:
            return _Checkpoint(OffsetCheckpointFile(files, data_dir, name))

        self._recovery_points = checkpoint(RECOVERY_POINT_CHECKPOINT)
        self._log_starts = checkpoint(LOG_START_OFFSET_CHECKPOINT)
        self._high_watermarks = checkpoint(HIGH_WATERMARK_CHECKPOINT)
        self._cleaned = checkpoint(CLEANER_OFFSET_CHECKPOINT)
        self._all = (
            self._recovery_points,
            self._log_starts,
            self._high_watermarks,
            self._cleaned,
        )

    def read(self) -> None:
        """Read all files."""
        for checkpoint in self._all:
            checkpoint.read()

    def for_log(self, partition: TopicPartition, *, clean: bool) -> LogCheckpoint:
        """Return what a log is loaded by."""
        return LogCheckpoint(
            clean, self._recovery_points.get(partition), self._log_starts.get(partition)
        )

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return a log's high watermark as it was checkpointed."""
        return self._high_watermarks.get(partition)

    def cleaned_to(self, partition: TopicPartition) -> int:
        """Return up to where a log was compacted."""
        return self._cleaned.get(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Forget a deleted log: one made anew under its name must not inherit its offsets."""
        for checkpoint in self._all:
            checkpoint.forget(partition)

    def write_recovery_points(self, logs: Logs) -> None:
        """Write up to where each log was flushed."""
        self._recovery_points.write(logs, lambda log: log.maintenance.recovery_point)

    def write_log_starts(self, logs: Logs) -> None:
        """Write where each log starts, if that is not where its first segment does."""
        self._log_starts.write(logs, _moved_start)

    def write_high_watermarks(self, logs: Logs) -> None:
        """Write each log's high watermark."""
        self._high_watermarks.write(logs, lambda log: log.high_watermark)

    def write_cleaned(self, logs: Logs) -> None:
        """Write up to where each log was compacted."""
        self._cleaned.write(logs, lambda log: log.cleaning.cleaned_to or None)

    def write_all(self, logs: Logs) -> None:
        """Write all files."""
        self.write_recovery_points(logs)
        self.write_log_starts(logs)
        self.write_high_watermarks(logs)
        self.write_cleaned(logs)
