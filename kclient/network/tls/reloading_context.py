"""TLS context of files that may change while a client or a broker runs."""

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from kclient.common.errors import ConfigError
from kclient.common.runtime import Clock

_INTERVAL_MS = 1000.0

_Version = tuple[int, int, int] | None


class ReloadingContext:
    """TLS context that is created again when one of its files has changed.

    The files are looked at when a connection is opened, at most once per second. Connections that
    are open keep the context that they have. Several threads may use it; a change of the files may
    then be loaded by more than one of them, which has no other effect.
    """

    def __init__(
        self,
        files: Sequence[str],
        create: Callable[[], ssl.SSLContext],
        clock: Clock,
        log: logging.LoggerAdapter[logging.Logger] | logging.Logger,
    ) -> None:
        """Create the first context.

        Args:
            files: Paths of the stores.
            create: Returns a context of their present content, or raises ConfigError.
            clock: Clock of the interval.
            log: Logger of the client or broker.

        Raises:
            ConfigError: The first one cannot be created.
        """
        self._files = files
        self._create = create
        self._clock = clock
        self._log = log
        self._versions = [_version(path) for path in files]
        self._context = create()
        self._next_look_ms = clock.monotonic_ms() + _INTERVAL_MS

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection.

        If changed files cannot be loaded, that is the earlier one: they may be incomplete. They are
        loaded again after their next change.
        """
        now_ms = self._clock.monotonic_ms()
        if self._files and now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + _INTERVAL_MS
            # Before they are read: a change after that is seen at the next look.
            versions = [_version(path) for path in self._files]
            if versions != self._versions:
                self._versions = versions
                self._reload()
        return self._context

    def _reload(self) -> None:
        names = ", ".join(f"{path!r:.200}" for path in self._files)
        try:
            self._context = self._create()
        except ConfigError as error:
            self._log.warning(
                "TLS: a change of %s cannot be used, and the earlier one is kept: %s", names, error
            )
        else:
            self._log.info("TLS: loaded the changed store; files: %s", names)


def _version(path: str) -> _Version:
    """Return what differs after a file was written or replaced; None if it cannot be looked at."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
