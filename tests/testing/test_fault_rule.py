"""Faults of a proxy: the frames that each affects."""

from typing import Any

import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_rule import Delivery, FaultRule

FETCH_REQUEST = Frame(1, Direction.TO_BROKER, ApiKey.FETCH, 12, 5, 100)
FETCH_RESPONSE = Frame(1, Direction.TO_CLIENT, ApiKey.FETCH, 12, 5, 100)
OTHER_CONNECTION = Frame(2, Direction.TO_BROKER, ApiKey.FETCH, 12, 5, 100)
UNKNOWN = Frame(1, Direction.TO_BROKER, None, -1, -1, 3)
FRAMES = (FETCH_REQUEST, FETCH_RESPONSE, OTHER_CONNECTION, UNKNOWN)


def affected(rule: FaultRule, *frames: Frame) -> list[int]:
    """Return the positions of the frames that a rule delays."""
    deliveries = [Delivery(frame, b"data") for frame in frames]
    for delivery in deliveries:
        rule.apply(delivery)
    return [at for at, delivery in enumerate(deliveries) if delivery.delay_ms]


def delay(delivery: Delivery) -> None:
    delivery.delay_ms = 5.0


@pytest.mark.parametrize(
    ("rule", "positions"),
    [
        (FaultRule(delay), [0, 1, 2, 3]),
        (FaultRule(delay, api=ApiKey.FETCH), [0, 1, 2]),
        (FaultRule(delay, direction=Direction.TO_CLIENT), [1]),
        (FaultRule(delay, connection=2), [2]),
        (FaultRule(delay, api=ApiKey.PRODUCE), []),
        (FaultRule(delay, api=ApiKey.FETCH, direction=Direction.TO_BROKER, connection=1), [0]),
    ],
)
def test_rule_affects_the_frames_that_fit(rule: FaultRule, positions: list[int]) -> None:
    assert affected(rule, *FRAMES) == positions
    assert (rule.seen, rule.hits) == (len(positions), len(positions))


@pytest.mark.parametrize(
    ("nth", "times", "positions"),
    [(1, None, [0, 1, 2, 3, 4]), (3, None, [2, 3, 4]), (2, 2, [1, 2]), (1, 1, [0]), (9, 1, [])],
)
def test_rule_affects_some_of_the_frames_that_fit(
    nth: int, times: int | None, positions: list[int]
) -> None:
    rule = FaultRule(delay, nth=nth, times=times)
    assert affected(rule, *[FETCH_REQUEST] * 5) == positions
    assert (rule.seen, rule.hits) == (5, len(positions))


def test_frames_that_do_not_fit_are_not_counted() -> None:
    rule = FaultRule(delay, direction=Direction.TO_CLIENT, nth=2)
    frames = [FETCH_RESPONSE, FETCH_REQUEST, FETCH_REQUEST, FETCH_RESPONSE]
    assert affected(rule, *frames) == [3]


@pytest.mark.parametrize("turn", [{"nth": 0}, {"nth": -1}, {"times": 0}])
def test_turns_begin_at_one(turn: dict[str, Any]) -> None:
    (name,) = turn
    with pytest.raises(InvalidArgumentError, match=f"{name}: got {turn[name]}, expected 1 or more"):
        FaultRule(delay, **turn)
