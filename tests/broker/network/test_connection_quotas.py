import threading

from kclient.broker.network.connection_quotas import ConnectionQuotas


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
