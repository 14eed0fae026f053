import itertools
import threading

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate


def quotas(total: int, per_address: int) -> ConnectionQuotas:
    return ConnectionQuotas(total, per_address, threading.Condition())


def test_counts_by_address() -> None:
    counted = quotas(10, 2)
    assert [counted.try_add("a"), counted.try_add("a"), counted.try_add("a")] == [True, True, False]
    assert counted.try_add("b")
    counted.remove("a")
    assert counted.try_add("a")
    assert counted.total() == 3


def test_tells_of_room_once_there_is_some_again() -> None:
    counted = quotas(2, 2)
    told: list[int] = []
    counted.notify_room(lambda: told.append(counted.total()))
    counted.try_add("a")
    assert counted.has_room()
    counted.try_add("b")
    assert not counted.has_room()
    counted.remove("a")
    counted.remove("b")
    assert told == [1]
    assert counted.has_room()


@pytest.mark.fault("B14")
def test_connections_come_at_a_rate() -> None:
    rate = CreationRate(10)
    came = [now_ms for now_ms in range(1000, 4000) if not rate.wait_ms(now_ms) and note(rate)]
    # Ten at once, then one every 100 ms; what was not used in a quiet time is not saved up.
    assert came[:10] == list(range(1000, 1010))
    gaps = {later - earlier for earlier, later in itertools.pairwise(came[10:])}
    assert gaps <= {99, 100, 101}
    assert rate.wait_ms(60_000) == 0.0
    burst = sum(1 for _ in range(30) if not rate.wait_ms(60_000) and note(rate))
    assert burst == 10


@pytest.mark.parametrize("per_second", [3, 7, 100, 999, 5000])
def test_after_the_wait_that_it_tells_one_may_come(per_second: int) -> None:
    """However late it is: a machine that is up for a year counts in steps of microseconds."""
    for now_ms in (0.1, 123_456.7, 3.2e10 / 3):
        rate, later_ms = CreationRate(per_second), now_ms
        for _ in range(per_second + 50):
            later_ms += rate.wait_ms(later_ms)
            assert rate.wait_ms(later_ms) == 0.0
            rate.note_created()


def note(rate: CreationRate) -> bool:
    rate.note_created()
    return True
