"""Pools of received bytes: how far a request may overdraw, and releases."""

import threading

import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.network.memory_pool import SimpleMemoryPool, UnlimitedMemoryPool


def test_concurrent_releases_are_all_counted() -> None:
    pool = SimpleMemoryPool(10, threading.RLock())
    releasing = threading.Thread(target=lambda: pool.release(3))

    class Size(int):
        """Size whose addition makes another thread release memory."""

        def __radd__(self, other: int) -> int:
            releasing.start()
            releasing.join(0.2)  # with a lock it waits until the addition is complete
            return other + int(self)

    assert pool.try_allocate(10)
    pool.release(Size(7))
    releasing.join(20)
    assert pool.available() == 10


def test_pool_lends_while_any_byte_is_left() -> None:
    pool = SimpleMemoryPool(100, threading.Lock())
    assert (pool.capacity, pool.available()) == (100, 100)
    assert pool.try_allocate(99)
    assert pool.try_allocate(500)  # one request may overdraw
    assert pool.available() == -499
    assert not pool.try_allocate(1)
    assert pool.available() == -499
    pool.release(499)
    assert not pool.try_allocate(1)  # nothing is left yet
    pool.release(1)
    assert pool.try_allocate(1)


def test_all_released_memory_is_available_again() -> None:
    pool = SimpleMemoryPool(100, threading.Lock())
    for size in (40, 70):
        assert pool.try_allocate(size)
    pool.release(70)
    pool.release(40)
    assert pool.available() == 100


@pytest.mark.parametrize("capacity", [0, -1])
def test_pool_without_capacity_is_refused(capacity: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"capacity: got {capacity}, expected bytes > 0"):
        SimpleMemoryPool(capacity, threading.Lock())


def test_pool_of_clients_is_unlimited() -> None:
    pool = UnlimitedMemoryPool()
    assert pool.try_allocate(2**40)
    pool.release(5)
    assert pool.available() == 2**63 - 1
