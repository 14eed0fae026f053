"""The faults of a proxy that affect frames, and their order."""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Unpack

from kclient.common.errors import InvalidArgumentError
from kclient.common.files import FileSlice
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_response, encode_response
from kclient.protocol.message import Response
from kclient.protocol.registry import REQUESTS
from kclient.testing.fault_frames import Direction
from kclient.testing.fault_rule import Act, Delivery, Ending, FaultRule, Turn, Where

_log = logging.getLogger(__name__)

_PREFIX = 4
_CORRELATION_END = 8


class FaultScript:
    """Faults by frame. Every method sets one that holds until `heal`, or for `times` frames.

    Each takes the same keywords to select frames, see `Where`: ``api``, ``direction``,
    ``connection``, ``nth`` and ``times``. Faults apply in the order in which they were set. Methods
    may be called from any thread, at any time.

    Args:
        seed: Makes every random choice repeatable.
    """

    def __init__(self, seed: int = 0) -> None:
        self._rules: list[FaultRule] = []  # changed by any thread, by single calls of its methods
        self._random = random.Random(seed)  # noqa: S311 (repeatable on purpose)

    def delay(self, seconds: float, jitter: float = 0.0, **where: Unpack[Where]) -> FaultRule:
        """Delay frames, and those after them on the same connection.

        Args:
            seconds: Delay.
            jitter: Greatest additional delay in seconds, random for each frame.
            **where: Frames to affect; by default all, in both directions.
        """
        _check_not_negative("seconds", seconds)
        _check_not_negative("jitter", jitter)

        def act(delivery: Delivery) -> None:
            delivery.delay_ms += 1000.0 * (seconds + jitter * self._random.random())

        return self._set(act, where)

    def stall(self, seconds: float, probability: float, **where: Unpack[Where]) -> FaultRule:
        """Delay random frames.

        Args:
            seconds: Delay.
            probability: Probability of each frame to be delayed, 0 to 1.
            **where: Frames to affect; by default all, in both directions.
        """
        _check_not_negative("seconds", seconds)
        if not 0 <= probability <= 1:
            raise InvalidArgumentError(f"probability: got {probability!r}, expected 0 to 1")

        def act(delivery: Delivery) -> None:
            if self._random.random() < probability:
                delivery.delay_ms += 1000.0 * seconds

        return self._set(act, where)

    def limit_rate(self, bytes_per_second: float, **where: Unpack[Where]) -> FaultRule:
        """Limit the bandwidth.

        Args:
            bytes_per_second: Rate of each direction of each connection.
            **where: Frames to affect; by default all, in both directions.
        """
        if not bytes_per_second > 0:
            raise InvalidArgumentError(
                f"bytes_per_second: got {bytes_per_second!r}, expected more than 0"
            )

        def act(delivery: Delivery) -> None:
            # A hundred steps per second are smooth enough and cheap.
            delivery.chunk = max(1, int(bytes_per_second / 100))
            delivery.gap_ms = 1000.0 * delivery.chunk / bytes_per_second

        return self._set(act, where)

    def chunk(self, size: int, gap: float = 0.0, **where: Unpack[Where]) -> FaultRule:
        """Write frames in small pieces.

        Args:
            size: Most bytes at a time, down to 1.
            gap: Seconds between two pieces.
            **where: Frames to affect; by default all, in both directions.
        """
        if size < 1:
            raise InvalidArgumentError(f"size: got {size!r}, expected 1 or more bytes")
        _check_not_negative("gap", gap)

        def act(delivery: Delivery) -> None:
            delivery.chunk, delivery.gap_ms = size, 1000.0 * gap

        return self._set(act, where)

    def cut(
        self,
        after_bytes: int | None = None,
        ending: Ending = Ending.RESET,
        **where: Unpack[Where],
    ) -> FaultRule:
        """End the connection at a frame.

        Args:
            after_bytes: Number of bytes of the frame that are still sent, its size prefix included;
                the whole frame if None.
            ending: How the connection ends.
            **where: Frames to affect; by default the next one in either direction.
        """
        if after_bytes is not None:
            _check_not_negative("after_bytes", after_bytes)

        def act(delivery: Delivery) -> None:
            if after_bytes is not None:
                delivery.pieces = [b"".join(delivery.pieces)[:after_bytes]]
            delivery.ending = ending

        return self._set(act, {"times": 1, **where})

    def drop(self, **where: Unpack[Where]) -> FaultRule:
        """Discard frames; the connection stays open."""

        def act(delivery: Delivery) -> None:
            delivery.pieces = []

        return self._set(act, {"times": 1, **where})

    def drop_response(
        self, api: ApiKey, ending: Ending = Ending.RESET, **turn: Unpack[Turn]
    ) -> FaultRule:
        """Pass a request on, discard its response, and end the connection.

        Args:
            api: API of the request.
            ending: How the connection ends.
            **turn: Responses to affect; by default the next one.
        """
        return self.cut(0, ending, api=api, direction=Direction.TO_CLIENT, **turn)

    def duplicate(self, **where: Unpack[Where]) -> FaultRule:
        """Send frames twice in a row."""

        def act(delivery: Delivery) -> None:
            delivery.pieces = [*delivery.pieces, *delivery.pieces]

        return self._set(act, {"times": 1, **where})

    def corrupt(self, at: int | None = None, **where: Unpack[Where]) -> FaultRule:
        """Flip one bit of a frame.

        Args:
            at: Position of the byte, from the size prefix on, or from the frame's end if negative;
                a random one after the correlation id if None.
            **where: Frames to affect; by default the next one in either direction.
        """

        def act(delivery: Delivery) -> None:
            data = bytearray(b"".join(delivery.pieces))
            position = at
            if position is None:
                if len(data) <= _CORRELATION_END:
                    return
                position = self._random.randrange(_CORRELATION_END, len(data))
            if not -len(data) <= position < len(data):
                raise InvalidArgumentError(f"at: got {at}, expected a byte of {delivery.frame}")
            data[position] ^= 1 << self._random.randrange(8)
            delivery.pieces = [bytes(data)]

        return self._set(act, {"times": 1, **where})

    def replace(self, data: bytes | Callable[[bytes], bytes], **where: Unpack[Where]) -> FaultRule:
        """Replace a frame by other bytes.

        Args:
            data: The bytes to send, or a function that returns them; size prefix included.
            **where: Frames to affect; by default the next one in either direction.
        """

        def act(delivery: Delivery) -> None:
            given = data(b"".join(delivery.pieces)) if callable(data) else data
            delivery.pieces = [given]

        return self._set(act, {"times": 1, **where})

    def edit(
        self, api: ApiKey, change: Callable[[Response], object], **turn: Unpack[Turn]
    ) -> FaultRule:
        """Decode responses, change them by `change`, and send the result.

        Args:
            api: API, one that kclient supports.
            change: Changes the response in place.
            **turn: Responses to affect; by default all.
        """
        if api not in REQUESTS:
            raise InvalidArgumentError(f"api: got {api!r}, expected one that kclient supports")

        def act(delivery: Delivery) -> None:
            edited = edit_response(delivery, change)
            if edited is not None:
                delivery.pieces = [edited]

        return self._set(act, {"api": api, "direction": Direction.TO_CLIENT, **turn})

    def remove(self, rule: FaultRule) -> None:
        """Remove one fault. Idempotent."""
        with suppress(ValueError):
            self._rules.remove(rule)

    def _shape(self, delivery: Delivery) -> None:
        for rule in tuple(self._rules):
            rule.apply(delivery)

    def _set(self, act: Act, where: Where) -> FaultRule:
        rule = FaultRule(act, **where)
        self._rules.append(rule)
        return rule


def edit_response(delivery: Delivery, change: Callable[[Response], object]) -> bytes | None:
    """Return the frame of a changed response; None if `change` returned False.

    A response of an unknown version is not changed, with a warning.
    """
    frame = delivery.frame
    request = REQUESTS.get(frame.api) if frame.api is not None else None
    if request is None or frame.version not in request.response_type.valid_versions:
        _log.warning("%s is passed on unchanged: its version is unknown", frame)
        return None
    payload = memoryview(b"".join(delivery.pieces))[_PREFIX:]
    correlation_id, response = decode_response(payload, request.response_type, frame.version)
    if change(response) is False:
        return None
    parts = encode_response(response, frame.version, correlation_id)
    body = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
    return len(body).to_bytes(_PREFIX, "big") + body


def _check_not_negative(name: str, value: float) -> None:
    if not value >= 0:
        raise InvalidArgumentError(f"{name}: got {value!r}, expected 0 or more")
