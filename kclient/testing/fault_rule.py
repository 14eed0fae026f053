"""One fault of a proxy: which frames it strikes, and what it does to them."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.fault_frames import Direction, Frame


class Ending(enum.Enum):
    """How a connection ends.

    Attributes:
        CLOSE: As a peer ends it that is done: an end of the stream (FIN).
        RESET: As a peer ends it that has crashed: a reset (RST).
        SILENCE: Not at all, as the client sees it: the broker's side is closed, the client's
            stays open and nothing comes any more (half-open).
    """

    CLOSE = "close"
    RESET = "reset"
    SILENCE = "silence"


class Delivery:
    """A frame on its way out of the proxy, as rules shape it.

    Attributes:
        frame: What it is about.
        data: Its bytes as they came, size prefix included.
        pieces: What goes out instead; `data` where no rule says otherwise.
        delay_ms: How long it is kept back, in milliseconds.
        chunk: Most bytes written at a time; 0 for all at once.
        gap_ms: Wait between two chunks, in milliseconds.
        ending: What becomes of the connection after the last byte, if anything.
    """

    __slots__ = ("chunk", "data", "delay_ms", "ending", "frame", "gap_ms", "pieces")

    def __init__(self, frame: Frame, data: bytes) -> None:
        self.frame = frame
        self.data = data
        self.pieces = [data]
        self.delay_ms = 0.0
        self.chunk = 0
        self.gap_ms = 0.0
        self.ending: Ending | None = None


Act = Callable[[Delivery], None]
"""Changes what becomes of a frame."""


class Turn(TypedDict, total=False):
    """Which of the frames that fit a fault strikes; what is left out does not matter.

    Attributes:
        connection: Frames of this connection only; the first one that was accepted is 1.
        nth: The first frame to strike among those that fit, counted from 1.
        times: How many frames to strike from there on; None for all.
    """

    connection: int
    nth: int
    times: int | None


class Where(Turn, total=False):
    """Which frames a fault strikes; what is left out does not matter.

    Attributes:
        api: Requests and responses of this API only.
        direction: Frames that go this way only.
    """

    api: ApiKey
    direction: Direction


@dataclass(slots=True, eq=False)
class FaultRule:
    """A fault that is set.

    Attributes:
        act: What it does.
        api: API it strikes; None for any.
        direction: Direction it strikes; None for both.
        connection: Connection it strikes; None for all.
        nth: First frame that it strikes among those that fit.
        times: How many it strikes; None for all from `nth` on.
        seen: Frames that fitted so far.
        hits: Frames that it struck so far.
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
        """Return whether the frame is of the kind that the rule is about."""
        return (
            self.api in (None, frame.api)
            and self.direction in (None, frame.direction)
            and self.connection in (None, frame.connection)
        )

    def apply(self, delivery: Delivery) -> None:
        """Strike the frame if it is the turn of such a one."""
        if not self.fits(delivery.frame):
            return
        self.seen += 1
        if self.seen >= self.nth and (self.times is None or self.hits < self.times):
            self.hits += 1
            self.act(delivery)
