"""All logs of a data directory: loading, checkpoints, flush, retention, compaction.

(Kafka: LogManager)
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.clean_shutdown_file_handler import CleanShutdownFileHandler
from kclient.broker.log.log_checkpoints import LogCheckpoints, Logs
from kclient.broker.log.log_cleaner import DEFAULT_CLEANER, CleanerSettings, LogCleaner
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_deletion import LogDeletion
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel, is_passing
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS, ProducerLimits
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from kclient.common.errors import KafkaError
from kclient.common.files import Files
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition

_log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
_OFFLINE_WAIT_MS = 60_000.0


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """How often things are done, in milliseconds, and what is remembered; Kafka's defaults."""

    flush_check_interval_ms: float = 1_000
    retention_check_interval_ms: float = 300_000
    recovery_point_checkpoint_interval_ms: float = 60_000
    start_offset_checkpoint_interval_ms: float = 60_000
    high_watermark_checkpoint_interval_ms: float = 5_000
    producers: ProducerLimits = DEFAULT_LIMITS
    producer_id_expiration_check_interval_ms: float = 600_000
    cleaner: CleanerSettings = DEFAULT_CLEANER


class _Chore:
    """Something that is done at intervals."""

    def __init__(self, interval_ms: float, action: Callable[[float], None]) -> None:
        self.interval_ms = interval_ms
        self.action = action
        self.due_ms: float | None = None


class LogManager:
    """The logs of one data directory.

    The condition guards the table of logs. It is taken before a log's own, never after.

    Attributes:
        failures: Whether the directory is still trusted.
        last_broker_epoch: Broker epoch of the last clean shutdown, or -1.
    """

    def __init__(
        self,
        data_dir: Path,
        runtime: Runtime,
        defaults: LogConfig | None = None,
        settings: LogManagerSettings | None = None,
    ) -> None:
        files = runtime.files
        self._data_dir = data_dir
        self._runtime = runtime
        self._defaults = defaults or LogConfig()
        self._settings = settings or LogManagerSettings()
        self._lock = runtime.tasks.condition()
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._failed: dict[TopicPartition, KafkaError] = {}
        self._leaving: set[TopicPartition] = set()
        self._dir_lock: AbstractContextManager[None] | None = None
        self._is_closing = False
        self._clean = False
        self._checkpoints = LogCheckpoints(files, data_dir)
        self._clean_shutdown = CleanShutdownFileHandler(files, data_dir)
        self._chores = self._make_chores()
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

    def start(self) -> None:
        """Take the directory, and read what the last broker left; idempotent.

        Raises:
            KafkaStorageError: Another broker has the directory, or it cannot be used.
        """
        if self._dir_lock is not None:
            return
        files = self._runtime.files
        with self.failures.guarding(f"{self._data_dir}: start"):
            files.make_directory(self._data_dir)
            held = _take_lock(files, self._data_dir)
            try:
                self._checkpoints.read()
                self._clean = self._clean_shutdown.exists()
                # A crash may have come between making a log's directory and flushing its name.
                self._has_unflushed_names = not self._clean
                self.last_broker_epoch = self._clean_shutdown.read_broker_epoch()
                # From here on a crash must lead to recovery.
                self._clean_shutdown.delete()
            except OSError:
                held.__exit__(None, None, None)
                raise
            self._dir_lock = held
            self._is_closing = False

    def load(self, topic_configs: Mapping[str, LogConfig] | None = None) -> None:
        """Load every log of the directory that is not loaded yet.

        A log that cannot be loaded does not keep the others from serving; see `failed_logs`.

        Args:
            topic_configs: Configuration by topic; others get the defaults.

        Raises:
            KafkaStorageError: As `start`.
        """
        self.start()
        configs = topic_configs or {}
        with self._lock:
            with self.failures.guarding(f"{self._data_dir}: load"):
                names = self._runtime.files.list_directory(self._data_dir)
            for name in names:
                directory = self._data_dir / name
                if not self._runtime.files.is_directory(directory):
                    continue
                if log_file_utils.is_deleted_directory(name):
                    self._deletion.take_renamed(directory)
                elif not log_file_utils.is_set_aside(name):
                    self._load_directory(name, configs)

    @property
    def was_clean(self) -> bool:
        """Whether the last broker closed the directory in order."""
        return self._clean

    def get_log(self, partition: TopicPartition) -> UnifiedLog | None:
        """Return a partition's log, or None if there is none."""
        return None if partition in self._leaving else self._logs.get(partition)

    def get_or_create(
        self,
        partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig | None = None,
        *,
        flush_name: bool = True,
    ) -> UnifiedLog:
        """Return a partition's log; load it from its directory, or make it, if need be.

        Args:
            partition: Which partition.
            topic_id: The topic's id, 16 bytes; None leaves it open.
            config: The topic's configuration; None for the defaults, or for what the log has.
            flush_name: Whether to force the name of a new directory to the disk; otherwise the
                caller calls `flush_names` once, after it has made many.

        Raises:
            InvalidTopicError: The topic's name is not fit for a directory.
            InconsistentTopicIdError: The directory belongs to another topic of that name.
            KafkaStorageError: The disk failed, the log could not be loaded, or the manager is
                closed.
        """
        with self._lock:
            self._check_open(f"{partition}: open")
            problem = self._failed.get(partition)
            if problem is not None and not is_passing(problem):
                raise KafkaStorageError(f"{partition}: {problem}") from problem
            if partition in self._leaving:
                self._let_go()
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
        """Force the names of the logs' directories to the disk.

        Whatever is flushed in a log later can then be found after a crash.

        Raises:
            KafkaStorageError: The disk failed.
        """
        with self._lock, self.failures.guarding(f"{self._data_dir}: flush"):
            if self._has_unflushed_names:
                self._runtime.files.flush_directory(self._data_dir)
                self._has_unflushed_names = False

    def delete(self, *partitions: TopicPartition) -> None:
        """Delete partitions' logs: at once by name, their files after file.delete.delay.ms.

        Absent ones are no error. The checkpoints are written once for all. Where the disk refuses,
        the logs are removed for their users all the same, and `step` tries again.

        Raises:
            KafkaStorageError: The disk failed or is full, or the manager is closed.
        """
        with self._lock:
            self._check_open("delete")
            self._leaving.update(partitions)
            self._let_go()

    def _let_go(self) -> None:
        """Give the directories of deleted logs names that are never loaded."""
        if not self._leaving:
            return
        for partition in sorted(self._leaving):
            if partition in self._logs:
                self._deletion.take_log(self._logs[partition])
                del self._logs[partition]
            else:
                # Its log could not be opened, but its directory may be there.
                self._deletion.take_directory(partition)
                self._failed.pop(partition, None)
            self._has_unflushed_names = True
            self._leaving.remove(partition)
            self._checkpoints.forget(partition)
        self.flush_names()
        self._write(self._checkpoints.write_all)

    def all_logs(self) -> list[UnifiedLog]:
        """Return all logs."""
        with self._lock:
            return list(self._logs.values())

    def failed_logs(self) -> dict[TopicPartition, KafkaError]:
        """Return the partitions that could not be loaded, and why."""
        with self._lock:
            return dict(self._failed)

    def step(self, now_ms: float) -> float:
        """Do what is due.

        Args:
            now_ms: Monotonic time.

        Returns:
            Milliseconds until there is something to do again.
        """
        if self.failures.is_offline or self._is_closing:
            return _OFFLINE_WAIT_MS
        for chore in self._chores:
            if chore.due_ms is None:
                chore.due_ms = now_ms + chore.interval_ms
            elif chore.due_ms <= now_ms:
                chore.due_ms = now_ms + chore.interval_ms
                self._attempt(chore.action, now_ms)
        self._more_to_remove = False
        self._attempt(self._remove_deleted, now_ms)
        cleaner_ms = self._cleaner.step(now_ms)
        if self._more_to_remove:
            return 0.0
        chores_ms = min(chore.due_ms or 0.0 for chore in self._chores) - now_ms
        return max(0.0, min(chores_ms, cleaner_ms))

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close all logs; idempotent. From its beginning no log is created or deleted any more.

        Args:
            clean: Close in order, so that the next start need not recover. Otherwise leave the
                files as a crash would.
            broker_epoch: Noted in the mark of a clean shutdown.

        Raises:
            KafkaStorageError: The disk failed; the next start will recover.
        """
        with self._lock:
            if self._dir_lock is None:
                return
            self._is_closing = True
        try:
            if clean:
                self._cleaner.stop()
                self._close_in_order(broker_epoch)
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

    def _close_in_order(self, broker_epoch: int) -> None:
        problem: KafkaError | None = None
        for log in self.all_logs():
            try:
                log.close()
            except KafkaError as failure:  # one damaged log must not keep the others open
                _log.warning("%s: not closed in order: %s", log.partition, failure)
                problem = failure
        self._write(self._checkpoints.write_all)
        if problem is not None:
            raise problem
        if self._failed:
            return
        with self.failures.guarding(f"{self._data_dir}: clean shutdown"):
            self._clean_shutdown.write(broker_epoch)

    def _make_chores(self) -> list[_Chore]:
        settings, checkpoints = self._settings, self._checkpoints

        def writing(write: Callable[[Logs], None]) -> Callable[[float], None]:
            return lambda _: self._write(write)

        return [
            _Chore(settings.flush_check_interval_ms, self._flush_logs),
            _Chore(settings.retention_check_interval_ms, self._delete_old_segments),
            _Chore(
                settings.recovery_point_checkpoint_interval_ms,
                writing(checkpoints.write_recovery_points),
            ),
            _Chore(
                settings.start_offset_checkpoint_interval_ms, writing(checkpoints.write_log_starts)
            ),
            _Chore(
                settings.high_watermark_checkpoint_interval_ms,
                writing(checkpoints.write_high_watermarks),
            ),
            _Chore(settings.producer_id_expiration_check_interval_ms, self._expire_producers),
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
            _log.warning("%s: left alone: %s", self._data_dir, problem)
            return
        if partition in self._logs:
            return
        try:
            config = configs.get(partition.topic, self._defaults)
            self._logs[partition] = self._open(partition, config)
        except KafkaError as problem:
            _log.exception("%s: cannot be loaded", partition)
            self._failed[partition] = problem

    def _make_directory(self, partition: TopicPartition) -> None:
        directory = log_file_utils.partition_directory(self._data_dir, partition)
        with self.failures.guarding(f"{partition}: make directory"):
            if not self._runtime.files.exists(directory):
                self._has_unflushed_names = True
                self._runtime.files.make_directory(directory, flushed=False)

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

        _for_each(self.all_logs(), delete)

    def _expire_producers(self, _: float) -> None:
        for log in self.all_logs():
            log.maintenance.remove_expired_producers()

    def _write(self, write: Callable[[Logs], None]) -> None:
        with self._lock, self.failures.guarding(f"{self._data_dir}: checkpoints"):
            if self._dir_lock is None:
                # Upkeep that outlasted the close: the table of logs is empty now.
                raise KafkaStorageError(f"{self._data_dir}: checkpoints: the log manager is closed")
            write(self._logs)

    def _remove_deleted(self, now_ms: float) -> None:
        with self._lock:
            self._check_open("remove deleted logs")
            self._let_go()
        self._more_to_remove = self._deletion.remove_due(now_ms)


def _take_lock(files: Files, data_dir: Path) -> AbstractContextManager[None]:
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
    """Call `act` for each log, except for those that are deleted during the iteration."""
    for log in logs:
        try:
            act(log)
        except NotLeaderOrFollowerError:
            _log.debug("%s: deleted meanwhile", log.partition)
