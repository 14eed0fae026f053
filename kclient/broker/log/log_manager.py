"""Manager of the logs of a data directory: loading, checkpoints, flush, retention, compaction.

(Kafka: LogManager)
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.checkpoint_file import CleanShutdownFileHandler
from kclient.broker.log.log_checkpoints import LogCheckpoints, Logs
from kclient.broker.log.log_cleaner import DEFAULT_CLEANER, CleanerSettings, LogCleaner
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel, is_transient
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS, ProducerLimits
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from kclient.common.errors import KafkaError
from kclient.common.files import Files
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
        self._files = runtime.files
        self._clock = runtime.clock
        self._random = runtime.random
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
        log.maintenance.mark_for_deletion(self._random)
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._logs.append((due_ms, log))

    def add_directory(self, partition: TopicPartition) -> None:
        """Start the deletion of the directory of a log that is not loaded, if it exists.

        Raises:
            KafkaStorageError: The directory could not be renamed.
        """
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        target = log_file_utils.deleted_directory(self._data_dir, partition, self._random)
        with self._failures.guarding(f"{partition}: mark for deletion"):
            if self._files.exists(directory):
                self._files.rename(directory, target, flushed=False)
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
                self._files.remove_tree(directory)
            self._directories.remove(directory)
        return len(due) > _REMOVALS_PER_ROUND or bool(self._directories)


_log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
_OFFLINE_WAIT_MS = 60_000.0


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Intervals of periodic tasks in milliseconds, and limits; Kafka's defaults."""

    flush_check_interval_ms: float = 1_000
    retention_check_interval_ms: float = 300_000
    recovery_point_checkpoint_interval_ms: float = 60_000
    start_offset_checkpoint_interval_ms: float = 60_000
    high_watermark_checkpoint_interval_ms: float = 5_000
    producers: ProducerLimits = DEFAULT_LIMITS
    producer_id_expiration_check_interval_ms: float = 600_000
    cleaner: CleanerSettings = DEFAULT_CLEANER


class _PeriodicTask:
    """A task that runs at an interval."""

    def __init__(self, interval_ms: float, action: Callable[[float], None]) -> None:
        self.interval_ms = interval_ms
        self.action = action
        self.due_ms: float | None = None


class LogManager:
    """Logs of one data directory.

    The condition guards the table of logs. Lock order: before a log's own.

    Attributes:
        failures: Offline state of the directory.
        last_broker_epoch: Broker epoch of the last clean shutdown, or -1.
        on_retention: Called with each partition whose log start offset retention has advanced.
    """

    def __init__(
        self,
        data_dir: Path,
        runtime: Runtime,
        defaults: LogConfig | None = None,
        settings: LogManagerSettings | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._runtime = runtime
        self._files = files = runtime.files
        self._defaults = defaults or LogConfig()
        self._settings = settings or LogManagerSettings()
        self._lock = runtime.tasks.condition()
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._failed: dict[TopicPartition, KafkaError] = {}
        self._deleting: set[TopicPartition] = set()
        self._dir_lock: AbstractContextManager[None] | None = None
        self._is_closing = False
        self._clean = False
        self._checkpoints = LogCheckpoints(files, data_dir)
        self._clean_shutdown = CleanShutdownFileHandler(files, data_dir)
        self._tasks = self._periodic_tasks()
        self._cleaner = LogCleaner(
            self._settings.cleaner,
            self.all_logs,
            lambda now_ms: self._attempt(
                lambda _: self._write(self._checkpoints.write_cleaned), now_ms
            ),
        )
        self.failures = LogDirFailureChannel(data_dir)
        self._deletion = LogDeletion(data_dir, runtime, self.failures)
        self._more_to_remove = False
        self._has_unflushed_names = False
        self.last_broker_epoch = -1
        self.on_retention: Callable[[TopicPartition], None] = _ignore

    def volume_size(self) -> tuple[int, int]:
        """Return the bytes of the volume of the data directory: all, and those that are free.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self.failures.guarding(f"{self._data_dir}: size of the volume"):
            return self._files.volume_size(self._data_dir)

    def configure(self, cleaner: CleanerSettings, producers: ProducerLimits) -> None:
        """Replace the settings of the cleaner, and the limits of producers in all logs."""
        self._cleaner.configure(cleaner)
        with self._lock:
            self._settings = replace(self._settings, producers=producers)
            logs = list(self._logs.values())
        for log in logs:
            log.limit_producers(producers)

    def start(self) -> None:
        """Lock the directory, and read its checkpoints. Idempotent.

        Raises:
            KafkaStorageError: Another broker uses the directory, or it is unusable.
        """
        if self._dir_lock is not None:
            return
        with self.failures.guarding(f"{self._data_dir}: start"):
            self._files.make_directory(self._data_dir)
            held = _acquire_lock(self._files, self._data_dir)
            try:
                self._checkpoints.read()
                self._clean = self._clean_shutdown.exists()
                # A crash may have happened before the name of a new directory was flushed.
                self._has_unflushed_names = not self._clean
                self.last_broker_epoch = self._clean_shutdown.read_broker_epoch()
                # A crash from here on must lead to recovery.
                self._clean_shutdown.delete()
            except OSError:
                held.__exit__(None, None, None)
                raise
            self._dir_lock = held
            self._is_closing = False

    def load(self, topic_configs: Mapping[str, LogConfig] | None = None) -> None:
        """Load all logs of the directory that are not loaded.

        A log that cannot be loaded does not affect the others; see `failed_logs`.

        Args:
            topic_configs: Configuration by topic; other topics get the defaults.

        Raises:
            KafkaStorageError: As `start`.
        """
        self.start()
        configs = topic_configs or {}
        with self._lock:
            with self.failures.guarding(f"{self._data_dir}: load"):
                names = self._files.list_directory(self._data_dir)
            for name in names:
                directory = self._data_dir / name
                if not self._files.is_directory(directory):
                    continue
                if log_file_utils.is_deleted_directory(name):
                    self._deletion.resume(directory)
                elif not log_file_utils.is_set_aside(name):
                    self._load_directory(name, configs)

    @property
    def is_offline(self) -> bool:
        """Whether the directory is offline after an error."""
        return self.failures.is_offline

    @property
    def was_clean(self) -> bool:
        """Whether the last shutdown was clean."""
        return self._clean

    def get_log(self, partition: TopicPartition) -> UnifiedLog | None:
        """Return a partition's log, or None if there is none."""
        return None if partition in self._deleting else self._logs.get(partition)

    def get_or_create(
        self,
        partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig | None = None,
        *,
        flush_name: bool = True,
    ) -> UnifiedLog:
        """Return a partition's log, which is loaded or created if necessary.

        Args:
            partition: The partition.
            topic_id: Topic id, 16 bytes; None to assign it later.
            config: Topic configuration; None for the defaults, or to keep that of the log.
            flush_name: Whether to flush the name of a new directory; otherwise the caller calls
                `flush_names` after it has created several logs.

        Raises:
            InvalidTopicError: The topic name is not a valid directory name.
            InconsistentTopicIdError: The directory belongs to a topic with another id.
            KafkaStorageError: The disk failed, the log could not be loaded, or the manager is
                closed.
        """
        with self._lock:
            self._check_open(f"{partition}: open")
            problem = self._failed.get(partition)
            if problem is not None and not is_transient(problem):
                raise KafkaStorageError(f"{partition}: {problem}") from problem
            if partition in self._deleting:
                self._start_deletions()
            log = self._logs.get(partition)
            if log is None:
                self._make_directory(partition)
                log = self._open(partition, config or self._defaults)
                self._logs[partition] = log
                self._failed.pop(partition, None)
            elif config is not None:
                log.config = config
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            if flush_name:
                self.flush_names()
            return log

    def flush_names(self) -> None:
        """Flush the names of the logs' directories.

        Records that are flushed later can then be found after a crash.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self._lock, self.failures.guarding(f"{self._data_dir}: flush"):
            if self._has_unflushed_names:
                self._files.flush_directory(self._data_dir)
                self._has_unflushed_names = False

    def delete(self, *partitions: TopicPartition) -> None:
        """Delete logs: their directories are renamed now, and removed after file.delete.delay.ms.

        Unknown partitions are ignored. The checkpoints are written once. If the disk fails, the
        logs are nevertheless unavailable, and `step` retries the deletion.

        Raises:
            KafkaStorageError: The disk failed or is full, or the manager is closed.
        """
        with self._lock:
            self._check_open("delete")
            self._deleting.update(partitions)
            self._start_deletions()

    def set_aside(self, *partitions: TopicPartition) -> None:
        """Rename the directories of logs that belong to no replica; their files are kept.

        Raises:
            KafkaStorageError: The disk failed or is full, or the manager is closed.
        """
        if not partitions:
            return
        with self._lock:
            self._check_open("set aside")
            for partition in partitions:
                log = self._logs.pop(partition, None)
                if log is not None:
                    log.maintenance.set_aside(self._runtime.random)
                    self._checkpoints.forget(partition)
            self._has_unflushed_names = True
            self.flush_names()
            self._write(self._checkpoints.write_all)

    def _start_deletions(self) -> None:
        """Rename the directories of deleted logs so that they are not loaded again."""
        if not self._deleting:
            return
        for partition in sorted(self._deleting):
            if partition in self._logs:
                self._deletion.add_log(self._logs[partition])
                del self._logs[partition]
            else:
                # The log could not be opened, but its directory may exist.
                self._deletion.add_directory(partition)
                self._failed.pop(partition, None)
            self._has_unflushed_names = True
            self._deleting.remove(partition)
            self._checkpoints.forget(partition)
        self.flush_names()
        self._write(self._checkpoints.write_all)

    def truncate_to(self, partition: TopicPartition, offset: int) -> None:
        """Truncate a partition's log, as `UnifiedLog.truncate_to`.

        Raises:
            NotLeaderOrFollowerError: The log was closed or deleted.
            KafkaStorageError: The disk failed, or the manager is closed.
        """
        self._truncate(partition, lambda log: log.truncate_to(offset))

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty a partition's log, as `UnifiedLog.truncate_fully_and_start_at`.

        Raises:
            NotLeaderOrFollowerError: The log was closed or deleted.
            KafkaStorageError: The disk failed, or the manager is closed.
        """
        self._truncate(partition, lambda log: log.truncate_fully_and_start_at(offset))

    def _truncate(self, partition: TopicPartition, truncate: Callable[[UnifiedLog], None]) -> None:
        log = self.get_log(partition)
        if log is None:
            raise NotLeaderOrFollowerError(f"{partition}: the log was closed")
        recovery_point, high_watermark = log.maintenance.recovery_point, log.high_watermark
        truncate(log)
        # After a crash, recovery would not verify what is appended below an old recovery point.
        if log.maintenance.recovery_point < recovery_point:
            self._write(self._checkpoints.write_recovery_points)
        if log.high_watermark < high_watermark:
            self._write(self._checkpoints.write_high_watermarks)

    def all_logs(self) -> list[UnifiedLog]:
        """Return all logs."""
        with self._lock:
            return list(self._logs.values())

    def failed_logs(self) -> dict[TopicPartition, KafkaError]:
        """Return the error of each partition that could not be loaded."""
        with self._lock:
            return dict(self._failed)

    def step(self, now_ms: float) -> float:
        """Run the periodic tasks that are due.

        Args:
            now_ms: Monotonic time.

        Returns:
            Milliseconds until the next step.
        """
        if self.failures.is_offline or self._is_closing:
            return _OFFLINE_WAIT_MS
        for task in self._tasks:
            if task.due_ms is None:
                task.due_ms = now_ms + task.interval_ms
            elif task.due_ms <= now_ms:
                task.due_ms = now_ms + task.interval_ms
                self._attempt(task.action, now_ms)
        self._more_to_remove = False
        self._attempt(self._remove_deleted, now_ms)
        cleaner_ms = self._cleaner.step(now_ms)
        if self._more_to_remove:
            return 0.0
        tasks_ms = min(task.due_ms or 0.0 for task in self._tasks) - now_ms
        return max(0.0, min(tasks_ms, cleaner_ms))

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close all logs. Idempotent. Further creations and deletions of logs fail.

        Args:
            clean: Shut down cleanly, so that the next start needs no recovery. Otherwise leave
                the files as after a crash.
            broker_epoch: Written to the clean shutdown file.

        Raises:
            KafkaStorageError: The disk failed; the next start recovers the logs.
        """
        with self._lock:
            if self._dir_lock is None:
                return
            self._is_closing = True
        try:
            if clean:
                self._cleaner.stop()
                self._close_cleanly(broker_epoch)
        finally:
            with self._lock:
                for log in (*self._logs.values(), *self._deletion.logs()):
                    log.maintenance.release()
                self._logs.clear()
                self._dir_lock.__exit__(None, None, None)
                self._dir_lock = None

    def _check_open(self, action: str) -> None:
        if self._is_closing:
            raise KafkaStorageError(f"{self._data_dir}: {action}: the log manager is closed")

    def _close_cleanly(self, broker_epoch: int) -> None:
        problem: KafkaError | None = None
        for log in self.all_logs():
            try:
                log.close()
            except KafkaError as failure:  # the others are closed all the same
                _log.warning("%s: not closed cleanly: %s", log.partition, failure)
                problem = failure
        self._write(self._checkpoints.write_all)
        if problem is not None:
            raise problem
        if self._failed:
            return
        with self.failures.guarding(f"{self._data_dir}: clean shutdown"):
            self._clean_shutdown.write(broker_epoch)

    def _periodic_tasks(self) -> list[_PeriodicTask]:
        settings, checkpoints = self._settings, self._checkpoints

        def writing(write: Callable[[Logs], None]) -> Callable[[float], None]:
            return lambda _: self._write(write)

        return [
            _PeriodicTask(settings.flush_check_interval_ms, self._flush_logs),
            _PeriodicTask(settings.retention_check_interval_ms, self._delete_old_segments),
            _PeriodicTask(
                settings.recovery_point_checkpoint_interval_ms,
                writing(checkpoints.write_recovery_points),
            ),
            _PeriodicTask(
                settings.start_offset_checkpoint_interval_ms, writing(checkpoints.write_log_starts)
            ),
            _PeriodicTask(
                settings.high_watermark_checkpoint_interval_ms,
                writing(checkpoints.write_high_watermarks),
            ),
            _PeriodicTask(
                settings.producer_id_expiration_check_interval_ms, self._expire_producers
            ),
        ]

    def _attempt(self, action: Callable[[float], None], now_ms: float) -> None:
        try:
            action(now_ms)
        except KafkaStorageError as problem:
            _log.warning("%s: %s", self._data_dir, problem)

    def _load_directory(self, name: str, configs: Mapping[str, LogConfig]) -> None:
        try:
            partition = log_file_utils.parse_partition_directory(name)
        except KafkaError as problem:
            _log.warning("%s: ignored: %s", self._data_dir, problem)
            return
        if partition in self._logs or partition == log_file_utils.METADATA_PARTITION:
            return  # the metadata log is the quorum's; see `open_metadata_log`
        try:
            config = configs.get(partition.topic, self._defaults)
            self._logs[partition] = self._open(partition, config)
        except KafkaError as problem:
            _log.exception("%s: cannot be loaded", partition)
            self._failed[partition] = problem

    def _make_directory(self, partition: TopicPartition) -> None:
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        with self.failures.guarding(f"{partition}: make directory"):
            if not self._files.exists(directory):
                self._has_unflushed_names = True
                self._files.make_directory(directory, flushed=False)

    def _open(self, partition: TopicPartition, config: LogConfig) -> UnifiedLog:
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        log = UnifiedLog(
            self._runtime,
            directory,
            partition,
            config,
            self.failures,
            self._settings.producers,
        )
        try:
            log.load(self._checkpoints.for_log(partition, clean=self._clean))
        except KafkaError:
            log.maintenance.release()
            raise
        log.high_watermark = self._checkpoints.high_watermark(partition)
        log.cleaning.resume_from(self._checkpoints.cleaned_to(partition))
        return log

    def _flush_logs(self, now_ms: float) -> None:
        def flush(log: UnifiedLog) -> None:
            log.maintenance.flush_topic_id()
            log.maintenance.flush_rolled()
            log.maintenance.flush_if_due(now_ms)
            log.maintenance.purge_deleted(now_ms)

        _for_each(self.all_logs(), flush)

    def _delete_old_segments(self, now_ms: float) -> None:
        def delete(log: UnifiedLog) -> None:
            count = log.maintenance.delete_old_segments(now_ms)
            if count:
                _log.info("%s: retention deleted %d segments", log.partition, count)
                self.on_retention(log.partition)

        _for_each(self.all_logs(), delete)

    def _expire_producers(self, _: float) -> None:
        for log in self.all_logs():
            log.maintenance.remove_expired_producers()

    def _write(self, write: Callable[[Logs], None]) -> None:
        with self._lock, self.failures.guarding(f"{self._data_dir}: checkpoints"):
            if self._dir_lock is None:
                # A periodic task that outlasted the close: the table of logs is empty now.
                raise KafkaStorageError(f"{self._data_dir}: checkpoints: the log manager is closed")
            write(self._logs)

    def _remove_deleted(self, now_ms: float) -> None:
        with self._lock:
            self._check_open("remove deleted logs")
            self._start_deletions()
        self._more_to_remove = self._deletion.remove_due(now_ms)


def _ignore(_: TopicPartition) -> None:
    """Do nothing."""


def _acquire_lock(files: Files, data_dir: Path) -> AbstractContextManager[None]:
    try:
        held = files.lock(data_dir / LOCK_FILE)
    except BlockingIOError:
        raise KafkaStorageError(
            f"{data_dir}: another broker uses this directory; stop it, or give each broker a "
            "directory of its own"
        ) from None
    held.__enter__()
    return held


def _for_each(logs: Iterable[UnifiedLog], act: Callable[[UnifiedLog], None]) -> None:
    """Call `act` for each log, except for logs that are deleted concurrently."""
    for log in logs:
        try:
            act(log)
        except NotLeaderOrFollowerError:
            _log.debug("%s: deleted concurrently", log.partition)
