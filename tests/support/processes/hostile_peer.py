"""Peers on real sockets that are not brokers, and the errors of clients about them."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

from tests.support.checks.closing import Closing

Act = Callable[[socket.socket], None]


def says(words: bytes) -> Act:
    return lambda peer: peer.sendall(words)


def resets(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trickles(peer: socket.socket) -> None:
    for byte in b"HTTP":
        peer.sendall(bytes([byte]))


def waits(peer: socket.socket) -> None:
    """Stay silent until the client closes the connection."""
    with suppress(OSError):
        while peer.recv(4096):
            pass


def claims(size: int) -> Act:
    """Send a frame's size, and nothing of the frame."""

    def act(peer: socket.socket) -> None:
        peer.sendall(struct.pack(">i", size) + b"x" * 1000)
        waits(peer)

    return act


HOSTILE: dict[str, tuple[Act, str]] = {
    "http": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the peer sent HTTP"),
    "tls": (says(b"\x15\x03\x03\x00\x02\x02\x46"), "the peer sent a TLS alert"),
    "ssh": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "the peer sent SSH"),
    "negative": (says(b"\xff\xff\xff\xff"), "frame size: got -1"),
    "empty": (says(b"\x00\x00\x00\x00"), "response header: got 0 bytes"),
    "huge": (says(b"\x7f\xff\xff\xff"), "frame size: got 2147483647"),
    "over the limit": (says(struct.pack(">i", 104857601)), "frame size: got 104857601"),
    "correlation": (says(b"\x00\x00\x00\x06\x00\x00\x30\x39\x00\x00"), "correlation id: got 12345"),
    "garbage": (says(b"\x00\x00\x00\x0a" + b"\xfe" * 10), "correlation id: got -16843010"),
    "cut": (says(b"\x00\x00\x01\x00abc"), "closed the connection after 3 of a frame's 256 bytes"),
    "eof": (lambda _: None, "the peer closed the connection"),
    "reset": (resets, "Connection reset by peer"),
    "bytewise": (trickles, "the peer sent HTTP"),
}
"""Behaviour of peers that close the connection, with a part of the client's error."""


class HostilePeer(Closing):
    """Accepts connections, reads the first request, acts once, and closes.

    Attributes:
        port: Port on 127.0.0.1.
        connections: Number of accepted connections.
    """

    def __init__(self, act: Act) -> None:
        self.connections = 0
        self._act = act
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _run(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer, suppress(ConnectionError):  # the client may have closed before the response
                if peer.recv(4096) == b"stop":
                    return
                self.connections += 1
                self._act(peer)

    def stop(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"stop")
            self._thread.join(10)
        self._listener.close()

    def close(self) -> None:
        self.stop()


class ClosedPort(Closing):
    """An address of this machine without a listener."""

    def __init__(self) -> None:
        self._reserved = socket.socket()
        self._reserved.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._reserved.getsockname()[1]}"

    def close(self) -> None:
        self._reserved.close()


class BlackHole(Closing):
    """An address whose packets are lost: the backlog of its listener is full."""

    def __init__(self) -> None:
        self._sockets = ExitStack()
        listener = self._sockets.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        for _ in range(3):
            waiting = self._sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())

    def close(self) -> None:
        self._sockets.close()
