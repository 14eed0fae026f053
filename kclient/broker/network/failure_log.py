"""Log lines about connections that failed, which a client can cause at any rate."""

import logging
from typing import Final

from kclient.common.errors import DisconnectedError
from kclient.network.kafka_channel import ChannelState

INTERVAL_MS: Final = 60_000.0
"""Time until the next line about the same subject; lines before that are of level DEBUG."""

_MAX_SUBJECTS = 1000

_log = logging.getLogger(__name__)


class LineLimit:
    """Limit of the lines about one subject, such as an address: one in a minute.

    Several threads may use it. At worst, two of them write the same line.
    """

    def __init__(self) -> None:
        self._next_ms: dict[object, float] = {}

    def takes(self, subject: object, now_ms: float) -> bool:
        """Return whether a line is due, which is then counted."""
        if not self.is_due(subject, now_ms):
            return False
        if len(self._next_ms) >= _MAX_SUBJECTS:
            self._next_ms = {}
        self._next_ms[subject] = now_ms + INTERVAL_MS
        return True

    def is_due(self, subject: object, now_ms: float) -> bool:
        """Return whether there was no line within a minute."""
        return self._next_ms.get(subject, 0.0) <= now_ms


class ConnectionFailureLog:
    """Log of the ends of connections.

    Clients that were refused, that were not authenticated in time, or that speak another protocol,
    have a line of level INFO, at most one in a minute for each address.
    """

    def __init__(self) -> None:
        self._limit = LineLimit()

    def write(self, channel_id: str, address: str, end: ChannelState, now_ms: float) -> None:
        """Write a line about the end of a connection."""
        is_failure = not isinstance(end.reason, DisconnectedError)
        level = logging.INFO if is_failure and self._limit.takes(address, now_ms) else logging.DEBUG
        _log.log(level, "%s: %s", channel_id, end.reason)
