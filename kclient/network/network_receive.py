"""Incoming frame, read in as many steps as its bytes arrive in."""

import struct

from kclient.common.errors import InvalidReceiveError
from kclient.network.memory_pool import MemoryPool
from kclient.network.transport_layer import TransportLayer

_SIZE = struct.Struct(">i")
_FIRST_BUFFER = 64 * 1024
_EMPTY = memoryview(b"")
_ZEROS = memoryview(bytes(1024 * 1024))

_TLS_ALERT = 0x15
_TLS_HANDSHAKE = 0x16
_TLS_RECORDS = {
    # A server sends an alert after the first request, and a client begins with a handshake.
    _TLS_ALERT: "a TLS alert: the peer expects TLS, this side speaks plaintext; check"
    " security.protocol",
    _TLS_HANDSHAKE: "a TLS handshake: the client speaks TLS, and this listener is one without TLS",
}
_WORDS = {
    **dict.fromkeys(
        (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC"),
        "an HTTP request: the client speaks HTTP, and this is a Kafka listener",
    ),
    b"HTTP": "HTTP: the address is that of a web server or proxy, not of a Kafka listener",
    b"SSH-": "SSH: the address is that of an SSH server, not of a Kafka listener",
}


class NetworkReceive:
    """Frame that is read from a channel (Kafka: NetworkReceive).

    The buffer grows with the bytes that arrived, not with the claimed size: a peer that claims
    100 MB and sends nothing costs 64 KiB.

    Attributes:
        source: Id of the channel.
        payload: Complete frame without its size prefix.
        completed: Whether the frame has arrived completely.
    """

    __slots__ = (
        "_buffer",
        "_filled",
        "_max_size",
        "_pool",
        "_prefix",
        "_reserved",
        "_size",
        "_view",
        "completed",
        "payload",
        "source",
    )

    def __init__(self, source: str, max_size: int, pool: MemoryPool) -> None:
        self.source = source
        self.payload = _EMPTY
        self._max_size = max_size
        self._pool = pool
        self._prefix = bytearray(_SIZE.size)
        self._size = -1
        self._reserved = 0
        self._buffer = self._prefix
        self._view = _EMPTY
        self._filled = 0
        self.completed = False

    def started(self) -> bool:
        """Return whether any byte of the frame has arrived."""
        return self._size >= 0 or self._filled > 0

    def waits_for_memory(self) -> bool:
        """Return whether the size is known and the pool had no memory for it."""
        return self._size > 0 and not self._reserved

    def progress(self) -> str:
        """Return how much of the frame has arrived, for error texts."""
        if self._size < 0:
            return f"after {self._filled} of the 4 bytes of a frame's size"
        return f"after {self._filled} of a frame's {self._size} bytes"

    def read_from(self, transport: TransportLayer) -> int:
        """Read the available bytes, up to the end of the frame; return their number.

        Raises:
            InvalidReceiveError: The size is negative or exceeds the limit, or the peer speaks
                another protocol.
            EOFError: The peer closed the connection.
            OSError: The connection broke.
        """
        read = 0
        if self._size < 0:
            read = self._read_prefix(transport)
            if self._size < 0:
                return read
        if not self._reserved and not self._reserve():
            return read
        while self._filled < self._size:
            if self._filled == len(self._view):
                self._grow()
            with self._view[self._filled :] as free:  # no view may be left when the buffer grows
                count = transport.read_into(free)
            if not count:
                if self._size > _FIRST_BUFFER:
                    transport.expect(self._size - self._filled)
                return read
            read += count
            self._filled += count
        if self._size > _FIRST_BUFFER:
            transport.expect(0)
        self.payload = self._view
        self.completed = True
        return read

    def take(self, received: memoryview) -> int:
        """Take the frame's next bytes from received ones; return their number.

        It takes none of the payload while the pool has no memory.

        Raises:
            InvalidReceiveError: As `read_from`.
        """
        start = 0
        if self._size < 0 and not self._filled and len(received) >= _SIZE.size:
            start = _SIZE.size
            self._prefix[:] = received[:start]
            self._size = self._checked_size()
        elif self._size < 0:
            start = min(_SIZE.size - self._filled, len(received))
            self._prefix[self._filled : self._filled + start] = received[:start]
            self._filled += start
            if self._filled < _SIZE.size:
                return start
            self._size = self._checked_size()
            self._filled = 0
        if self._size and not self._pool.try_allocate(self._size):
            return start
        self._reserved = self._size
        part = received[start : start + self._size]
        self._buffer = bytearray(part)
        self._filled = len(part)
        if self._filled < self._size:
            self._buffer += _ZEROS[: min(self._size, _FIRST_BUFFER) - self._filled]
        self._view = memoryview(self._buffer)
        if self._filled == self._size:
            self.payload = self._view
            self.completed = True
        return start + self._filled

    def release(self) -> None:
        """Return the memory to the pool; the payload must not be used afterwards."""
        if self._reserved:
            self._pool.release(self._reserved)
            self._reserved = 0

    def _read_prefix(self, transport: TransportLayer) -> int:
        count = transport.read_into(memoryview(self._prefix)[self._filled :])
        self._filled += count
        if self._filled == _SIZE.size:
            self._size = self._checked_size()
            self._filled = 0
        return count

    def _checked_size(self) -> int:
        size = _SIZE.unpack(self._prefix)[0]
        if self._prefix[0]:  # negative, or 16 MiB at least
            protocol = foreign_peer(bytes(self._prefix))
            if protocol is not None:
                raise InvalidReceiveError(f"the peer sent {protocol}")
        if not 0 <= size <= self._max_size:
            raise InvalidReceiveError(
                f"frame size: got {size}, expected 0 to {self._max_size} bytes"
            )
        return int(size)

    def _reserve(self) -> bool:
        if not self._pool.try_allocate(self._size):
            return False
        self._reserved = self._size
        self._buffer = bytearray(min(self._size, _FIRST_BUFFER))
        self._view = memoryview(self._buffer)
        return True

    def _grow(self) -> None:
        """Double the buffer; the allocator extends a large one without a copy."""
        self._view.release()
        missing = min(self._size, 2 * len(self._buffer)) - len(self._buffer)
        while missing:
            step = min(missing, len(_ZEROS))
            self._buffer += _ZEROS[:step]
            missing -= step
        self._view = memoryview(self._buffer)


def foreign_peer(prefix: bytes) -> str | None:
    """Return the protocol that the peer seems to speak, or None if the bytes may be a size.

    The first four bytes of a Kafka frame are its size. In other protocols they are text or a record
    type, which reads as a size beyond any limit: "HTTP" is 1,213,486,160 (KIP-498).

    Args:
        prefix: The first four bytes received.
    """
    if prefix[1] == 3 and prefix[0] in _TLS_RECORDS:
        return _TLS_RECORDS[prefix[0]]
    if prefix in _WORDS:
        return _WORDS[prefix]
    if all(0x20 <= byte < 0x7F or byte in b"\r\n\t" for byte in prefix):
        return f"text ({prefix!r}), not Kafka's protocol"
    return None
