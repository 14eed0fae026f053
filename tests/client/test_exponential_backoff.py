"""Exponential backoff of attempts."""

import pytest

from kclient.client.exponential_backoff import ExponentialBackoff


def test_wait_doubles_up_to_its_maximum() -> None:
    backoff = ExponentialBackoff(50, 1000, lambda: 0.0)
    assert [backoff.backoff(attempts) for attempts in range(7)] == [
        50,
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]


@pytest.mark.parametrize("attempts", [0, 4, 5, 10_000])
def test_jitter_lengthens_a_wait_by_at_most_its_fraction(attempts: int) -> None:
    shortest = ExponentialBackoff(50, 1000, lambda: 0.0).backoff(attempts)
    longest = ExponentialBackoff(50, 1000, lambda: 1.0, jitter=0.25).backoff(attempts)
    assert longest == pytest.approx(1.25 * shortest)


def test_maximum_below_the_first_wait_is_raised_to_it() -> None:
    assert ExponentialBackoff(500, 100, lambda: 0.0).backoff(3) == 500
