"""A link from one machine to another: its latency and its faults."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.testing.virtual.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_stream import VirtualStream

Latency = tuple[float, float] | Callable[[random.Random], float]
"""Milliseconds: the least and the most, uniformly distributed, or a function that draws one."""

Damage = Callable[[bytes], bytes]
"""Returns the bytes as received; of the same length."""

_RETRANSMISSION_MS = (200.0, 1600.0)


class VirtualLink:
    """One direction between two machines. All faults may be set and removed at any time.

    Attributes:
        latency_ms: Latency of a segment.
        bytes_per_second: Bandwidth; None for no limit.
        chunk_bytes: The least and the most bytes of one read or write; None for no limit.
        refusing: Whether new connections are refused, like by a firewall that rejects.
        damage: Changes the bytes of each write, such as `DamagedBatches`.
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
        """Whether all segments are lost; senders are not notified, and retransmit."""
        return self._blocked

    @blocked.setter
    def blocked(self, blocked: bool) -> None:
        self._blocked = blocked
        if not blocked:
            self.resume()

    def delay_ms(self) -> float:
        """Draw the latency of the next segment."""
        latency = self.latency_ms
        if callable(latency):
            return latency(self._lot)
        least, most = latency
        return least if least == most else least + (most - least) * self._lot.random()

    def chunk(self) -> int:
        """Draw the greatest number of bytes of the next read or write."""
        if self.chunk_bytes is None:
            return 1 << 30
        least, most = self.chunk_bytes
        return self._lot.randint(least, most)

    def draw(self, most: int) -> int:
        """Draw a number from 0 to `most`."""
        return self._lot.randint(0, most)

    def hold(self, stream: "VirtualStream") -> None:
        """Block one connection until `heal`; the others are not affected."""
        self._held[stream] = None

    def lets_through(self, stream: "VirtualStream") -> bool:
        """Return whether segments of a connection arrive."""
        return not self._blocked and stream not in self._held

    def heal(self) -> None:
        """Remove all faults, except for the latency."""
        self.refusing = False
        self.bytes_per_second = self.chunk_bytes = self.damage = None
        self._held.clear()
        self.blocked = False

    def stall(self, stream: "VirtualStream") -> None:
        """Queue a stream that is blocked until the link is not."""
        self._stalled[stream] = None

    def resume(self) -> None:
        """Resume the queued streams, each when its sender happens to retransmit."""
        stalled, self._stalled = self._stalled, {}
        least, most = _RETRANSMISSION_MS
        for stream in stalled:
            self._clock.after(least + (most - least) * self._lot.random(), stream.resume)
