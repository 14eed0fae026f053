"""The producer cache: producers are shared, replaced, and closed when idle."""

import os
from collections.abc import Mapping

import pytest

from kclient.common.errors import ClosedError, KafkaError
from kclient.network.system_runtime import system_runtime
from kclient.producer.errors import ProducerFatalError
from kclient.producer.producer import Producer
from kclient.spark.sink.producer_cache import ProducerCache, worker_cache
from kclient.spark.sink.producer_settings import ProducerSettings
from tests.spark.sink.fake_producer import FakeProducer
from tests.support.checks.waiting import wait_until


def settings(**more: object) -> ProducerSettings:
    return ProducerSettings({"bootstrap.servers": "localhost:9092", **more})


class Factory:
    """Creates fake producers and records them."""

    def __init__(self) -> None:
        self.created: list[FakeProducer] = []

    def create(self, config: Mapping[str, object]) -> Producer[bytes, bytes]:
        self.created.append(FakeProducer(config))
        return self.created[-1].as_producer

    def cache(self, idle_ms: float = 60_000.0) -> ProducerCache:
        return ProducerCache(system_runtime(), self.create, idle_ms)


def test_tasks_share_the_producer_of_a_configuration() -> None:
    factory = Factory()
    cache = factory.cache()

    with cache.lease(settings()) as first:
        pass
    with cache.lease(settings()) as second, cache.lease(settings(linger_ms=9)) as other:
        pass

    assert first is second
    assert other is not first
    assert [producer.config.get("linger.ms") for producer in factory.created] == [None, 9]
    assert not any(producer.closed for producer in factory.created)


@pytest.mark.parametrize(
    "problem", [ProducerFatalError("fenced"), ClosedError("flush: the producer is closed")]
)
def test_producer_with_fatal_error_is_replaced(problem: KafkaError) -> None:
    factory = Factory()
    cache = factory.cache()
    with cache.lease(settings()):
        pass
    factory.created[0].broken = problem

    with cache.lease(settings()) as producer:
        assert producer is factory.created[1].as_producer

    assert factory.created[0].closed
    assert len(cache) == 1


def test_producer_with_records_in_flight_is_reused() -> None:
    factory = Factory()
    cache = factory.cache()
    with cache.lease(settings()) as producer:
        producer.send("t", b"v")

    with cache.lease(settings()) as again:
        assert again is producer


def test_failed_task_closes_its_producer_without_flush() -> None:
    factory = Factory()
    cache = factory.cache()

    with pytest.raises(KeyError), cache.lease(settings()):
        raise KeyError

    assert factory.created[0].closes == [0]
    assert len(cache) == 0


def test_retired_producer_stays_open_while_in_use() -> None:
    factory = Factory()
    cache = factory.cache()
    with cache.lease(settings()):
        with pytest.raises(KeyError), cache.lease(settings()):
            raise KeyError
        assert not factory.created[0].closed
        with cache.lease(settings()) as newer:
            assert newer is factory.created[1].as_producer
    assert factory.created[0].closes == [0]
    assert not factory.created[1].closed


def test_failed_producer_creation_leaves_no_entry() -> None:
    def refuse(config: Mapping[str, object]) -> Producer[bytes, bytes]:
        raise KafkaError(str(config["bootstrap.servers"]))

    cache = ProducerCache(system_runtime(), refuse)

    with pytest.raises(KafkaError, match="localhost:9092"), cache.lease(settings()):
        pass

    assert len(cache) == 0


def test_only_idle_producers_are_closed() -> None:
    factory = Factory()
    cache = factory.cache(idle_ms=30.0)

    with cache.lease(settings()) as used:
        with cache.lease(settings(linger_ms=9)):
            pass
        wait_until(lambda: factory.created[1].closed, "the idle producer is closed")
        assert factory.created[0].as_producer is used
        assert not factory.created[0].closed
    wait_until(lambda: factory.created[0].closed, "the other one is closed, too")
    assert factory.created[0].closes == [None]  # without timeout

    with cache.lease(settings()):
        pass
    wait_until(lambda: factory.created[2].closed, "the thread is started again")
    cache.close()


def test_close_waits_for_producers_in_use() -> None:
    factory = Factory()
    cache = factory.cache()
    with cache.lease(settings()):
        with cache.lease(settings(linger_ms=9)):
            pass
        cache.close()
        assert [producer.closed for producer in factory.created] == [False, True]
    assert [producer.closed for producer in factory.created] == [True, True]


def test_concurrent_tasks_share_one_producer() -> None:
    factory = Factory()
    cache = factory.cache()
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
    kept = [producer for producer in factory.created if producer.sent]
    assert len(kept) == 1
    assert len(kept[0].sent) == 8
    assert all(producer.closed for producer in factory.created if producer is not kept[0])
    cache.close()


def test_forked_child_has_its_own_cache() -> None:
    mine = worker_cache()
    assert worker_cache() is mine
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"own" if worker_cache() is not mine else b"shared")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    result = os.read(reading, 10)
    os.close(reading)
    assert result == b"own"
