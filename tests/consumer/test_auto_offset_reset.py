"""Reset policies: Kafka's names, durations and timedeltas."""

from datetime import timedelta

import pytest

from kclient.consumer.auto_offset_reset import parse_auto_offset_reset


def test_reset_by_timedelta() -> None:
    policy = parse_auto_offset_reset(timedelta(hours=1, milliseconds=5))
    assert (policy.name, policy.duration_ms) == ("by_duration", 3_600_005)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("P2DT3H4M5.25S", 183_845_250),
        ("pt5s", 5_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    policy = parse_auto_offset_reset(f"by_duration:{text}")
    assert policy.timestamp(200_000_000_000) == 200_000_000_000 - milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "1D", "P1H", "PT1D", "P-1D", "PT1.S"])
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="a duration looks like"):
        parse_auto_offset_reset(f"by_duration:{text}")


def test_reset_policy_must_be_a_str() -> None:
    with pytest.raises(TypeError):
        parse_auto_offset_reset(5)
