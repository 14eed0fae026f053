"""Exponential back-off between attempts."""

from collections.abc import Callable

_MULTIPLIER = 2.0
_LARGEST_EXPONENT = 60


class ExponentialBackoff:
    """Wait that doubles with each failed attempt (Kafka: ExponentialBackoff, KIP-580).

    Unlike in Kafka, jitter only lengthens a wait, so that the number of attempts in a given time
    has a firm upper bound.
    """

    def __init__(
        self,
        initial_ms: float,
        max_ms: float,
        uniform: Callable[[], float],
        jitter: float = 0.2,
    ) -> None:
        """Set the waits.

        Args:
            initial_ms: Wait after the first failure.
            max_ms: Longest wait, without jitter.
            uniform: Returns a random number from 0 to 1, as `random.Random.random`.
            jitter: Largest fraction of the wait that is added at random.
        """
        self._initial_ms = initial_ms
        self._max_ms = max(initial_ms, max_ms)
        self._uniform = uniform
        self._jitter = jitter

    def backoff(self, attempts: int) -> float:
        """Return the wait in milliseconds after `attempts` earlier failures."""
        exponent = min(attempts, _LARGEST_EXPONENT)
        wait_ms = min(self._initial_ms * _MULTIPLIER**exponent, self._max_ms)
        return wait_ms * (1.0 + self._jitter * self._uniform())
