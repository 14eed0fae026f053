"""Deletion of logs: renamed immediately, removed after file.delete.delay.ms."""

from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition

_REMOVALS_PER_ROUND = 20
"""Directories removed before other periodic tasks run."""


class LogDeletion:
    """Renames directories of deleted logs so that they are not loaded, and removes them when due.

    Renaming is guarded by the log manager's lock. Removal is not: it is slow, and requests that
    create or delete topics must not wait for it. A failed removal is retried.
    """

    def __init__(self, data_dir: Path, runtime: Runtime, failures: LogDirFailureChannel) -> None:
        self._data_dir = data_dir
        self._runtime = runtime
        self._failures = failures
        self._logs: list[tuple[float, UnifiedLog]] = []
        self._directories: list[Path] = []

    def logs(self) -> list[UnifiedLog]:
        """Return the logs whose files still exist."""
        return [log for _, log in self._logs]

    def add_log(self, log: UnifiedLog) -> None:
        """Start the deletion of a log.

        Raises:
            KafkaStorageError: The directory could not be renamed.
        """
        log.maintenance.mark_for_deletion(self._runtime.random)
        due_ms = self._runtime.clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._logs.append((due_ms, log))

    def add_directory(self, partition: TopicPartition) -> None:
        """Start the deletion of the directory of a log that is not loaded, if it exists.

        Raises:
            KafkaStorageError: The directory could not be renamed.
        """
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        target = log_file_utils.deleted_directory(self._data_dir, partition, self._runtime.random)
        with self._failures.guarding(f"{partition}: mark for deletion"):
            if self._runtime.files.exists(directory):
                self._runtime.files.rename(directory, target, flushed=False)
                self._directories.append(target)

    def resume(self, directory: Path) -> None:
        """Resume a deletion that was started before the broker restarted."""
        if directory not in self._directories:
            self._directories.append(directory)

    def remove_due(self, now_ms: float) -> bool:
        """Remove some of the directories that are due; called by one thread only.

        Returns:
            Whether more directories are due.

        Raises:
            KafkaStorageError: A removal failed; it is retried.
        """
        due = [entry for entry in list(self._logs) if entry[0] <= now_ms]
        for entry in due[:_REMOVALS_PER_ROUND]:
            entry[1].maintenance.delete()
            self._logs.remove(entry)
        for directory in self._directories[:_REMOVALS_PER_ROUND]:
            with self._failures.guarding(f"{self._data_dir}: deletion"):
                self._runtime.files.remove_tree(directory)
            self._directories.remove(directory)
        return len(due) > _REMOVALS_PER_ROUND or bool(self._directories)
