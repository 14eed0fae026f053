"""One direction of a connection: bytes and the end, in order, with the link's latency."""

import errno
from collections import deque
from typing import TYPE_CHECKING

from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_link import VirtualLink

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_socket import VirtualSocket

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
        if self.severed or not self.link.lets_through(self) or not self.target.host.up:
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
