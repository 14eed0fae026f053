"""A fault of a proxy: the frames that it affects, and its effect."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.fault_frames import Direction, Frame


class Ending(enum.Enum):
    """End of a connection.

    Attributes:
        CLOSE: The peer closes it: end of the stream (FIN).
        RESET: The peer crashes: reset (RST).
        SILENCE: Half-open: the broker's side is closed, the client's side stays open and gets no
            more bytes.
    """

    CLOSE = "close"
    RESET = "reset"
    SILENCE = "silence"


class Delivery:
    """A frame that the proxy is about to write, as rules shape it.

    Attributes:
        frame: Description of the frame.
        data: Its bytes as received, size prefix included.
        pieces: Bytes to write instead; `data` unless a rule changes it.
        delay_ms: Delay before the write, in milliseconds.
        chunk: Most bytes written at a time; 0 for all at once.
        gap_ms: Time between two chunks, in milliseconds.
        ending: How the connection ends after the last byte; None if it stays open.
        sent_as: API and version of the request that a rule sends instead; None if it is the same.
    """

    __slots__ = ("chunk", "data", "delay_ms", "ending", "frame", "gap_ms", "pieces", "sent_as")

    def __init__(self, frame: Frame, data: bytes) -> None:
        self.frame = frame
        self.data = data
        self.pieces = [data]
        self.delay_ms = 0.0
        self.chunk = 0
        self.gap_ms = 0.0
        self.ending: Ending | None = None
        self.sent_as: tuple[ApiKey, int] | None = None


Act = Callable[[Delivery], None]
"""Changes the delivery of a frame."""


class Turn(TypedDict, total=False):
    """Selection of the frames that a fault affects; a missing key selects all.

    Attributes:
        connection: Frames of this connection only, numbered from 1.
        nth: First frame to affect among those that match, counted from 1.
        times: Number of frames to affect from there on; None for all.
    """

    connection: int
    nth: int
    times: int | None


class Where(Turn, total=False):
    """Selection of the frames that a fault affects; a missing key selects all.

    Attributes:
        api: Requests and responses of this API only.
        direction: Frames of this direction only.
    """

    api: ApiKey
    direction: Direction


@dataclass(slots=True, eq=False)
class FaultRule:
    """A fault that is in force.

    Attributes:
        act: Its effect.
        api: API that it affects; None for any.
        direction: Direction that it affects; None for both.
        connection: Connection that it affects; None for all.
        nth: First frame that it affects among those that match.
        times: Number of frames that it affects; None for all from `nth` on.
        seen: Number of frames that matched so far.
        hits: Number of frames that it affected so far.
    """

    act: Act
    api: ApiKey | None = None
    direction: Direction | None = None
    connection: int | None = None
    nth: int = 1
    times: int | None = None
    seen: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.nth < 1:
            raise InvalidArgumentError(f"nth: got {self.nth}, expected 1 or more")
        if self.times is not None and self.times < 1:
            raise InvalidArgumentError(f"times: got {self.times}, expected 1 or more, or None")

    def fits(self, frame: Frame) -> bool:
        """Return whether the rule's selection matches the frame."""
        return (
            self.api in (None, frame.api)
            and self.direction in (None, frame.direction)
            and self.connection in (None, frame.connection)
        )

    def apply(self, delivery: Delivery) -> None:
        """Affect the frame if it is one of those selected."""
        if not self.fits(delivery.frame):
            return
        self.seen += 1
        if self.seen >= self.nth and (self.times is None or self.hits < self.times):
            self.hits += 1
            self.act(delivery)
