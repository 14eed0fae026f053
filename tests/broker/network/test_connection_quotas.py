import itertools
import math
import threading

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.quota_rate import QuotaWindow


def quotas(total: int, per_address: int, per_second: int = 1000) -> ConnectionQuotas:
    return ConnectionQuotas(total, per_address, CreationRate(per_second), threading.Condition())


def connect(counted: ConnectionQuotas, address: str) -> bool:
    assert counted.reserve(0.0) == 0.0
    return counted.try_add(address)


def test_quota_counts_connections_by_address() -> None:
    counted = quotas(10, 2)
    assert [connect(counted, "a") for _ in range(3)] == [True, True, False]
    assert connect(counted, "b")
    counted.remove("a")
    assert connect(counted, "a")
    assert counted.total() == 3


def test_callbacks_run_once_when_count_falls_below_limit() -> None:
    counted = quotas(2, 2)
    reported: list[tuple[str, int]] = []
    counted.on_below_limit(lambda: reported.append(("one", counted.total())))
    counted.on_below_limit(lambda: reported.append(("other", counted.total())))
    connect(counted, "a")
    assert counted.is_below_limit()
    connect(counted, "b")
    assert not counted.is_below_limit()
    counted.remove("a")
    counted.remove("b")
    assert reported == [("one", 1), ("other", 1)]
    assert counted.is_below_limit()


def test_reserved_places_count_until_they_are_cancelled() -> None:
    counted = quotas(2, 2)
    assert [counted.reserve(0.0) for _ in range(3)] == [0.0, 0.0, math.inf]
    counted.cancel()
    assert counted.reserve(0.0) == 0.0
    assert counted.total() == 2


def test_a_refused_connection_gives_its_place_back() -> None:
    counted = quotas(2, 1)
    assert [connect(counted, "a"), connect(counted, "a")] == [True, False]
    assert counted.total() == 1


def test_cancelled_places_do_not_count_for_the_creation_rate() -> None:
    counted = quotas(100, 100, per_second=2)
    for _ in range(5):
        assert counted.reserve(0.0) == 0.0
        counted.cancel()
    assert [counted.reserve(0.0) for _ in range(3)] == [0.0, 0.0, 500.0]
    assert counted.total() == 2


def test_acceptors_together_do_not_exceed_the_limit() -> None:
    counted = quotas(50, 1000, per_second=1000)
    highest: list[int] = []

    def run() -> None:
        for _ in range(200):
            if not counted.reserve(0.0):
                assert counted.try_add("a")
                highest.append(counted.total())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(highest) == counted.total() == 50


@pytest.mark.fault("B14")
def test_creation_rate_limits_new_connections() -> None:
    rate = CreationRate(10)
    came = [now_ms for now_ms in range(1000, 4000) if not rate.wait_ms(now_ms) and record(rate)]
    # Ten at once, then one every 100 ms; the burst never exceeds ten.
    assert came[:10] == list(range(1000, 1010))
    gaps = {later - earlier for earlier, later in itertools.pairwise(came[10:])}
    assert gaps <= {99, 100, 101}
    assert rate.wait_ms(60_000) == 0.0
    burst = sum(1 for _ in range(30) if not rate.wait_ms(60_000) and record(rate))
    assert burst == 10


@pytest.mark.parametrize("per_second", [3, 7, 100, 999, 5000])
def test_connection_is_allowed_after_returned_wait(per_second: int) -> None:
    """At any time: the clock of a machine that is up for a year has steps of microseconds."""
    for now_ms in (0.1, 123_456.7, 3.2e10 / 3):
        rate, later_ms = CreationRate(per_second), now_ms
        for _ in range(per_second + 50):
            later_ms += rate.wait_ms(later_ms)
            assert rate.wait_ms(later_ms) == 0.0
            rate.record_created()


def record(rate: CreationRate) -> bool:
    rate.record_created()
    return True


def test_connections_beyond_the_rate_of_their_address_are_throttled() -> None:
    window = QuotaWindow(3, 1000)
    counted = ConnectionQuotas(10, 10, CreationRate(1000), threading.Condition(), window)
    assert counted.throttle_ms("a", 0.0) == 0
    counted.configure_addresses({"a": 1.0, None: 2.0})
    assert [counted.throttle_ms("a", 0.0) for _ in range(4)] == [0, 0, 1000, 1000]
    assert [counted.throttle_ms("b", 0.0) for _ in range(5)] == [0, 0, 0, 0, 500]
    assert counted.throttle_ms("a", 3000.0) == 0
    counted.configure_addresses({})
    assert [counted.throttle_ms("a", 3000.0) for _ in range(9)] == [0] * 9


def test_rates_of_idle_addresses_are_removed() -> None:
    counted = quotas(10, 10)
    counted.configure_addresses({None: 1.0})
    for number in range(40_000):
        counted.throttle_ms(f"address {number}", float(number * 10))
    assert len(counted._address_rates._rates) <= 20_000
