"""Log of the failures of a retried request, without a line for each attempt."""

import logging

from kclient.common.log_context import ContextLogger


class FailureLog:
    """Logs the first failure, each new cause and the recovery; repeated failures at DEBUG."""

    def __init__(self, log: ContextLogger, what: str) -> None:
        """Initialize.

        Args:
            log: Logger to write to.
            what: Name of the request, for example ``Offset commit``.
        """
        self._log = log
        self._what = what
        self._cause = ""
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Log a failed attempt."""
        cause = str(error)
        level = logging.DEBUG if cause == self._cause else logging.INFO
        self._cause = cause
        self._failures += 1
        self._log.log(level, "%s failed: %s", self._what, error)

    def succeeded(self) -> None:
        """Log the recovery, if there were failures."""
        if self._failures:
            self._log.info("%s succeeded after %d failed attempts", self._what, self._failures)
            self._failures = 0
            self._cause = ""
