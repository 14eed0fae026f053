"""Two ends of a connection in memory, with any sizes of pieces."""

from collections.abc import Callable, Sequence

from kclient.common.files import WireBytes
from kclient.common.runtime import Address


class Pipe:
    """Socket whose bytes wait until its peer reads them.

    Attributes:
        peer: Other end.
        waiting: Bytes that were received and not read.
        piece: Returns the number of bytes that the next call may take.
        marks: Low-water marks that were set.
    """

    peer: "Pipe"

    def __init__(self, piece: Callable[[], int]) -> None:
        self.waiting = b""
        self.piece = piece
        self.marks: list[int] = []
        self.ended = False

    def fileno(self) -> int:
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        if not self.waiting:
            if self.peer.ended:
                return 0
            raise BlockingIOError
        found = self.waiting[: min(self.piece(), len(buffer))]
        if not found:
            raise BlockingIOError
        self.waiting = self.waiting[len(found) :]
        buffer[: len(found)] = found
        return len(found)

    def sendmsg(self, buffers: Sequence[WireBytes], /) -> int:
        taken = b"".join(map(bytes, buffers))[: self.piece()]
        if not taken:
            raise BlockingIOError
        self.peer.waiting += taken
        return len(taken)

    def set_receive_low_water_mark(self, size: int) -> None:
        self.marks.append(size)

    def connect_error(self) -> int:
        return 0

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def local_address(self) -> Address:
        return ("10.0.0.2", 2)

    def close(self) -> None:
        self.ended = True

    def reset(self) -> None:
        self.ended = True


def pipe(piece: Callable[[], int] = lambda: 1 << 30) -> tuple[Pipe, Pipe]:
    """Return both ends."""
    near, far = Pipe(piece), Pipe(piece)
    near.peer, far.peer = far, near
    return near, far
