"""Deleted logs on their way out: renamed at once, removed after file.delete.delay.ms."""

from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition

_REMOVALS_PER_ROUND = 20
"""Directories removed before the upkeep looks at what else is due."""


class LogDeletion:
    """Renames directories so that they are never loaded again, and removes them when they are due.

    Renaming is guarded by the log manager's lock. Removing is not: it takes long, and a
    request that creates or deletes a topic must not wait for it. A removal that fails is retried.
    """

    def __init__(self, data_dir: Path, runtime: Runtime, failures: LogDirFailureChannel) -> None:
        self._data_dir = data_dir
        self._runtime = runtime
        self._failures = failures
        self._logs: list[tuple[float, UnifiedLog]] = []
        self._directories: list[Path] = []

    def logs(self) -> list[UnifiedLog]:
        """Return the logs whose files are still there."""
        return [log for _, log in self._logs]

    def take_log(self, log: UnifiedLog) -> None:
        """Begin to delete a log.

        Raises:
            KafkaStorageError: Its directory could not be renamed.
        """
        log.maintenance.mark_for_deletion(self._runtime.random)
        due_ms = self._runtime.clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._logs.append((due_ms, log))

    def take_directory(self, partition: TopicPartition) -> None:
        """Begin to delete the directory of a log that was never opened; absent is no error.

        Raises:
            KafkaStorageError: It could not be renamed.
        """
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        target = log_file_utils.deleted_directory(self._data_dir, partition, self._runtime.random)
        with self._failures.guarding(f"{partition}: mark for deletion"):
            if self._runtime.files.exists(directory):
                self._runtime.files.rename(directory, target, flushed=False)
                self._directories.append(target)

    def take_renamed(self, directory: Path) -> None:
        """Go on with a deletion that the last broker began."""
        if directory not in self._directories:
            self._directories.append(directory)

    def remove_due(self, now_ms: float) -> bool:
        """Remove some of what has waited long enough; called by one thread alone.

        Returns:
            Whether there is more to remove now.

        Raises:
            KafkaStorageError: Something could not be removed; it is tried again.
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
