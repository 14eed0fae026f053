"""Futures of records in asyncio loops and in the functions of `concurrent.futures`."""

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION
from typing import Any

import pytest

from kclient import Producer, RecordMetadata
from kclient.common.broker_errors import InvalidTopicError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.producer import BatchDelivery, DeliveryFuture
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from tests.support.virtual.producer_world import ProducerWorld, world

Outcome = DeliveryFuture | BatchDelivery


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as started:
        yield started


@pytest.fixture
def cluster(running: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    yield running
    running.faults.heal()


@pytest.fixture
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as made:
        made.partitions_for("t")
        yield made


@pytest.fixture
def lingering(cluster: EmbeddedCluster) -> Iterator[Producer]:
    """A producer that sends nothing before a flush."""
    with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=60_000) as made:
        made.partitions_for("t")
        yield made


def outcomes(producer: Producer) -> list[Outcome]:
    return [producer.send("t", b"1"), producer.send_many("t", [b"2", b"3"])]


def wrapped(outcome: Any) -> "asyncio.Future[Any]":
    return asyncio.wrap_future(outcome)


# -- asyncio ---------------------------------------------------------------------------------------


def test_outcomes_can_be_awaited(producer: Producer) -> None:
    async def run() -> None:
        metadata = await producer.send("t", b"1", partition=0)
        assert isinstance(metadata, RecordMetadata)
        assert await producer.send_many("t", [b"2", b"3"]) == 2
        sent = await asyncio.gather(*(producer.send("t", b"%d" % n) for n in range(50)))
        assert len({(each.partition, each.offset) for each in sent}) == 50
        known = producer.send("t", b"known")
        await known
        assert await known == await wrapped(known)
        assert await asyncio.wait_for(producer.send("t", b"in time"), 20)

    asyncio.run(run())


def test_awaiting_raises_the_error_of_the_record(
    cluster: EmbeddedCluster, producer: Producer
) -> None:
    cluster.faults.fail(ApiKey.PRODUCE, InvalidTopicError, times=None)

    async def run() -> None:
        for outcome in outcomes(producer):
            with pytest.raises(InvalidTopicError):
                await outcome
            with pytest.raises(InvalidTopicError):
                await wrapped(outcome)

    asyncio.run(run())


def test_cancelling_the_awaiting_task_does_not_cancel_the_record(lingering: Producer) -> None:
    futures: list[DeliveryFuture] = []

    async def run() -> None:
        async def deliver() -> None:
            futures.append(lingering.send("t", b"x"))
            await futures[0]

        task = asyncio.create_task(deliver())
        await asyncio.sleep(0)
        assert futures
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        wrapped(futures[0]).cancel()
        await asyncio.to_thread(lingering.flush)
        assert (await futures[0]).offset >= 0
        assert not futures[0].cancelled()

    asyncio.run(run())
    assert futures[0].result(0).offset >= 0


def test_loop_may_be_closed_before_the_outcome_is_known(
    lingering: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    future = lingering.send("t", b"x")

    async def time_out() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, 0.001)

    asyncio.run(time_out())
    lingering.flush()
    assert future.result(0).offset >= 0
    assert "callback raised" not in caplog.text


def test_awaiting_does_not_wait_for_callbacks_of_other_records(lingering: Producer) -> None:
    entered, may_end = threading.Event(), threading.Event()

    def slow(metadata: object, error: object) -> None:
        entered.set()
        may_end.wait(30)

    async def run() -> None:
        future = lingering.send("t", b"1", partition=0, on_delivery=slow)
        many = lingering.send_many("t", [b"2"], partition=0)
        flushing = asyncio.create_task(asyncio.to_thread(lingering.flush))
        await asyncio.to_thread(entered.wait, 30)
        assert (await future).offset >= 0  # would deadlock if it waited for `slow`
        assert many.result() == 1
        may_end.set()
        await flushing

    asyncio.run(run())


def test_awaiting_without_a_loop_raises(lingering: Producer) -> None:
    with pytest.raises(
        IllegalStateError, match=r"await: got no running asyncio loop, expected one"
    ):
        lingering.send("t", b"x").__await__().send(None)


# -- concurrent.futures ----------------------------------------------------------------------------


def as_futures(pending: list[Any]) -> list["concurrent.futures.Future[Any]"]:
    return pending


def test_waiting_for_all(lingering: Producer) -> None:
    pending = as_futures(outcomes(lingering))
    done, not_done = concurrent.futures.wait(pending, timeout=0)
    assert (done, not_done) == (set(), set(pending))
    lingering.flush()
    assert concurrent.futures.wait(pending, timeout=20) == (set(pending), set())
    assert all(isinstance(each, concurrent.futures.Future) for each in pending)
    assert "DeliveryFuture(" in repr(pending[0])


def test_as_completed_yields_each_future_once(producer: Producer) -> None:
    known = producer.send("t", b"known")
    known.result(20)
    pending = as_futures([known, *(producer.send("t", b"%d" % n) for n in range(100))])
    assert sorted(map(id, concurrent.futures.as_completed(pending, 20))) == sorted(map(id, pending))


def test_as_completed_times_out(lingering: Producer) -> None:
    with pytest.raises(TimeoutError):
        next(concurrent.futures.as_completed(as_futures(outcomes(lingering)), timeout=0.01))


@pytest.mark.parametrize("when", [FIRST_COMPLETED, FIRST_EXCEPTION])
def test_waiting_for_the_first_completed(when: str) -> None:
    producer = world(partitions=2, retries=0)
    pending = as_futures([producer.send(b"x", 0), producer.send(b"y", 1)])
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(concurrent.futures.wait(pending, 20, return_when=when))
    )
    thread.start()
    while not all(_waiters_of(each) for each in pending):
        pass
    producer.step()
    producer.respond_with_error(17)
    thread.join(20)
    assert found[0].done == set(pending)
    assert isinstance(pending[0].exception(0), KafkaError)


def _waiters_of(future: Any) -> list[Any]:
    return future.segment().result._callbacks or []


@pytest.mark.parametrize("when", [ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION])
def test_wait_that_times_out_removes_its_waiter(when: str) -> None:
    producer = world()
    future = producer.send(b"x")
    for _ in range(3):
        concurrent.futures.wait(as_futures([future]), timeout=0.001, return_when=when)
    assert _waiters_of(future) == []


def test_outcome_between_count_and_waiter_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = world()
    future = producer.send(b"x")
    base: Any = concurrent.futures._base
    made = base._create_and_install_waiters

    def complete_first(*arguments: Any) -> Any:
        producer.settle()
        assert future.done()
        assert as_futures([future])[0]._state == "PENDING"  # futures that wait() has counted
        return made(*arguments)

    monkeypatch.setattr(base, "_create_and_install_waiters", complete_first)
    pending = as_futures([future])
    done, _ = concurrent.futures.wait(pending, timeout=20)
    assert done == set(pending)


def test_records_of_a_split_batch() -> None:
    producer = world(batch_size=4_000)
    futures = [producer.send(bytes(300)) for _ in range(8)]
    many = BatchDelivery([future.segment() for future in futures], producer.clock)
    done: list[str] = []
    many.add_done_callback(lambda delivery: done.append(f"many {delivery.result()}"))
    futures[7].add_done_callback(lambda future: done.append("last"))
    producer.broker[0].max_batch_bytes = 700
    producer.step()
    producer.respond_to_all()
    assert done == []

    def forgotten() -> None:
        done.append("forgotten")

    assert futures[7].add_done_call(forgotten)
    futures[7].remove_done_call(forgotten)
    producer.settle()
    assert done == ["last", "many 8"]
    many.add_done_callback(lambda delivery: done.append("at once"))
    assert done[-1] == "at once"
    assert not many.add_done_call(lambda: None)


def _snapshot(outcome: Any) -> Any:
    return outcome._get_snapshot()


def test_state_attributes_of_concurrent_futures(lingering: Producer) -> None:
    for outcome in outcomes(lingering):
        assert (outcome.running(), outcome.cancel(), outcome.cancelled()) == (True, False, False)
        assert _snapshot(outcome) == (False, False, None, None)
    lingering.flush()
    for outcome in outcomes(lingering):
        lingering.flush()
        assert not outcome.running()
        assert _snapshot(outcome) == (True, False, outcome.result(0), None)


def test_class_is_unchanged_without_concurrent_futures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer: ProducerWorld = world()
    future = producer.send(b"x")
    monkeypatch.delitem(sys.modules, "concurrent.futures")
    assert future.__class__ is DeliveryFuture
