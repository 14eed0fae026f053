"""Acceptor: accepts the connections of one listener, and distributes them to its processors."""

import itertools
import logging
import math
from collections.abc import Sequence

from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.processor import Processor
from kclient.common.runtime import READABLE, Listener, Poller, StreamSocket

_log = logging.getLogger(__name__)

_POLL_MS = 500.0
_PAUSE_MS = 500.0


class Acceptor:
    """Accepts the connections of one listener (Kafka: DataPlaneAcceptor).

    New connections wait in the system's backlog while the broker has ``max.connections``, while the
    creation rate is exceeded, and while few descriptors are left. A connection from an address with
    too many is closed at once.

    Attributes:
        listener_name: Name of the listener.
        processors: Processors of the listener's connections.
    """

    def __init__(
        self,
        listener_name: str,
        listener: Listener,
        poller: Poller,
        processors: Sequence[Processor],
        quotas: ConnectionQuotas,
    ) -> None:
        self.listener_name = listener_name
        self.processors = processors
        self._listener = listener
        self._poller = poller
        self._next_processor = itertools.cycle(processors)
        self._quotas = quotas
        self._running = True
        self._watched: bool | None = None
        self._paused_until_ms = 0.0
        self._out_of_descriptors = False
        quotas.on_below_limit(poller.wakeup)

    def run_once(self, now_ms: float, timeout_ms: float = _POLL_MS) -> bool:
        """Accept the connections that arrive within the time; return whether to continue."""
        pause_ms = max(0.0, self._paused_until_ms - now_ms)
        self._watch(accepting=not pause_ms and self._quotas.is_below_limit())
        if self._poller.poll(min(timeout_ms, pause_ms) if pause_ms else timeout_ms):
            self._accept_all(now_ms)
        return self._running

    def stop(self) -> None:
        """Make the next `run_once` the last."""
        self._running = False
        self._poller.wakeup()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        self._poller.close()

    def _watch(self, *, accepting: bool) -> None:
        events = READABLE if accepting else 0
        if self._watched is None:
            self._poller.register(self._listener, events, self._listener)
        elif self._watched != accepting:
            self._poller.modify(self._listener, events)
        self._watched = accepting

    def _accept_all(self, now_ms: float) -> None:
        while not (wait_ms := self._quotas.reserve(now_ms)):
            connection = self._accept(now_ms)
            if connection is None:
                self._quotas.cancel()
                return
            self._assign(connection)
        if wait_ms != math.inf:
            self._paused_until_ms = now_ms + wait_ms

    def _accept(self, now_ms: float) -> StreamSocket | None:
        """Return the next connection, or None if there is none or it cannot be accepted now."""
        while True:
            try:
                connection = self._listener.accept()
            except BlockingIOError:
                return None
            except ConnectionError:
                continue  # closed by the client before it was accepted
            except OSError as error:
                self._pause(now_ms, error)
                return None
            self._out_of_descriptors = False
            return connection

    def _pause(self, now_ms: float, error: OSError) -> None:
        """Pause accepting when out of descriptors or memory; open connections are still served."""
        level = logging.DEBUG if self._out_of_descriptors else logging.WARNING  # warn once
        _log.log(level, "not accepting connections for %.0f ms: %s", _PAUSE_MS, error)
        self._out_of_descriptors = True
        self._paused_until_ms = now_ms + _PAUSE_MS

    def _assign(self, connection: StreamSocket) -> None:
        try:
            address = connection.peer_address()[0]
        except OSError:
            connection.close()
            self._quotas.cancel()
            return
        if not self._quotas.try_add(address):
            _log.info("refusing a connection from %s: max.connections.per.ip is reached", address)
            connection.close()
            return
        if not next(self._next_processor).accept(connection, address):
            self._quotas.remove(address)
            connection.close()
