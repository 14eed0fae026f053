"""Prefix of a client's log lines."""

import logging
from collections.abc import Mapping
from typing import Any


class ContextLogger(logging.LoggerAdapter[logging.Logger]):
    """Logger whose messages start with the prefix of a client.

    If the level is disabled, it costs no more than a plain logger.
    """

    def __init__(self, name: str, prefix: str) -> None:
        super().__init__(logging.getLogger(name), None)
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
