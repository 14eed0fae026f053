"""Limits of a broker's connections: in total, for each address, and their creation rate."""

import math
from collections import Counter
from collections.abc import Callable, Mapping

from kclient.broker.network.quota_rate import DEFAULT_WINDOW, QuotaRate, QuotaWindow
from kclient.common.runtime import Condition

# A shorter wait is a rounding error: added to the present time it may not change it.
_LEAST_WAIT_MS = 0.01
_MAX_RATES = 10_000
"""Addresses with a rate; more of them remove those that are idle."""


class CreationRate:
    """Limit of new connections per second, ``max.connection.creation.rate`` (KIP-612).

    A burst may have as many connections as one second allows. Not thread-safe.
    """

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._allowed = float(per_second)
        self._counted_ms = 0.0

    def configure(self, per_second: int) -> None:
        """Replace the limit."""
        if per_second != self._per_second:
            self._per_second = per_second
            self._allowed = float(per_second)

    def wait_ms(self, now_ms: float) -> float:
        """Return the wait until the next connection is allowed; 0 if it is allowed now."""
        earned = max(0.0, now_ms - self._counted_ms) * self._per_second / 1000.0
        self._allowed = min(float(self._per_second), self._allowed + earned)
        self._counted_ms = now_ms
        wait_ms = (1.0 - self._allowed) * 1000.0 / self._per_second
        return wait_ms if wait_ms >= _LEAST_WAIT_MS else 0.0

    def record_created(self) -> None:
        """Count a new connection."""
        self._allowed -= 1.0

    def cancel_created(self) -> None:
        """Remove a connection from the count that was not created after all."""
        self._allowed += 1.0


class _AddressRates:
    """Creation rates of addresses that have a quota, ``connection_creation_rate`` (KIP-612).

    Not thread-safe.
    """

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._limits: Mapping[str | None, float] = {}
        self._rates: dict[str, QuotaRate] = {}
        self._rates_to_prune = _MAX_RATES

    def configure(self, limits: Mapping[str | None, float]) -> None:
        """Replace the quotas, by address; that of None is the default."""
        self._limits = limits

    def record_created(self, address: str, now_ms: int) -> int:
        """Count a new connection; return for how long it is throttled, in milliseconds.

        One that is throttled does not count (Kafka: recordIpConnectionMaybeThrottle).
        """
        limit = self._limits.get(address, self._limits.get(None))
        if limit is None:
            return 0
        rate = self._rates.get(address)
        if rate is None:
            self._prune(now_ms)
            rate = self._rates[address] = QuotaRate(self._window)
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _prune(self, now_ms: int) -> None:
        if len(self._rates) < self._rates_to_prune:
            return
        self._rates = {key: each for key, each in self._rates.items() if not each.is_idle(now_ms)}
        self._rates_to_prune = max(_MAX_RATES, 2 * len(self._rates))


class ConnectionQuotas:
    """Counts of the connections of all listeners (Kafka: ConnectionQuotas).

    An acceptor reserves a place before it accepts a connection, so that several acceptors together
    do not exceed a limit. The lock guards the counts and the creation rate.
    """

    def __init__(
        self,
        max_connections: int,
        max_per_address: int,
        rate: CreationRate,
        lock: Condition,
        window: QuotaWindow = DEFAULT_WINDOW,
    ) -> None:
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._rate = rate
        self._address_rates = _AddressRates(window)
        self._lock = lock
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._callbacks: list[Callable[[], None]] = []

    def configure(self, max_connections: int, max_per_address: int, per_second: int) -> None:
        """Replace the limits; connections that exceed them stay."""
        with self._lock:
            self._max_connections = max_connections
            self._max_per_address = max_per_address
            self._rate.configure(per_second)
        for callback in self._callbacks:
            callback()

    def configure_addresses(self, limits: Mapping[str | None, float]) -> None:
        """Replace the creation rates of addresses; that of None is the default."""
        with self._lock:
            self._address_rates.configure(limits)

    def throttle_ms(self, address: str, now_ms: float) -> int:
        """Count a connection of an address; return for how long it must be refused.

        Returns:
            Milliseconds, 0 if it can be added; otherwise its place has to be given back.
        """
        with self._lock:
            return self._address_rates.record_created(address, int(now_ms))

    def is_below_limit(self) -> bool:
        """Return whether the broker has fewer than ``max.connections``."""
        with self._lock:
            return self._total < self._max_connections

    def reserve(self, now_ms: float) -> float:
        """Reserve a place for a connection.

        Returns:
            0 if a place is reserved, which `try_add` or `cancel` then ends; otherwise the
            milliseconds until the creation rate allows one, infinite at ``max.connections``.
        """
        with self._lock:
            if self._total >= self._max_connections:
                return math.inf
            wait_ms = self._rate.wait_ms(now_ms)
            if not wait_ms:
                self._total += 1
                self._rate.record_created()
            return wait_ms

    def cancel(self) -> None:
        """Give a reserved place back, because there is no connection."""
        with self._lock:
            self._rate.cancel_created()
            callbacks = self._remove()
        _call(callbacks)

    def try_add(self, address: str) -> bool:
        """Use a reserved place; return False if the address has ``max.connections.per.ip``."""
        with self._lock:
            if self._by_address[address] < self._max_per_address:
                self._by_address[address] += 1
                return True
            callbacks = self._remove()
        _call(callbacks)
        return False

    def remove(self, address: str) -> None:
        """Remove a connection from the counts."""
        with self._lock:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
            callbacks = self._remove()
        _call(callbacks)

    def _remove(self) -> list[Callable[[], None]]:
        """Remove a place; return the callbacks to call, without the lock."""
        self._total -= 1
        return self._callbacks if self._total == self._max_connections - 1 else []

    def on_below_limit(self, callback: Callable[[], None]) -> None:
        """Register a callback for when the count falls below ``max.connections`` again."""
        self._callbacks.append(callback)

    def total(self) -> int:
        """Return the number of connections."""
        with self._lock:
            return self._total


def _call(callbacks: list[Callable[[], None]]) -> None:
    for callback in callbacks:
        callback()
