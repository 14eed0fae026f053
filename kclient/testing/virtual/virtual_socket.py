"""Sockets of a virtual network: ends of connections, and listeners."""

import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kclient.common.runtime import READABLE, WRITABLE, Address, StreamSocket
from kclient.testing.virtual.virtual_disk import failure
from kclient.testing.virtual.virtual_stream import Segment, VirtualStream

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_net import VirtualHost, VirtualNet
    from kclient.testing.virtual.virtual_poller import VirtualPoller

DEFAULT_BUFFER_BYTES = 128 * 1024
_LEAST_BUFFER_BYTES = 4096


Gate = Callable[[], None]
"""Raises if the process may not have an effect."""


def _open_to_all() -> None: ...


class VirtualSocket:
    """One end of a connection.

    Attributes:
        host: IP address of its machine.
        incoming: Bytes that have arrived and were not read.
        ended: End of the peer's stream: 0 for an orderly end, else an errno; None while it is open.
        established: Whether it is connected.
        closed: Whether this end was closed.
        other: The peer's end, once connected.
        capacity: Bytes in flight or unread at which a write blocks.
        on_arrival: Called at each arrival, for scripted peers.
    """

    def __init__(
        self, net: "VirtualNet", host: "VirtualHost", local: Address, peer: Address
    ) -> None:
        self.host = host
        self.incoming = bytearray()
        self.ended: int | None = None
        self.established = False
        self.closed = False
        self.other: VirtualSocket | None = None
        self.capacity = 2 * DEFAULT_BUFFER_BYTES
        self.on_arrival: Callable[[], None] | None = None
        self.gate: Gate = _open_to_all
        self.pollers: dict[VirtualPoller, None] = {}
        self.on_close: Callable[[VirtualSocket], object] | None = None
        self._net = net
        self._local = local
        self._peer = peer
        self._stream: VirtualStream | None = None
        self._unread_by_peer = 0
        self._untold = 0
        self._low_water_mark = 1

    def __repr__(self) -> str:
        return f"{self._local[0]}:{self._local[1]}>{self._peer[0]}:{self._peer[1]}"

    @property
    def ip(self) -> str:
        """IP address of its machine."""
        return self.host.ip

    @property
    def has_power(self) -> bool:
        """Whether its machine has power."""
        return self.host.up

    def establish(self, stream: VirtualStream) -> None:
        """Connect this end; bytes are sent into the stream."""
        self.established = True
        self.other = stream.target
        self._stream = stream
        self.changed()

    @property
    def stream(self) -> VirtualStream:
        """The stream to the other end.

        Raises:
            OSError: It is not connected (ENOTCONN).
        """
        if self._stream is None:
            raise failure(errno.ENOTCONN)
        return self._stream

    def set_buffers(self, send_bytes: int, receive_bytes: int) -> None:
        """Set the capacity of the connection; -1 for the default."""
        sizes = (DEFAULT_BUFFER_BYTES if size < 0 else size for size in (send_bytes, receive_bytes))
        self.capacity = sum(max(size, _LEAST_BUFFER_BYTES) for size in sizes)

    def fileno(self) -> int:
        """Return -1: there is no descriptor."""
        return -1

    def readiness(self) -> int:
        """Return the ready events, as READABLE and WRITABLE."""
        ready = 0
        if self.established and (
            len(self.incoming) >= self._low_water_mark or self.ended is not None
        ):
            ready = READABLE
        if self.ended or (self.established and self._unread_by_peer < self.capacity):
            ready |= WRITABLE
        return ready

    def set_receive_low_water_mark(self, size: int) -> None:
        """Become readable when `size` bytes have arrived, or a quarter of the capacity.

        With a higher mark the writer could block first.
        """
        self._low_water_mark = min(size, self.capacity // 4)
        self.changed()

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read into `buffer`; 0 means the peer closed its side."""
        self._check_open()
        if not self.incoming:
            if self.ended is None:
                raise BlockingIOError
            if self.ended:
                raise failure(self.ended)
            return 0
        limit = len(buffer)
        if self._stream is not None:
            limit = min(limit, self._stream.chunk())
        taken = self.incoming[:limit]
        buffer[: len(taken)] = taken
        del self.incoming[: len(taken)]
        self._read(len(taken))
        return len(taken)

    def take_incoming(self) -> bytes:
        """Read all bytes that have arrived, for scripted peers."""
        data = bytes(self.incoming)
        self.incoming.clear()
        self._read(len(data))
        return data

    def sendmsg(self, buffers: Sequence[bytes | bytearray | memoryview], /) -> int:
        """Write from the buffers in order; return the number of bytes written."""
        self._check_open()
        if self.ended:
            raise failure(self.ended)
        free = min(self.capacity - self._unread_by_peer, self.stream.chunk())
        if free <= 0:
            raise BlockingIOError
        data = b"".join(buffers)
        if len(data) > free:
            data = data[:free]
        self._unread_by_peer += len(data)
        self._net.sendmsg_calls += 1
        self._net.note("sent", repr(self), data)
        self.stream.send(data)
        return len(data)

    def deliver(self, data: bytes, delay_ms: float | None = None) -> None:
        """Send bytes without a limit; for scripted peers."""
        self._net.note("sent", repr(self), data)
        self.stream.send(data, delay_ms)

    def end(self, failure: int = 0) -> None:
        """End the stream in an orderly way, or the connection with an errno; for scripted peers."""
        if failure:
            self._close(failure)
        elif self._stream is not None:
            self._stream.end(0)

    def connect_error(self) -> int:
        """Return the errno of a finished connect attempt; 0 if it succeeded."""
        return self.ended or 0

    def peer_address(self) -> Address:
        """Return the other side's address."""
        if self.closed or self.ended:
            raise failure(errno.ENOTCONN)
        return self._peer

    def local_address(self) -> Address:
        """Return this side's address."""
        return self._local

    def close(self) -> None:
        """Close the socket; idempotent. It is a reset if bytes were not read, as in TCP."""
        self._close(errno.ECONNRESET if self.incoming else 0)

    def reset(self) -> None:
        """Close the socket so that the peer sees a reset instead of an end; idempotent."""
        self._close(errno.ECONNRESET)

    def vanish(self) -> None:
        """Close the socket as a power cut does, without notification of the peer."""
        self._release()

    def take(self, segment: Segment) -> None:
        """Receive a segment from the other end; for streams."""
        if self.closed:
            if segment.data and self._stream is not None:
                self._stream.end(errno.ECONNRESET)  # this end is closed
            return
        if segment.read:
            self._unread_by_peer -= segment.read
            self.changed()
        if segment.data and self.ended is None:
            self._net.note("arrived", repr(self), segment.data)
            self.incoming += segment.data
            self.changed()
        if segment.end is not None:
            self.fail(segment.end)

    def fail(self, failure: int) -> None:
        """End the connection here: in an orderly way for 0, else with an errno."""
        if self.ended or self.closed or (self.ended == 0 and not failure):
            return
        if failure:
            self.incoming.clear()
        self.ended = failure
        self._net.note("end", f"{self} {failure}")
        self.changed()

    def changed(self) -> None:
        """Notify pollers that the readiness may have changed."""
        for poller in self.pollers:
            poller.ring(self)
        if self.on_arrival is not None:
            self.on_arrival()

    def _read(self, count: int) -> None:
        self._untold += count
        # In large steps, but well before the writer blocks.
        if self.other is not None and self._untold * 4 >= self.other.capacity:
            self.stream.acknowledge(self._untold)
            self._untold = 0

    def _close(self, failure: int) -> None:
        if not self.closed and self._stream is not None and not self.ended:
            self._stream.end(failure)
        self._release()

    def _release(self) -> None:
        if not self.closed:
            self.closed = True
            self._net.closed(self)
            if self.on_close is not None:
                self.on_close(self)

    def _check_open(self) -> None:
        self.gate()
        if self.closed:
            raise failure(errno.EBADF)


class VirtualListener:
    """A listening address.

    Attributes:
        waiting: Connections that were not accepted yet.
        backlog: Number of connections that may wait; further attempts get no response.
    """

    def __init__(self, host: "VirtualHost", address: Address, backlog: int) -> None:
        self.waiting: list[VirtualSocket] = []
        self.backlog = backlog
        self.gate: Gate = _open_to_all
        self.pollers: dict[VirtualPoller, None] = {}
        self.on_accept: Callable[[VirtualSocket], object] = lambda _: None
        self._host = host
        self._address = address

    def __repr__(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def fileno(self) -> int:
        """Return -1: there is no descriptor."""
        return -1

    def readiness(self) -> int:
        """Return the ready events."""
        return READABLE if self.waiting else 0

    def is_full(self) -> bool:
        """Return whether the backlog is full."""
        return len(self.waiting) > self.backlog

    def arrived(self, end: VirtualSocket) -> None:
        """Queue a connection to be accepted."""
        self.waiting.append(end)
        for poller in self.pollers:
            poller.ring(self)

    def accept(self) -> StreamSocket:
        """Return the next connection; raise `BlockingIOError` when there is none."""
        self.gate()
        if not self.waiting:
            raise BlockingIOError
        self.on_accept(self.waiting[0])
        return self.waiting.pop(0)

    def local_address(self) -> Address:
        """Return the bound address, with the real port if port 0 was requested."""
        return self._address

    def close(self) -> None:
        """Stop listening and refuse waiting connections; idempotent."""
        self._host.remove(self._address, self)
        for end in self.waiting:
            end.reset()
        self.waiting.clear()
