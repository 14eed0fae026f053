"""Checkpoints of a data directory: four offsets of each log (Kafka: LogManager)."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from kclient.broker.log.checkpoint_file import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    MalformedCheckpointError,
    OffsetCheckpointFile,
)
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.files import Files
from kclient.common.types import TopicPartition

_log = logging.getLogger(__name__)

Logs = Mapping[TopicPartition, UnifiedLog]


class _Checkpoint:
    """One checkpoint file, and its contents at the start of the broker."""

    def __init__(self, file: OffsetCheckpointFile) -> None:
        self._file = file
        self._read: dict[TopicPartition, int] = {}

    def read(self) -> None:
        try:
            self._read = self._file.read()
        except MalformedCheckpointError as problem:
            # No checkpoint is required; recovery takes longer without.
            _log.warning("%s: ignoring the checkpoint", problem)

    def get(self, partition: TopicPartition) -> int:
        return self._read.get(partition, 0)

    def forget(self, partition: TopicPartition) -> None:
        self._read.pop(partition, None)

    def write(self, logs: Logs, offset_of: Callable[[UnifiedLog], int | None]) -> None:
        # Offsets of logs that are not loaded are kept.
        offsets = {tp: offset for tp, offset in self._read.items() if tp not in logs}
        for partition, log in logs.items():
            offset = offset_of(log)
            if offset is not None:
                offsets[partition] = offset
        self._file.write(offsets)


def _moved_start(log: UnifiedLog) -> int | None:
    """Return the log start offset if it differs from the base offset of the first segment."""
    start = log.log_start_offset
    return start if start > log.first_segment_base_offset else None


class LogCheckpoints:
    """Reads and writes recovery points, log start offsets, high watermarks and cleaner offsets.

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
        """Return the checkpointed offsets that a log is loaded with."""
        return LogCheckpoint(
            clean, self._recovery_points.get(partition), self._log_starts.get(partition)
        )

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return the checkpointed high watermark of a log."""
        return self._high_watermarks.get(partition)

    def cleaned_to(self, partition: TopicPartition) -> int:
        """Return the checkpointed cleaner offset of a log."""
        return self._cleaned.get(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Remove a deleted log, so that a recreated one does not inherit its offsets."""
        for checkpoint in self._all:
            checkpoint.forget(partition)

    def write_recovery_points(self, logs: Logs) -> None:
        """Write the recovery point of each log."""
        self._recovery_points.write(logs, lambda log: log.maintenance.recovery_point)

    def write_log_starts(self, logs: Logs) -> None:
        """Write the log start offsets that differ from the base offset of the first segment."""
        self._log_starts.write(logs, _moved_start)

    def write_high_watermarks(self, logs: Logs) -> None:
        """Write the high watermark of each log."""
        self._high_watermarks.write(logs, lambda log: log.high_watermark)

    def write_cleaned(self, logs: Logs) -> None:
        """Write the cleaner offset of each log."""
        self._cleaned.write(logs, lambda log: log.cleaning.cleaned_to or None)

    def write_all(self, logs: Logs) -> None:
        """Write all files."""
        self.write_recovery_points(logs)
        self.write_log_starts(logs)
        self.write_high_watermarks(logs)
        self.write_cleaned(logs)
