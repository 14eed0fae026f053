"""Transport layers: byte input and output of a connection, in plaintext here."""

import os
from collections.abc import Sequence
from typing import Protocol

from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket

_MAX_LOW_WATER_MARK = 1 << 20
_MAX_SENDFILE = 1 << 30
_MAX_READ = 1 << 20
_SENDFILE = getattr(os, "sendfile", None)


class TransportLayer(Protocol):
    """Byte stream of a channel (Kafka: TransportLayer).

    Reads and writes never block: they return 0 when the socket is not ready. At the end of the
    stream they raise `EOFError`, on other failures `OSError`, or `KafkaError` for failures of the
    layer's own protocol.
    """

    socket: StreamSocket

    @property
    def wants_write(self) -> bool:
        """Whether the layer itself has bytes to write, as in a handshake."""
        ...

    @property
    def has_buffered(self) -> bool:
        """Whether the layer holds bytes that were received and not read yet."""
        ...

    def ready(self) -> bool:
        """Return whether the layer's own handshake is complete."""
        ...

    def handshake(self) -> None:
        """Run the next step of the handshake; does nothing when ready."""
        ...

    def read_into(self, buffer: memoryview) -> int:
        """Read up to the buffer's size; return the number of bytes."""
        ...

    def expect(self, size: int) -> None:
        """Take note that `size` more bytes of a frame are expected, 0 at its end.

        The socket need not be readable before many of them have arrived.
        """
        ...

    def write(self, parts: Sequence[WireBytes]) -> int:
        """Write from the parts in order; return the number of bytes written."""
        ...

    def write_file(self, part: FileSlice, offset: int) -> int:
        """Write a file slice from `offset` on; return the number of bytes written."""
        ...

    def flush(self) -> bool:
        """Write the bytes that the layer itself holds; return whether none are left."""
        ...

    def peer_address(self) -> Address:
        """Return the peer's address."""
        ...

    def close(self) -> None:
        """Close the connection; idempotent."""
        ...


class PlaintextTransportLayer:
    """Unencrypted connection (Kafka: PlaintextTransportLayer)."""

    wants_write = False
    has_buffered = False

    def __init__(self, stream: StreamSocket) -> None:
        self.socket = stream
        self._low_water_mark = 1

    def ready(self) -> bool:
        """Return True: there is no handshake."""
        return True

    def handshake(self) -> None:
        """Do nothing."""

    def read_into(self, buffer: memoryview) -> int:
        """Read up to the buffer's size; return the number of bytes."""
        try:
            count = self.socket.recv_into(buffer)
        except BlockingIOError:
            return 0
        if not count:
            raise EOFError
        return count

    def expect(self, size: int) -> None:
        """Let the socket be readable when `size` bytes have arrived, or 1 MiB of them.

        A response of 4 MiB arrives in dozens of pieces, each of which woke the reader.
        """
        mark = min(max(size, 1), _MAX_LOW_WATER_MARK)
        if mark != self._low_water_mark:
            self.socket.set_receive_low_water_mark(mark)
            self._low_water_mark = mark

    def write(self, parts: Sequence[WireBytes]) -> int:
        """Write from the parts in order; return the number of bytes written."""
        try:
            return self.socket.sendmsg(parts)
        except BlockingIOError:
            return 0

    def write_file(self, part: FileSlice, offset: int) -> int:
        """Write a file slice from `offset` on, by sendfile if the system has it."""
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

    def flush(self) -> bool:
        """Return True: the layer holds no bytes."""
        return True

    def peer_address(self) -> Address:
        """Return the peer's address."""
        return self.socket.peer_address()

    def close(self) -> None:
        """Close the connection; idempotent."""
        self.socket.close()


def _check_not_short(count: int, part: FileSlice) -> None:
    """Raise if the file ended early: the frame's size prefix is already on the wire."""
    if not count:
        raise OSError(f"{part.file.path}: shorter than the slice to send")
