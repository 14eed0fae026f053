"""Cleaner that compacts the logs of a data directory (Kafka: LogCleaner, LogCleanerManager)."""

import logging
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

from kclient.broker.log.cleaned_segment import CleaningAbandonedError
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)

_Job = Generator[None, None, None]


class CleanerSettings(NamedTuple):
    """Configuration of the cleaner, with Kafka's defaults.

    Attributes:
        enabled: ``log.cleaner.enable``.
        backoff_ms: ``log.cleaner.backoff.ms``: pause when no log needs cleaning.
        memory_bytes: ``log.cleaner.dedupe.buffer.size``: bound of the offset map.
    """

    enabled: bool = True
    backoff_ms: float = 15_000
    memory_bytes: int = 128 * 1024 * 1024


DEFAULT_CLEANER = CleanerSettings()


class LogCleaner:
    """Selects the log with the highest dirty ratio, and compacts it.

    Each step does one slice of work, so that the calling thread can run other tasks in between. A
    damaged log is not cleaned until a restart; the other logs are.
    """

    def __init__(
        self,
        settings: CleanerSettings,
        logs: Callable[[], list[UnifiedLog]],
        checkpoint: Callable[[float], None],
    ) -> None:
        """Create a cleaner.

        Args:
            settings: Configuration.
            logs: Returns all logs.
            checkpoint: Writes the cleaner offsets; called with the time.
        """
        self._settings = settings
        self._logs = logs
        self._checkpoint = checkpoint
        self._job: tuple[UnifiedLog, _Job] | None = None
        self._next_ms: float | None = None

    def configure(self, settings: CleanerSettings) -> None:
        """Replace the configuration; another pause begins with the next step."""
        if settings != self._settings:
            self._settings, self._next_ms = settings, None

    def step(self, now_ms: float) -> float:
        """Do one slice of work, if there is any.

        Args:
            now_ms: Monotonic time.

        Returns:
            Milliseconds until the next step.
        """
        if not self._settings.enabled:
            return self._settings.backoff_ms
        if self._next_ms is None:
            self._next_ms = now_ms + self._settings.backoff_ms
        if self._job is None and now_ms >= self._next_ms:
            # Set before an operation can fail.
            self._next_ms = now_ms + self._settings.backoff_ms
            self._job = self._select()
        if self._job is None:
            return max(0.0, self._next_ms - now_ms)
        job, self._job = self._job, None
        if self._advance(*job):
            self._job = job
        else:
            self._checkpoint(now_ms)
        return 0.0

    def stop(self) -> None:
        """Abort the current cleaning."""
        if self._job is not None:
            (log, job), self._job = self._job, None
            # If the disk fails, the next start removes the files.
            with suppress(KafkaError):
                job.throw(CleaningAbandonedError(f"{log.partition}: the broker is stopping"))

    def _select(self) -> tuple[UnifiedLog, _Job] | None:
        worthwhile = [
            (ratio, number, log)
            for number, log in enumerate(self._logs())
            if log.config.compacts and (ratio := self._dirty_ratio(log)) is not None
        ]
        if not worthwhile:
            return None
        log = max(worthwhile)[-1]
        return log, log.cleaning.clean(self._settings.memory_bytes)

    def _dirty_ratio(self, log: UnifiedLog) -> float | None:
        """Return the dirty ratio of a log, or None if it is not to be compacted now."""
        if log.cleaning.problem is not None:
            return None
        try:
            log.cleaning.roll_if_due()
            found = log.cleaning.cleanable()
        except KafkaError as problem:
            self._abandon(log, problem)
            return None
        if not found.is_worthwhile(log.config.min_cleanable_dirty_ratio):
            return None
        return found.dirty_ratio

    def _advance(self, log: UnifiedLog, job: _Job) -> bool:
        """Do a slice; return whether there is another one."""
        try:
            next(job)
        except StopIteration:
            _log.info("%s: compacted up to offset %d", log.partition, log.cleaning.cleaned_to)
            self._next_ms = 0.0  # another log may be dirty
            return False
        except KafkaError as problem:
            self._abandon(log, problem)
            return False
        return True

    def _abandon(self, log: UnifiedLog, problem: KafkaError) -> None:
        if isinstance(problem, CleaningAbandonedError | NotLeaderOrFollowerError):
            _log.debug("%s: not compacted: %s", log.partition, problem)
        elif isinstance(problem, KafkaStorageError):
            _log.warning("%s: not compacted, will be retried: %s", log.partition, problem)
        else:
            log.cleaning.problem = problem
            _log.error("%s: marked as uncleanable: %s", log.partition, problem)
