"""What happened in a virtual world, as a running hash and, on request, in words."""

import hashlib
import struct

_TIME = struct.Struct("<d")
_TURN = struct.Struct("<dI")


class Trace:
    """Everything that tells one run from another: who ran, when, and what went over the network.

    Two runs with one seed have the same `digest`. Where they have not, `lines` of both show the
    first difference.

    Args:
        keep_lines: Whether to keep a line for each event; it costs time and memory.

    Attributes:
        lines: One for each event; empty unless they are kept.
        events: How many there were.
    """

    def __init__(self, *, keep_lines: bool = False) -> None:
        self.lines: list[str] = []
        self.events = 0
        self._keep_lines = keep_lines
        self._hash = hashlib.sha256()

    def note(self, now_ms: float, kind: str, who: str, data: bytes | memoryview = b"") -> None:
        """Take down one event.

        Args:
            now_ms: When it happened.
            kind: What happened, in a word.
            who: To whom.
            data: What is worth comparing besides.
        """
        self.events += 1
        self._hash.update(_TIME.pack(now_ms))
        self._hash.update(f"{kind} {who} {len(data)};".encode())
        self._hash.update(data)
        if self._keep_lines:
            size = f" ({len(data)} bytes)" if data else ""
            self.lines.append(f"{now_ms:.6f} {kind} {who}{size}")

    def turn(self, now_ms: float, number: int, name: str) -> None:
        """Take down that it was a task's turn."""
        self._hash.update(_TURN.pack(now_ms, number))
        if self._keep_lines:
            self.lines.append(f"{now_ms:.6f} turn {name}")

    def digest(self) -> str:
        """Return the hash of everything so far, in hexadecimal digits."""
        return self._hash.hexdigest()
