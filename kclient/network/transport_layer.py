"""Bytes in and out of one connection: in plaintext here, encrypted by another of the same shape."""

import os
from collections.abc import Sequence
from typing import Protocol

from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket

_MAX_SENDFILE = 1 << 30
_MAX_READ = 1 << 20
_SENDFILE = getattr(os, "sendfile", None)


class TransportLayer(Protocol):
    """What a channel needs of a connection (Kafka: TransportLayer).

    Reads and writes never block: they return 0 when nothing can be moved now. At the end of the
    stream they raise `EOFError`; any other trouble is an `OSError`, or a `KafkaError` where the
    layer knows better.
    """

    socket: StreamSocket

    def ready(self) -> bool:
        """Return whether the layer's own handshake is over."""
        ...

    def handshake(self) -> None:
        """Take the next step of the handshake; does nothing once ready."""
        ...

    def read_into(self, buffer: memoryview) -> int:
        """Read up to the buffer's size; return the number of bytes, 0 for none now."""
        ...

    def write(self, parts: Sequence[WireBytes]) -> int:
        """Write from the parts in order; return the number of bytes taken, 0 for none now."""
        ...

    def write_file(self, part: FileSlice, offset: int) -> int:
        """Write a file slice from `offset` on; return the number of bytes taken, 0 for none now."""
        ...

    def wants_write(self) -> bool:
        """Return whether the layer itself has bytes to write, as in a handshake."""
        ...

    def has_buffered(self) -> bool:
        """Return whether bytes were taken off the socket that nobody has read yet."""
        ...

    def peer_address(self) -> Address:
        """Return the other side's address."""
        ...

    def close(self) -> None:
        """Close the connection; idempotent."""
        ...


class PlaintextTransportLayer:
    """A connection as it is (Kafka: PlaintextTransportLayer)."""

    def __init__(self, stream: StreamSocket) -> None:
        self.socket = stream

    def ready(self) -> bool:
        """Plaintext needs no handshake."""
        return True

    def handshake(self) -> None:
        """Plaintext needs no handshake."""

    def read_into(self, buffer: memoryview) -> int:
        """Read up to the buffer's size; return the number of bytes, 0 for none now."""
        try:
            count = self.socket.recv_into(buffer)
        except BlockingIOError:
            return 0
        if not count:
            raise EOFError
        return count

    def write(self, parts: Sequence[WireBytes]) -> int:
        """Write from the parts in order; return the number of bytes taken, 0 for none now."""
        try:
            return self.socket.sendmsg(parts)
        except BlockingIOError:
            return 0

    def write_file(self, part: FileSlice, offset: int) -> int:
        """Write a file slice from `offset` on, past Python's memory where the system can."""
        target, source = self.socket.fileno(), part.file.fileno()
        left = part.length - offset
        if _SENDFILE is None or target < 0 or source < 0:
            chunk = part.file.read_at(part.position + offset, min(left, _MAX_READ))
            _check_not_short(len(chunk), part)
            return self.write([chunk])
        try:
            count: int = _SENDFILE(target, source, part.position + offset, min(left, _MAX_SENDFILE))
        except BlockingIOError:
            return 0
        _check_not_short(count, part)
        return count

    def wants_write(self) -> bool:
        """Plaintext writes only what it is given."""
        return False

    def has_buffered(self) -> bool:
        """Plaintext keeps nothing back."""
        return False

    def peer_address(self) -> Address:
        """Return the other side's address."""
        return self.socket.peer_address()

    def close(self) -> None:
        """Close the connection; idempotent."""
        self.socket.close()


def _check_not_short(count: int, part: FileSlice) -> None:
    """Refuse a file that ended early: its frame's size prefix is already on the wire."""
    if not count:
        raise OSError(f"{part.file.path}: shorter than the slice that was to be sent")
