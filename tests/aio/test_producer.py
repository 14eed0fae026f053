"""The asyncio producer, against a broker in another process."""

import asyncio
import contextvars
import gc
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from kclient import AdminClient, Consumer, NewTopic, RecordMetadata, TopicPartition
from kclient.aio import Producer
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.network.system_net import SystemPoller
from kclient.testing import ApiKey, FaultProxy
from tests.aio.conftest import Loop
from tests.support.checks.waiting import wait_until
from tests.support.clients.cancelled_calls import cancel_at_each_suspension

UNREACHABLE = "127.0.0.1:1"


def stored(bootstrap: str, topic: str, least: int = 0) -> list[bytes]:
    """Return the values of a topic, in the order of its only partition, once it has as many."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        wait_until(lambda: consumer.end_offsets([partition])[partition] >= least, "all are sent")
        end = consumer.end_offsets([partition])[partition]
        values: list[bytes] = []
        while consumer.position(partition) < end:
            values += [bytes(record.value or b"") for record in consumer.poll(1.0)]
        return values


# --- sending


def test_records_are_acknowledged_in_order(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            futures = [await producer.send(topic, b"%d" % number) for number in range(1_000)]
            outcomes = [await future for future in futures]
            assert [each.offset for each in outcomes] == list(range(1_000))
            assert (await futures[0]).offset == 0, "a future can be awaited again"

    loop(test)
    assert stored(bootstrap, topic) == [b"%d" % number for number in range(1_000)]


def test_send_and_wait_returns_the_metadata(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(3):
                found = await producer.send_and_wait(
                    topic, b"v", b"k", headers=[("h", b"1")], timestamp_ms=1_700_000_000_000
                )
                assert found == RecordMetadata(topic, 0, number, 1_700_000_000_000, 1, 1)

    loop(test)


def test_record_of_a_task_that_sends_alone_is_sent_at_once(
    loop: Loop, bootstrap: str, topic: str
) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
            for _ in range(5):
                await producer.send_and_wait(topic, b"alone")
            task = asyncio.create_task(producer.send_and_wait(topic, b"last"))
            await asyncio.sleep(0)
            # The event loop does not run meanwhile.
            assert len(pool.submit(stored, bootstrap, topic, 6).result()) == 6
            await task

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # starts the thread
        loop(test)


def test_records_of_tasks_that_send_together_share_batches(
    loop: Loop, bootstrap: str, topic: str
) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
            for _ in range(5):
                await producer.send_and_wait(topic, b"alone")
            await asyncio.gather(*(producer.send_and_wait(topic, b"v") for _ in range(500)))
            assert producer.metrics()["records-per-request-avg"] > 505 / 12

    loop(test)


def test_task_that_sends_alone_lets_other_tasks_run(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
            counting = asyncio.create_task(count())
            for number in range(1, 200):
                await producer.send_and_wait(topic, b"v")
                assert turns >= number
            counting.cancel()
            await asyncio.wait([counting])

    loop(test)


def test_many_records_and_columns_are_sent(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            assert await (await producer.send_many(topic, [b"a"] * 500)) == 500
            batch = pa.RecordBatch.from_pydict({"value": [b"b"] * 700})
            assert await (await producer.send_arrow(topic, batch)) == 700
            assert len(await producer.partitions_for(topic)) == 1

    loop(test)
    assert Counter(stored(bootstrap, topic)) == {b"a": 500, b"b": 700}


def test_serializers_run_in_the_calling_task(loop: Loop, bootstrap: str, topic: str) -> None:
    tasks: list[object] = []

    def serialize(value: str) -> bytes:
        tasks.append(asyncio.current_task())
        return value.encode()

    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap, value_serializer=serialize) as producer:
            await producer.send_and_wait(topic, "one")
            assert await (await producer.send_many(topic, ["two", "three"])) == 2
        assert tasks == [asyncio.current_task()] * 3

    loop(test)
    assert stored(bootstrap, topic) == [b"one", b"two", b"three"]


def test_invalid_arguments_raise_before_the_record_is_queued(loop: Loop, bootstrap: str) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(TypeError, match="value"):
                await producer.send("topic", 5)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="topic"):
                await producer.send("no topic", b"")

    loop(test)


def test_producer_uses_no_thread_and_no_task(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        threads = threading.active_count()
        async with Producer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"v")
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert threading.active_count() == threads

    loop(test)


def test_sends_without_a_pause_let_other_tasks_run(loop: Loop, bootstrap: str, topic: str) -> None:
    """A loop of sends that never waits for memory must not keep the sender from sending."""

    async def test() -> None:
        delivered = 0

        def count(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            nonlocal delivered
            assert error is None
            delivered += 1

        async with Producer(bootstrap_servers=bootstrap, batch_size=16_384) as producer:
            while not delivered:
                await producer.send(topic, bytes(1_000), on_delivery=count)

    loop(test)


def test_sends_that_wait_for_memory_keep_their_order(
    loop: Loop, bootstrap: str, topic: str
) -> None:
    values = [b"%05d" % number + bytes(1_000) for number in range(5_000)]

    async def test() -> None:
        async with Producer(
            bootstrap_servers=bootstrap, buffer_memory=100_000, batch_size=16_384
        ) as producer:
            await producer.partitions_for(topic)
            tasks = [asyncio.create_task(producer.send(topic, value)) for value in values]
            for task in tasks:
                await (await task)

    loop(test)
    assert stored(bootstrap, topic) == values


def test_callbacks_see_the_context_of_their_send(loop: Loop, bootstrap: str, topic: str) -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")
    seen: list[tuple[str, str]] = []

    async def test() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:

            async def handle(name: str) -> None:
                request.set(name)
                done = asyncio.Event()

                def delivered(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
                    seen.append((name, request.get()))
                    done.set()

                await producer.send(topic, b"", on_delivery=delivered)
                await done.wait()

            await asyncio.gather(handle("a"), handle("b"))

    loop(test)
    assert sorted(seen) == [("a", "a"), ("b", "b")]


# --- cancellation


class CancelledSends:
    """Calls of one kind that wait for metadata or for the memory of others, and are cancelled.

    Attributes:
        queued: Values that a call reported as queued.
        unsent: Values that a call reported as not sent.
    """

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self.queued: set[bytes] = set()
        self.unsent: set[bytes] = set()
        self._bootstrap, self._topic, self._name = bootstrap, topic, name

    async def call(self, number: int) -> None:
        async with Producer(
            bootstrap_servers=self._bootstrap, buffer_memory=70_000, batch_size=32_768
        ) as producer:
            for each in range(3):
                await self._send(producer, b"%d-%d-" % (number, each) + bytes(30_000))

    async def _send(self, producer: Producer[bytes, bytes], value: bytes) -> None:
        try:
            if self._name == "send_many":
                await producer.send_many(self._topic, [value])
            elif self._name == "send":
                await producer.send(self._topic, value)
            else:
                await producer.send_and_wait(self._topic, value)
        except asyncio.CancelledError as error:
            notes = getattr(error, "__notes__", ["not queued"])
            (self.queued if "is queued" in notes[0] else self.unsent).add(value)
            raise
        self.queued.add(value)

    async def check(self, number: int, outcome: object) -> None:
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), number


@pytest.mark.fault("W22")
@pytest.mark.parametrize("name", ["send", "send_and_wait", "send_many"])
def test_cancelled_send_is_delivered_once_or_not_at_all(
    loop: Loop, bootstrap: str, topic: str, name: str
) -> None:
    sends = CancelledSends(bootstrap, topic, name)

    async def test() -> None:
        assert await cancel_at_each_suspension(sends.call, sends.check) >= 3

    loop(test)
    found = Counter(stored(bootstrap, topic))
    assert set(found.values()) == {1}
    assert found.keys() == sends.queued
    assert sends.unsent


def test_cancelled_flush_and_close_lose_no_record(loop: Loop, bootstrap: str, topic: str) -> None:
    sent: list[bytes] = []

    async def call(number: int) -> None:
        producer = Producer(bootstrap_servers=bootstrap, linger_ms=60_000)
        try:
            value = b"%d" % number
            await producer.send(topic, value)
            sent.append(value)
            await producer.flush()
        finally:
            await producer.close()

    async def check(number: int, outcome: object) -> None:
        pass

    async def test() -> None:
        assert await cancel_at_each_suspension(call, check) >= 3

    loop(test)
    assert sorted(stored(bootstrap, topic)) == sorted(sent)


def test_close_delivers_while_the_event_loop_ends(bootstrap: str, topic: str) -> None:
    """`asyncio.run` cancels all tasks at its end, and waits for them."""

    async def work() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=60_000) as producer:
            await producer.send(topic, b"v")
            waiting.set()
            await asyncio.Event().wait()

    async def test() -> None:
        background.append(asyncio.create_task(work()))
        await waiting.wait()

    background: list[asyncio.Task[None]] = []
    waiting = asyncio.Event()
    asyncio.run(test())
    assert background[0].cancelled()
    assert stored(bootstrap, topic) == [b"v"]


# --- closing and wrong use


def test_second_close_waits_for_the_first(loop: Loop, bootstrap: str, topic: str) -> None:
    async def test() -> None:
        producer = Producer(bootstrap_servers=bootstrap, linger_ms=60_000)
        future = await producer.send(topic, b"v")
        await asyncio.gather(producer.close(), producer.close())
        assert future.done()
        with pytest.raises(ClosedError, match="send: the producer is closed"):
            await producer.send(topic, b"v")

    loop(test)


def test_calls_end_at_their_timeouts_without_a_broker(loop: Loop, topic: str) -> None:
    async def test() -> None:
        producer = Producer(bootstrap_servers=UNREACHABLE, max_block_ms=100)
        async with asyncio.timeout(20.0):
            with pytest.raises(BootstrapError, match=topic):
                await producer.send(topic, b"v")
            with pytest.raises(BootstrapError):
                await producer.partitions_for(topic)
            await producer.flush(0.1)
            await producer.close(0.1)

    loop(test)


def test_close_ends_at_its_timeout_and_fails_the_records(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        producer = Producer(
            bootstrap_servers=proxy.bootstrap_servers,
            retry_backoff_ms=60_000,
            retry_backoff_max_ms=60_000,
        )
        future = await producer.send(topic, b"v")
        await producer.close(0.2)
        with pytest.raises(KafkaError, match="closed before"):
            await future

    with FaultProxy(bootstrap) as proxy:
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic(topic, 1, 1))
        lost = proxy.drop_response(ApiKey.PRODUCE)
        asyncio.run(test())
        assert lost.hits == 1
    assert "1 record(s) had no outcome" in caplog.text


def test_flush_reports_its_timeout(loop: Loop, topic: str) -> None:
    async def test() -> None:
        async with Producer(bootstrap_servers=UNREACHABLE, max_block_ms=0) as producer:
            with pytest.raises(KafkaTimeoutError):
                await producer.send(topic, b"v")
            with pytest.raises(ValueError, match="timeout"):
                await producer.flush(-1)

    loop(test)


def test_other_event_loop_is_refused(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=bootstrap)

    async def send() -> None:
        await producer.send_and_wait(topic, b"v")

    with asyncio.Runner() as first:
        first.run(send())
        with asyncio.Runner() as second, pytest.raises(IllegalStateError, match="not the loop"):
            second.run(producer.flush())
        first.run(producer.close())
    with pytest.raises(ClosedError):
        asyncio.run(send())


def test_closed_event_loop_is_named(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=bootstrap)
    asyncio.run(producer.flush())

    with pytest.raises(IllegalStateError, match="first call is closed"):
        asyncio.run(producer.partitions_for(topic))
    unclosed = [producer]
    del producer
    check_unclosed(unclosed)


def drop(objects: list[Producer[Any, Any]]) -> None:
    objects.clear()
    gc.collect()  # frames of exceptions refer to them


def check_unclosed(unclosed: list[Producer[Any, Any]]) -> None:
    """Drop the last reference to a producer, and expect its warning."""
    with pytest.warns(ResourceWarning, match=r"aio\.Producer .* never closed"):
        drop(unclosed)


def test_unclosed_producer_is_collected_with_a_warning(bootstrap: str, topic: str) -> None:
    """Its records are sent if the event loop runs on."""

    async def test() -> None:
        check_unclosed([Producer(bootstrap_servers=bootstrap)])
        producer = Producer(bootstrap_servers=bootstrap, linger_ms=60_000)
        future = await producer.send(topic, b"v")
        unclosed = [producer]
        del producer
        check_unclosed(unclosed)
        await future

    asyncio.run(test())


def test_loop_of_windows_is_refused(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    def add_reader(*_: object) -> None:
        raise NotImplementedError

    async def test() -> None:
        running = asyncio.get_running_loop()
        monkeypatch.setattr(running, "add_reader", add_reader)
        producer = Producer(bootstrap_servers=UNREACHABLE)
        with pytest.raises(KafkaError, match=r"asyncio\.SelectorEventLoop"):
            await producer.send(topic, b"v")
        monkeypatch.undo()
        await producer.close()

    asyncio.run(test())


def test_waits_do_not_spin(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    polls = 0
    really_poll = SystemPoller.poll

    def poll(self: SystemPoller, timeout_ms: float | None) -> list[tuple[object, int]]:
        nonlocal polls
        polls += 1
        return really_poll(self, timeout_ms)

    monkeypatch.setattr(SystemPoller, "poll", poll)

    async def test() -> None:
        async with Producer(bootstrap_servers=UNREACHABLE, max_block_ms=500) as producer:
            with pytest.raises(BootstrapError):
                await producer.send(topic, b"v")

    asyncio.run(test())
    assert polls < 200


def test_close_that_its_event_loop_does_not_finish_is_reported(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    unclosed: list[Producer[Any, Any]] = []

    async def test() -> None:
        producer = Producer(
            bootstrap_servers=proxy.bootstrap_servers,
            retry_backoff_ms=60_000,
            retry_backoff_max_ms=60_000,
        )
        unclosed.append(producer)
        await producer.send(topic, b"v")
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        closing.cancel()

    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(NewTopic(topic, 1, 1))
    with FaultProxy(bootstrap) as proxy:
        proxy.drop_response(ApiKey.PRODUCE)
        asyncio.run(test())
        with caplog.at_level("WARNING"):
            check_unclosed(unclosed)
    assert "1 record(s) had no outcome" in caplog.text
