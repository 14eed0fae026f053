"""Links between machines with latency and faults, and the streams of bytes over them."""

import errno
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.testing.virtual.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_socket import VirtualSocket

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


GIVE_UP_MS = 924_600.0
"""Time of retransmission after which a sender fails the connection, as in Linux."""

_PIECES_PER_SECOND = 20  # pieces of a write over a slow link


class Segment:
    """A segment: bytes, an acknowledgement of read bytes, or the end."""

    __slots__ = ("data", "due_ms", "end", "read")

    def __init__(
        self, due_ms: float, data: bytes = b"", read: int = 0, end: int | None = None
    ) -> None:
        self.due_ms = due_ms
        self.data = data
        self.read = read
        self.end = end


class VirtualStream:
    """Stream from `source` to `target`, over a link; first in, first out, as in TCP.

    Attributes:
        source: The end that sends.
        target: The end that receives.
        link: Its link.
        severed: Whether no further segment arrives, without notification.
    """

    def __init__(
        self,
        clock: VirtualClock,
        link: VirtualLink,
        source: "VirtualSocket",
        target: "VirtualSocket",
    ) -> None:
        self.source = source
        self.target = target
        self.link = link
        self.severed = False
        self._clock = clock
        self._segments: deque[Segment] = deque()
        self._scheduled = False
        self._last_due_ms = 0.0
        self._stalled_at: float | None = None

    def send(self, data: bytes, delay_ms: float | None = None) -> None:
        """Send bytes; they arrive after the link's delay or the given one."""
        if self.link.damage is not None:
            data = self.link.damage(data)
        rate = self.link.bytes_per_second
        if rate is None:
            self._put(Segment(self._due_ms(delay_ms), data))
            return
        size = max(1, int(rate / _PIECES_PER_SECOND))
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            # The link transmits earlier bytes until then.
            begin_ms = max(self._last_due_ms, self._due_ms(delay_ms))
            self._put(Segment(begin_ms + len(piece) * 1000.0 / rate, piece))

    def chunk(self) -> int:
        """Draw the greatest number of bytes of the next read or write."""
        return self.link.chunk()

    def acknowledge(self, count: int) -> None:
        """Notify the other end that bytes were read, so that it may send more."""
        self._put(Segment(self._due_ms(None), read=count))

    def end(self, failure: int) -> None:
        """Send the end: in an orderly way for 0, else with an errno."""
        self._put(Segment(self._due_ms(None), end=failure))

    def cut(self, failure: int) -> None:
        """End the stream in the middle of bytes in flight: any part of them may still arrive."""
        left = self.link.draw(sum(len(segment.data) for segment in self._segments))
        kept: deque[Segment] = deque()
        for segment in self._segments:
            segment.data = segment.data[:left]
            left -= len(segment.data)
            if segment.data or segment.read:
                kept.append(segment)
        self._segments = kept
        self.end(failure)

    def resume(self) -> None:
        """Continue after the link was blocked."""
        self._stalled_at = None
        self._schedule()

    def _due_ms(self, delay_ms: float | None) -> float:
        return self._clock.now_ms + (self.link.delay_ms() if delay_ms is None else delay_ms)

    def _put(self, segment: Segment) -> None:
        segment.due_ms = self._last_due_ms = max(self._last_due_ms, segment.due_ms)
        self._segments.append(segment)
        self._schedule()

    def _schedule(self) -> None:
        if self._segments and not self._scheduled and self._stalled_at is None:
            self._scheduled = True
            self._clock.after(self._segments[0].due_ms - self._clock.now_ms, self._arrive)

    def _arrive(self) -> None:
        self._scheduled = False
        if self.severed or not self.link.lets_through(self) or not self.target.has_power:
            self._stall()
            return
        while self._segments and self._segments[0].due_ms <= self._clock.now_ms:
            self.target.take(self._segments.popleft())
        self._schedule()

    def _stall(self) -> None:
        stalled_at = self._stalled_at = self._clock.now_ms
        if not self.severed:
            self.link.stall(self)

        def give_up() -> None:
            if self._stalled_at == stalled_at:
                self._segments.clear()
                self.source.fail(errno.ETIMEDOUT)

        self._clock.after(GIVE_UP_MS, give_up)
