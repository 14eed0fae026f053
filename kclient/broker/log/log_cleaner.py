"""Compacts the logs of a data directory, one at a time (Kafka: LogCleaner, LogCleanerManager)."""

import logging
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

from kclient.broker.log.log_errors import CleaningAbandonedError
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)

_Job = Generator[None, None, None]


class CleanerSettings(NamedTuple):
    """How the cleaner works; Kafka's defaults.

    Attributes:
        enabled: ``log.cleaner.enable``.
        backoff_ms: ``log.cleaner.backoff.ms``: time between two looks where nothing was to be done.
        memory_bytes: ``log.cleaner.dedupe.buffer.size``: bound on the table of keys.
    """

    enabled: bool = True
    backoff_ms: float = 15_000
    memory_bytes: int = 128 * 1024 * 1024


DEFAULT_CLEANER = CleanerSettings()


class LogCleaner:
    """Picks the log with the largest share of what was not compacted yet, and compacts it.

    The work is cut into slices, one a step, so that whoever drives it gets on with other things. A
    log in which something is damaged is left alone until a restart; the others go on.
    """

    def __init__(
        self,
        settings: CleanerSettings,
        logs: Callable[[], list[UnifiedLog]],
        checkpoint: Callable[[float], None],
    ) -> None:
        """Remember what to clean.

        Args:
            settings: How.
            logs: Returns all logs there are.
            checkpoint: Given the time, writes down up to where each log was cleaned.
        """
        self._settings = settings
        self._logs = logs
        self._checkpoint = checkpoint
        self._job: tuple[UnifiedLog, _Job] | None = None
        self._next_ms: float | None = None

    def step(self, now_ms: float) -> float:
        """Take one slice of work, if there is any.

        Args:
            now_ms: Monotonic time.

        Returns:
            Milliseconds until there may be something to do again.
        """
        if not self._settings.enabled:
            return self._settings.backoff_ms
        if self._next_ms is None:
            self._next_ms = now_ms + self._settings.backoff_ms
        if self._job is None and now_ms >= self._next_ms:
            # Set before anything can fail.
            self._next_ms = now_ms + self._settings.backoff_ms
            self._job = self._picked()
        if self._job is None:
            return max(0.0, self._next_ms - now_ms)
        job, self._job = self._job, None
        if self._advance(*job):
            self._job = job
        else:
            self._checkpoint(now_ms)
        return 0.0

    def stop(self) -> None:
        """Drop what is half done."""
        if self._job is not None:
            (log, job), self._job = self._job, None
            # Where the disk refuses even that, the next start drops it.
            with suppress(KafkaError):
                job.throw(CleaningAbandonedError(f"{log.partition}: the broker stops"))

    def _picked(self) -> tuple[UnifiedLog, _Job] | None:
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
        """Return which share of a log is to be compacted, or None if it is not worth it now."""
        if log.cleaning.problem is not None:
            return None
        try:
            log.cleaning.roll_if_due()
            found = log.cleaning.cleanable()
        except KafkaError as problem:
            self._give_up(log, problem)
            return None
        if not found.is_worthwhile(log.config.min_cleanable_dirty_ratio):
            return None
        return found.dirty_ratio

    def _advance(self, log: UnifiedLog, job: _Job) -> bool:
        """Take a slice; return whether there is another one."""
        try:
            next(job)
        except StopIteration:
            _log.info("%s: compacted up to offset %d", log.partition, log.cleaning.cleaned_to)
            self._next_ms = 0.0  # there may be more to do at once
            return False
        except KafkaError as problem:
            self._give_up(log, problem)
            return False
        return True

    def _give_up(self, log: UnifiedLog, problem: KafkaError) -> None:
        if isinstance(problem, CleaningAbandonedError | NotLeaderOrFollowerError):
            _log.debug("%s: not compacted: %s", log.partition, problem)
        elif isinstance(problem, KafkaStorageError):
            _log.warning("%s: not compacted, tried again later: %s", log.partition, problem)
        else:
            log.cleaning.problem = problem
            _log.error("%s: cannot be compacted, and is left alone: %s", log.partition, problem)
