"""Log lines about connections that failed, which a client can cause at any rate."""

import logging
from typing import Final

from kclient.common.errors import DisconnectedError
from kclient.network.kafka_channel import ChannelState

INTERVAL_MS: Final = 60_000.0
"""Time until the next line about the same address; lines before that are of level DEBUG."""

_MAX_ADDRESSES = 1000

_log = logging.getLogger(__name__)


class ConnectionFailureLog:
    """Log of the ends of connections.

    Clients that were refused, that were not authenticated in time, or that speak another protocol,
    have a line of level INFO, at most one in a minute for each address.
    """

    def __init__(self) -> None:
        self._next_ms: dict[str, float] = {}

    def write(self, channel_id: str, address: str, end: ChannelState, now_ms: float) -> None:
        """Write a line about the end of a connection."""
        is_failure = not isinstance(end.reason, DisconnectedError)
        level = logging.INFO if is_failure and self._is_due(address, now_ms) else logging.DEBUG
        _log.log(level, "%s: %s", channel_id, end.reason)

    def _is_due(self, address: str, now_ms: float) -> bool:
        if self._next_ms.get(address, 0.0) > now_ms:
            return False
        if len(self._next_ms) >= _MAX_ADDRESSES:
            self._next_ms.clear()
        self._next_ms[address] = now_ms + INTERVAL_MS
        return True
