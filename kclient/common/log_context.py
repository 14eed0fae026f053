"""The prefix that names a client in each of its log lines."""

import logging
from collections.abc import Mapping
from typing import Any


class ContextLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose messages begin with the prefix of one client.

    Where the level is off it costs no more than a plain logger.
    """

    def __init__(self, name: str, prefix: str) -> None:
        super().__init__(logging.getLogger(name), None)
        self._prefix = prefix
        # The message is a format only where it comes with arguments, as in `LogRecord.getMessage`.
        self._format_prefix = prefix.replace("%", "%%")

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log `prefix` and `msg`, where the level is on; see `logging.Logger.log`."""
        if self.logger.isEnabledFor(level):
            text = f"{self._format_prefix if args else self._prefix}{msg}"
            # One more frame to skip: this one.
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            self.logger.log(level, text, *args, **kwargs)


class LogContext:
    """Makes the loggers of the parts of one client (Kafka: LogContext).

    Each client builds one, from its own names, and hands it to its parts:

        LogContext("Consumer", {"clientId": client_id, "groupId": group_id})

    A part keeps ``log_context.logger(__name__)`` instead of ``logging.getLogger(__name__)``. Its
    lines then begin with ``[Consumer clientId=orders-1, groupId=orders] ``.
    """

    def __init__(self, kind: str = "", names: Mapping[str, str | None] | None = None) -> None:
        """Take what identifies the client.

        Args:
            kind: ``Producer``, ``Consumer`` or ``AdminClient``; empty for no prefix at all.
            names: Values by their names in the prefix; those that are None or empty are left out.
        """
        shown = ", ".join(f"{name}={value}" for name, value in (names or {}).items() if value)
        self.prefix = f"[{kind} {shown}] " if kind and shown else f"[{kind}] " if kind else ""

    def logger(self, name: str) -> ContextLogger:
        """Return the logger called `name`, with the prefix."""
        return ContextLogger(name, self.prefix)


NO_LOG_CONTEXT = LogContext()
"""Leaves messages as they are, for parts that are used outside of a client."""
