"""Trace of the events of a simulation, as a running hash and, on request, as text."""

import hashlib
import struct

_TIME = struct.Struct("<d")
_TURN = struct.Struct("<dI")


class Trace:
    """All events that distinguish two runs: turns of tasks, and bytes on the network.

    Two runs with the same seed have the same `digest`. If they differ, `lines` of both show the
    first difference.

    Args:
        keep_lines: Whether to keep a line for each event, which costs time and memory.

    Attributes:
        lines: A line for each event; empty unless they are kept.
        events: Number of events.
    """

    def __init__(self, *, keep_lines: bool = False) -> None:
        self.lines: list[str] = []
        self.events = 0
        self._keep_lines = keep_lines
        self._hash = hashlib.sha256()

    def note(self, now_ms: float, kind: str, who: str, data: bytes | memoryview = b"") -> None:
        """Add an event.

        Args:
            now_ms: Its time.
            kind: Its kind.
            who: The task, machine or socket.
            data: Bytes to compare.
        """
        self.events += 1
        self._hash.update(_TIME.pack(now_ms))
        self._hash.update(f"{kind} {who} {len(data)};".encode())
        self._hash.update(data)
        if self._keep_lines:
            size = f" ({len(data)} bytes)" if data else ""
            self.lines.append(f"{now_ms:.6f} {kind} {who}{size}")

    def turn(self, now_ms: float, number: int, name: str) -> None:
        """Add the turn of a task."""
        self._hash.update(_TURN.pack(now_ms, number))
        if self._keep_lines:
            self.lines.append(f"{now_ms:.6f} turn {name}")

    def digest(self) -> str:
        """Return the hash of all events so far, in hexadecimal digits."""
        return self._hash.hexdigest()
