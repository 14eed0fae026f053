"""One frame on its way in."""

import struct

from kclient.common.errors import InvalidReceiveError
from kclient.network.foreign_peer import foreign_peer
from kclient.network.memory_pool import MemoryPool
from kclient.network.transport_layer import TransportLayer

_SIZE = struct.Struct(">i")
_FIRST_BUFFER = 64 * 1024
_ZEROS = memoryview(bytes(1024 * 1024))


class NetworkReceive:
    """A frame being read from one channel (Kafka: NetworkReceive).

    The buffer grows with the bytes that arrived, never with the size that was claimed: a peer
    that claims 100 MB and sends nothing costs 64 KiB.

    Attributes:
        source: Id of the channel it came from.
        payload: The frame without its size prefix, once complete.
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
        "payload",
        "source",
    )

    def __init__(self, source: str, max_size: int, pool: MemoryPool) -> None:
        self.source = source
        self.payload = memoryview(b"")
        self._max_size = max_size
        self._pool = pool
        self._prefix = bytearray(_SIZE.size)
        self._size = -1
        self._reserved = 0
        self._buffer = bytearray()
        self._view = memoryview(self._prefix)
        self._filled = 0

    def completed(self) -> bool:
        """Return whether the whole frame has arrived."""
        return self._filled == self._size

    def started(self) -> bool:
        """Return whether any byte of the frame has arrived."""
        return self._size >= 0 or self._filled > 0

    def waits_for_memory(self) -> bool:
        """Return whether the size is known and the pool had no memory for it."""
        return self._size > 0 and not self._reserved

    def progress(self) -> str:
        """Say how much of the frame has arrived, for error messages."""
        if self._size < 0:
            return f"after {self._filled} of the 4 bytes of a frame's size"
        return f"after {self._filled} of a frame's {self._size} bytes"

    def read_from(self, transport: TransportLayer) -> int:
        """Read what is there, up to the end of the frame; return the number of bytes.

        Raises:
            InvalidReceiveError: The size is negative or over the limit, or the peer speaks another
                protocol.
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
            with self._view[self._filled :] as room:  # no view may be left when the buffer grows
                count = transport.read_into(room)
            if not count:
                return read
            read += count
            self._filled += count
        self.payload = self._view
        return read

    def release(self) -> None:
        """Give the memory back to the pool; the payload must not be used any more."""
        if self._reserved:
            self._pool.release(self._reserved)
            self._reserved = 0

    def _read_prefix(self, transport: TransportLayer) -> int:
        count = transport.read_into(self._view[self._filled :])
        self._filled += count
        if self._filled == _SIZE.size:
            self._size = self._checked_size()
            self._filled = 0
        return count

    def _checked_size(self) -> int:
        size = _SIZE.unpack(self._prefix)[0]
        if self._prefix[0]:  # negative, or 16 MiB at least
            stranger = foreign_peer(bytes(self._prefix))
            if stranger is not None:
                raise InvalidReceiveError(f"the peer answered with {stranger}")
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
        """Double the buffer, which the system does without copying where it is large."""
        self._view.release()
        missing = min(self._size, 2 * len(self._buffer)) - len(self._buffer)
        while missing:
            step = min(missing, len(_ZEROS))
            self._buffer += _ZEROS[:step]
            missing -= step
        self._view = memoryview(self._buffer)
