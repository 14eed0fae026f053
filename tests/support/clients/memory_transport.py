"""Transport layer of a channel whose peer is a test."""

from collections.abc import Sequence

from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket


class MemoryTransport:
    """Transport layer in memory; both directions take `piece` bytes at a time.

    Attributes:
        received: Bytes of the peer that were not read yet.
        accepts: Whether bytes can be written.
    """

    socket: StreamSocket
    wants_write = False
    has_buffered = False

    def __init__(self, piece: int = 1 << 20) -> None:
        self.piece = piece
        self.accepts = True
        self.sent = b""
        self.received = b""

    def ready(self) -> bool:
        return True

    def handshake(self) -> None: ...

    def read_into(self, buffer: memoryview) -> int:
        piece = self.received[: min(self.piece, len(buffer))]
        self.received = self.received[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def expect(self, size: int) -> None: ...

    def write(self, parts: Sequence[WireBytes]) -> int:
        joined = b"".join(map(bytes, parts))[: self.piece if self.accepts else 0]
        self.sent += joined
        return len(joined)

    def write_file(self, part: FileSlice, offset: int) -> int:
        raise NotImplementedError

    def flush(self) -> bool:
        return True

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def close(self) -> None: ...

    def taken(self) -> bytes:
        sent, self.sent = self.sent, b""
        return sent
