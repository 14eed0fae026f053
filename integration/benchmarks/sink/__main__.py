"""The sink broker's process: ``python -m integration.benchmarks.sink``.

It prints its port, and ends when its standard input does.
"""

import selectors
import socket
import struct
import sys
import time

from integration.benchmarks.sink.connection import Connection
from integration.benchmarks.sink.other_requests import OtherRequests
from integration.benchmarks.sink.topics import Topics
from kclient.common.errors import KafkaError

_HOST = "127.0.0.1"
_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE


class SinkBroker:
    """All connections, in one thread."""

    def __init__(self) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._topics = Topics()
        self._others = OtherRequests(self._topics, _HOST, self.port)
        self._selector = selectors.DefaultSelector()
        self._waiting: set[Connection] = set()

    def run(self) -> None:
        """Serves until the standard input ends."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, _READ)
        self._selector.register(sys.stdin, _READ)
        while True:
            for key, events in self._selector.select(self._patience()):
                if key.fileobj is sys.stdin:
                    return
                if key.data is None:
                    self._accept()
                else:
                    self._serve(key.data, events)
            self._end_waits()

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(accepted, self._topics, self._others)
        self._selector.register(accepted, _READ, connection)

    def _serve(self, connection: Connection, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                connection.send()
            if events & _READ:
                connection.receive()
        except ConnectionError:
            self._close(connection)
        except (KafkaError, ValueError, LookupError, struct.error) as error:
            # A request that cannot be decoded ends its connection; a defect ends the process.
            print(f"sink broker: {error!r}", file=sys.stderr, flush=True)
            self._close(connection)
        else:
            self._note(connection)

    def _note(self, connection: Connection) -> None:
        """Watches what the connection waits for now."""
        wanted = _BOTH if connection.wants_to_send else _READ
        if self._selector.get_key(connection.socket).events != wanted:
            self._selector.modify(connection.socket, wanted, connection)
        if connection.due is not None:
            self._waiting.add(connection)

    def _close(self, connection: Connection) -> None:
        self._waiting.discard(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _patience(self) -> float | None:
        dues = [each.due for each in self._waiting if each.due is not None]
        return max(0.0, min(dues) - time.monotonic()) if dues else None

    def _end_waits(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._waiting if each.due and each.due <= now]:
            self._waiting.remove(connection)
            connection.end_wait()
            self._note(connection)


if __name__ == "__main__":
    broker = SinkBroker()
    print(broker.port, flush=True)
    broker.run()
