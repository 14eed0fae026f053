"""One producer per process and configuration: shared, replaced, closed when idle."""

import os
from collections.abc import Mapping

import pytest

from kclient.common.errors import ClosedError, KafkaError
from kclient.network.system_runtime import system_runtime
from kclient.producer.errors import ProducerFatalError
from kclient.spark.sink.producer_cache import ProducerCache, worker_cache
from kclient.spark.sink.producer_settings import ProducerSettings
from tests.spark.unit.fake_producer import FakeProducer
from tests.support.waiting import wait_until


def settings(**more: object) -> ProducerSettings:
    return ProducerSettings({"bootstrap.servers": "localhost:9092", **more})


class Shop:
    """Makes producers and remembers them."""

    def __init__(self) -> None:
        self.made: list[FakeProducer] = []

    def make(self, config: Mapping[str, object]) -> FakeProducer:
        self.made.append(FakeProducer(config))
        return self.made[-1]

    def cache(self, idle_ms: float = 60_000.0) -> ProducerCache:
        return ProducerCache(system_runtime(), self.make, idle_ms)


def test_tasks_share_the_producer_of_a_configuration_and_no_other() -> None:
    shop = Shop()
    cache = shop.cache()

    with cache.lease(settings()) as first:
        pass
    with cache.lease(settings()) as second, cache.lease(settings(linger_ms=9)) as other:
        pass

    assert first is second
    assert other is not first
    assert [producer.config.get("linger.ms") for producer in shop.made] == [None, 9]
    assert not any(producer.closed for producer in shop.made)


@pytest.mark.parametrize(
    "problem", [ProducerFatalError("fenced"), ClosedError("flush: the producer is closed")]
)
def test_a_producer_that_is_broken_is_replaced(problem: KafkaError) -> None:
    shop = Shop()
    cache = shop.cache()
    with cache.lease(settings()):
        pass
    shop.made[0].broken = problem

    with cache.lease(settings()) as producer:
        assert producer is shop.made[1]

    assert shop.made[0].closed
    assert len(cache) == 1


def test_a_producer_with_records_of_another_task_on_their_way_is_not_broken() -> None:
    shop = Shop()
    cache = shop.cache()
    with cache.lease(settings()) as producer:
        producer.send("t", b"v")

    with cache.lease(settings()) as again:
        assert again is producer


def test_a_task_that_fails_gives_its_producer_up_with_what_it_has_not_sent() -> None:
    shop = Shop()
    cache = shop.cache()

    with pytest.raises(KeyError), cache.lease(settings()):
        raise KeyError

    assert shop.made[0].closes == [0]
    assert len(cache) == 0


def test_a_producer_that_is_given_up_stays_open_for_those_who_use_it() -> None:
    shop = Shop()
    cache = shop.cache()
    with cache.lease(settings()):
        with pytest.raises(KeyError), cache.lease(settings()):
            raise KeyError
        assert not shop.made[0].closed
        with cache.lease(settings()) as newer:
            assert newer is shop.made[1]
    assert shop.made[0].closes == [0]
    assert not shop.made[1].closed


def test_a_producer_that_cannot_be_made_leaves_nothing_behind() -> None:
    def refuse(config: Mapping[str, object]) -> FakeProducer:
        raise KafkaError(str(config["bootstrap.servers"]))

    cache = ProducerCache(system_runtime(), refuse)

    with pytest.raises(KafkaError, match="localhost:9092"), cache.lease(settings()):
        pass

    assert len(cache) == 0


def test_a_producer_that_nobody_uses_is_closed_and_one_in_use_is_not() -> None:
    shop = Shop()
    cache = shop.cache(idle_ms=30.0)

    with cache.lease(settings()) as used:
        with cache.lease(settings(linger_ms=9)):
            pass
        wait_until(lambda: shop.made[1].closed, "the idle producer is closed")
        assert shop.made[0] is used
        assert not shop.made[0].closed
    wait_until(lambda: shop.made[0].closed, "the other one is closed, too")
    assert shop.made[0].closes == [None]  # nothing is on its way; it may take its time

    with cache.lease(settings()):
        pass
    wait_until(lambda: shop.made[2].closed, "the thread that closes comes again")
    cache.close()


def test_closing_closes_the_free_at_once_and_the_others_when_they_are_free() -> None:
    shop = Shop()
    cache = shop.cache()
    with cache.lease(settings()):
        with cache.lease(settings(linger_ms=9)):
            pass
        cache.close()
        assert [producer.closed for producer in shop.made] == [False, True]
    assert [producer.closed for producer in shop.made] == [True, True]


def test_many_threads_get_one_producer() -> None:
    shop = Shop()
    cache = shop.cache()
    gate = system_runtime().tasks.condition()
    inside = 0

    def use() -> bool:
        nonlocal inside
        with cache.lease(settings()) as producer:
            producer.send("t", b"v")
            with gate:
                inside += 1
                gate.notify_all()
                assert gate.wait_for(lambda: inside == 8, 30)
        return False

    tasks = [system_runtime().tasks.spawn(f"user-{number}", use) for number in range(8)]

    assert all(task.join(30) for task in tasks)
    kept = [producer for producer in shop.made if producer.sent]
    assert len(kept) == 1
    assert len(kept[0].sent) == 8
    assert all(producer.closed for producer in shop.made if producer is not kept[0])
    cache.close()


def test_a_forked_child_has_a_cache_of_its_own() -> None:
    mine = worker_cache()
    assert worker_cache() is mine
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"own" if worker_cache() is not mine else b"shared")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    told = os.read(reading, 10)
    os.close(reading)
    assert told == b"own"
