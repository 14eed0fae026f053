"""Outgoing frame, written in as many steps as the socket needs."""

import struct
from collections.abc import Sequence

from kclient.common.errors import InvalidArgumentError
from kclient.common.files import FileSlice, WireBytes, WirePart
from kclient.network.transport_layer import TransportLayer

_SIZE = struct.Struct(">i")
_MAX_FRAME = 2**31 - 1
_SMALL = 4096  # below this size, a copy costs less than a second part
_MAX_GATHER = 64  # parts given to one system call; the system's own limit is 1024


class NetworkSend:
    """Frame for a channel, and the number of bytes written (Kafka: NetworkSend).

    Attributes:
        channel_id: Id of the channel.
        size: Bytes on the wire, size prefix included.
        completed: Whether all bytes were written.
        awaits_reply: Whether the sender waits for the response only: `Selector.poll` neither
            returns when the frame is written nor lists it.
        write_began_ms: Time of the first attempt to write it; None before.
    """

    __slots__ = (
        "_next",
        "_offset",
        "_parts",
        "_written",
        "awaits_reply",
        "channel_id",
        "completed",
        "size",
        "write_began_ms",
    )

    def __init__(
        self, channel_id: str, parts: Sequence[WirePart], *, awaits_reply: bool = False
    ) -> None:
        length = 0
        for part in parts:
            length += len(part)
        if length > _MAX_FRAME:
            raise InvalidArgumentError(f"frame: got {length} bytes, expected at most {_MAX_FRAME}")
        self.channel_id = channel_id
        self.awaits_reply = awaits_reply
        self.size = length + _SIZE.size
        first = parts[0] if len(parts) == 1 else None
        self._parts: list[WirePart]
        if length < _SMALL and isinstance(first, bytes):
            self._parts = [_SIZE.pack(length) + first]
        else:
            self._parts = [_SIZE.pack(length), *parts]
        self._next = 0
        self._offset = 0
        self._written = 0
        self.completed = False
        self.write_began_ms: float | None = None

    @property
    def started(self) -> bool:
        """Whether any byte was written."""
        return self._written > 0

    def write_to(self, transport: TransportLayer) -> int:
        """Write as much as the transport accepts now; return the number of bytes.

        Raises:
            OSError: The connection broke.
        """
        before = self._written
        while self._written < self.size:
            part = self._parts[self._next]
            if isinstance(part, FileSlice):
                taken = transport.write_file(part, self._offset)
            elif len(self._parts) == 1 and not self._offset:
                taken = transport.write([part])
            else:
                taken = transport.write(self._gather())
            if not taken:
                return self._written - before
            self._written += taken
            if self._written < self.size:
                self._advance(taken)
        self._parts.clear()  # drops the references to the memory or files that were sent
        self.completed = True
        return self._written - before

    def _gather(self) -> list[WireBytes]:
        gathered: list[WireBytes] = []
        for part in self._parts[self._next : self._next + _MAX_GATHER]:
            if isinstance(part, FileSlice):
                break
            gathered.append(part)
        if self._offset:
            gathered[0] = memoryview(gathered[0])[self._offset :]
        return gathered

    def _advance(self, taken: int) -> None:
        # Skips empty parts as well: a write of 0 bytes looks like a full socket.
        position = self._offset + taken
        while self._next < len(self._parts):
            length = len(self._parts[self._next])
            if position < length:
                break
            position -= length
            self._parts[self._next] = b""  # drop the reference to the memory or file that was sent
            self._next += 1
        self._offset = position
