"""The way from one machine to another: how long it takes, and what is wrong with it."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.testing.virtual.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_stream import VirtualStream

Latency = tuple[float, float] | Callable[[random.Random], float]
"""Milliseconds: the least and the most, evenly distributed, or a function that draws one."""

Damage = Callable[[bytes], bytes]
"""Returns what becomes of bytes on their way; as many as there were."""

_RETRANSMISSION_MS = (200.0, 1600.0)


class VirtualLink:
    """One direction between two machines. All faults may be set and taken back at any time.

    Attributes:
        latency_ms: How long a segment is on its way.
        bytes_per_second: How much goes through; None for any amount.
        chunk_bytes: The least and the most bytes that one read or write moves; None for no limit.
        refusing: Whether new connections are refused, as by a firewall that says so.
        damage: What becomes of the bytes of each write on their way, as by `DamagedBatches`.
    """

    def __init__(self, clock: VirtualClock, lot: random.Random, latency_ms: Latency) -> None:
        self.latency_ms = latency_ms
        self.bytes_per_second: float | None = None
        self.chunk_bytes: tuple[int, int] | None = None
        self.refusing = False
        self.damage: Damage | None = None
        self._clock = clock
        self._lot = lot
        self._blocked = False
        self._stalled: dict[VirtualStream, None] = {}
        self._held: dict[VirtualStream, None] = {}

    @property
    def blocked(self) -> bool:
        """Whether nothing gets through; senders are not told, and try again."""
        return self._blocked

    @blocked.setter
    def blocked(self, blocked: bool) -> None:
        self._blocked = blocked
        if not blocked:
            self.resume()

    def delay_ms(self) -> float:
        """Draw how long the next segment takes."""
        latency = self.latency_ms
        if callable(latency):
            return latency(self._lot)
        least, most = latency
        return least if least == most else least + (most - least) * self._lot.random()

    def chunk(self) -> int:
        """Draw how many bytes the next read or write moves at most."""
        if self.chunk_bytes is None:
            return 1 << 30
        least, most = self.chunk_bytes
        return self._lot.randint(least, most)

    def draw(self, most: int) -> int:
        """Draw a number from 0 to `most`."""
        return self._lot.randint(0, most)

    def hold(self, stream: "VirtualStream") -> None:
        """Let nothing of one connection through until `heal`; the others are not touched."""
        self._held[stream] = None

    def lets_through(self, stream: "VirtualStream") -> bool:
        """Return whether what a connection carries arrives."""
        return not self._blocked and stream not in self._held

    def heal(self) -> None:
        """Take all faults back, but for the latency."""
        self.refusing = False
        self.bytes_per_second = self.chunk_bytes = self.damage = None
        self._held.clear()
        self.blocked = False

    def stall(self, stream: "VirtualStream") -> None:
        """Keep what cannot get through until it can."""
        self._stalled[stream] = None

    def resume(self) -> None:
        """Let through what was kept, each when its sender happens to try again."""
        stalled, self._stalled = self._stalled, {}
        least, most = _RETRANSMISSION_MS
        for stream in stalled:
            self._clock.after(least + (most - least) * self._lot.random(), stream.resume)
