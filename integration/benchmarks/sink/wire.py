"""The few wire types of Produce and Fetch."""

from struct import Struct

INT16 = Struct(">h")
INT32 = Struct(">i")
NO_TAGS = b"\x00"


class Reader:
    """Position in a request; flexible versions have compact lengths and tagged fields."""

    __slots__ = ("at", "buffer", "flexible")

    def __init__(self, buffer: memoryview, at: int, *, flexible: bool) -> None:
        self.buffer = buffer
        self.at = at
        self.flexible = flexible

    def varint(self) -> int:
        buffer, at = self.buffer, self.at
        byte = buffer[at]
        at += 1
        value, shift = byte & 0x7F, 7
        while byte > 0x7F:
            byte = buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self.at = at
        return value

    def count(self) -> int:
        """Returns the length of an array or of bytes, -1 for null."""
        if self.flexible:
            return self.varint() - 1
        self.at += 4
        return int(INT32.unpack_from(self.buffer, self.at - 4)[0])

    def text(self) -> bytes:
        """Returns a string, empty for null."""
        if self.flexible:
            length = self.varint() - 1
        else:
            length = INT16.unpack_from(self.buffer, self.at)[0]
            self.at += 2
        return self.take(max(length, 0)).tobytes()

    def take(self, length: int) -> memoryview:
        """Returns the next bytes.

        Raises:
            ValueError: The request ends before.
        """
        start = self.at
        self.at = end = start + length
        if end > len(self.buffer) or length < 0:
            msg = f"request: got {len(self.buffer)} bytes, expected at least {end}"
            raise ValueError(msg)
        return self.buffer[start:end]

    def skip_tags(self) -> None:
        if self.flexible:
            for _ in range(self.varint()):
                self.varint()
                self.take(self.varint())


def varint(value: int) -> bytes:
    """Returns an unsigned varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def count(value: int, *, flexible: bool) -> bytes:
    """Returns the length of an array or of bytes."""
    return varint(value + 1) if flexible else INT32.pack(value)


def text(value: bytes, *, flexible: bool) -> bytes:
    """Returns a string."""
    return (varint(len(value) + 1) if flexible else INT16.pack(len(value))) + value
