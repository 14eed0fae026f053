import itertools
import threading

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate


def quotas(total: int, per_address: int) -> ConnectionQuotas:
    return ConnectionQuotas(total, per_address, threading.Condition())


def test_quota_counts_connections_by_address() -> None:
    counted = quotas(10, 2)
    assert [counted.try_add("a"), counted.try_add("a"), counted.try_add("a")] == [True, True, False]
    assert counted.try_add("b")
    counted.remove("a")
    assert counted.try_add("a")
    assert counted.total() == 3


def test_callback_runs_once_when_count_falls_below_limit() -> None:
    counted = quotas(2, 2)
    reported: list[int] = []
    counted.on_below_limit(lambda: reported.append(counted.total()))
    counted.try_add("a")
    assert counted.is_below_limit()
    counted.try_add("b")
    assert not counted.is_below_limit()
    counted.remove("a")
    counted.remove("b")
    assert reported == [1]
    assert counted.is_below_limit()


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
