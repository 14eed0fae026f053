"""Log lines of a client: their prefix, and those of repeated failures."""

import logging
from collections.abc import Mapping
from typing import Any


class ContextLogger(logging.LoggerAdapter[logging.Logger]):
    """Logger whose messages start with the prefix of a client.

    If the level is disabled, it costs no more than a plain logger.
    """

    def __init__(self, name: str, prefix: str) -> None:
        super().__init__(logging.getLogger(name), None)
        self.isEnabledFor = self.logger.isEnabledFor  # type: ignore[method-assign]  # no call more
        self._prefix = prefix
        # The message is a format only if there are arguments, as in `LogRecord.getMessage`.
        self._format_prefix = prefix.replace("%", "%%")

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log `prefix` and `msg` if the level is enabled; see `logging.Logger.log`."""
        if self.logger.isEnabledFor(level):
            text = f"{self._format_prefix if args else self._prefix}{msg}"
            # Skip this frame, too.
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            self.logger.log(level, text, *args, **kwargs)


class LogContext:
    """Factory of the loggers of one client (Kafka: LogContext).

    Each client creates one and passes it to its classes:

        LogContext("Consumer", {"clientId": client_id, "groupId": group_id})

    These use ``log_context.logger(__name__)`` instead of ``logging.getLogger(__name__)``. Their log
    lines start with ``[Consumer clientId=orders-1, groupId=orders] ``.
    """

    def __init__(self, kind: str = "", names: Mapping[str, str | None] | None = None) -> None:
        """Set the prefix.

        Args:
            kind: ``Producer``, ``Consumer`` or ``AdminClient``; empty for no prefix.
            names: Values by their names in the prefix; None and empty values are skipped.
        """
        shown = ", ".join(f"{name}={value}" for name, value in (names or {}).items() if value)
        self.prefix = f"[{kind} {shown}] " if kind and shown else f"[{kind}] " if kind else ""

    def logger(self, name: str) -> ContextLogger:
        """Return the logger called `name`, with the prefix."""
        return ContextLogger(name, self.prefix)


NO_LOG_CONTEXT = LogContext()
"""Log context without a prefix, for classes that are used outside of a client."""


class FailureLog:
    """Log of a retried request: the first failure, each new cause, and the recovery.

    Repeated failures are logged at DEBUG.
    """

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
