"""The asyncio loop of a transactional consumer and producer."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kclient
from kclient import TopicPartition, transactions
from kclient.aio import Consumer, Producer, TransactionalLoop
from kclient.common.errors import ConfigError, InvalidTypeError, KafkaTimeoutError
from kclient.consumer import ConsumerRecords
from kclient.testing.virtual import VirtualBroker, VirtualWorld
from tests.aio.conftest import Loop, produce
from tests.support.clients.cancelled_calls import cancel_at_each_suspension

Records = ConsumerRecords[Any, Any]
AnyProducer = Producer[Any, Any]
HOUR_MS = 3_600_000


def consumer_of(bootstrap: str, topic: str, **options: Any) -> Consumer[Any, Any]:
    given = {
        "group_id": topic,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
    }
    consumer: Consumer[Any, Any] = Consumer(bootstrap_servers=bootstrap, **{**given, **options})
    consumer.subscribe(topic)
    return consumer


def producer_of(bootstrap: str, topic: str) -> Callable[[], AnyProducer]:
    return lambda: Producer(bootstrap_servers=bootstrap, transactional_id=topic)


async def results(bootstrap: str, topic: str) -> list[bytes]:
    """Return what a committed reader sees."""
    partition = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        found: list[bytes] = []
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            found += [each.value or b"" for each in await consumer.poll(0.1)]
        return found


async def next_offset(consumer: Consumer[Any, Any], partition: TopicPartition) -> int:
    """Return the committed offset."""
    found = (await consumer.committed([partition]))[partition]
    return 0 if found is None else found.offset


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_results_and_offsets_are_committed_together(
    loop: Loop, bootstrap: str, topic: str, *, is_coroutine: bool
) -> None:
    values = produce(bootstrap, topic, 3)
    target = f"{topic}-copy"

    async def test() -> None:
        seen: list[bytes | None] = []

        async def send(records: Records, producer: AnyProducer) -> None:
            for each in records:
                await producer.send(target, each.value)
            seen.extend(each.value for each in records)
            if len(seen) == 3:
                copying.stop()

        def start(records: Records, producer: AnyProducer) -> object:
            return send(records, producer)

        async with consumer_of(bootstrap, topic) as consumer:
            process = send if is_coroutine else start
            copying = TransactionalLoop(consumer, producer_of(bootstrap, topic), process)
            await copying.run()
            assert await next_offset(consumer, TopicPartition(topic, 0)) == 3
        assert await results(bootstrap, target) == values

    loop(test)


def test_records_of_a_failed_process_are_read_again(loop: Loop, bootstrap: str, topic: str) -> None:
    values = produce(bootstrap, topic, 2)
    target = f"{topic}-copy"

    async def test() -> None:
        failures: list[Exception] = [KafkaTimeoutError("temporary"), ZeroDivisionError()]

        async def fail_twice(records: Records, producer: AnyProducer) -> None:
            await producer.send_many(target, [each.value for each in records])
            await producer.flush()
            if failures:
                raise failures.pop(0)
            copying.stop()

        async with consumer_of(bootstrap, topic) as consumer:
            copying = TransactionalLoop(consumer, producer_of(bootstrap, topic), fail_twice)
            with pytest.raises(ZeroDivisionError):
                await copying.run()
            assert failures == []
            assert await results(bootstrap, target) == []
            assert await consumer.position(TopicPartition(topic, 0)) == 0
            await copying.run()
        assert await results(bootstrap, target) == values

    loop(test)


def test_cancelled_run_aborts_its_transaction_and_may_run_again(
    loop: Loop, bootstrap: str, topic: str
) -> None:
    produce(bootstrap, topic, 1)
    target, partition = f"{topic}-copy", TopicPartition(topic, 0)

    async def test() -> None:
        async def copy(records: Records, producer: AnyProducer) -> None:
            for each in records:
                await producer.send_and_wait(target, each.value)
            copying.stop()

        async def add(number: int) -> None:
            async with Producer(bootstrap_servers=bootstrap) as producer:
                await producer.send_and_wait(topic, b"%d" % number)

        async def call(number: int) -> None:
            await copying.run()

        async def check(number: int, outcome: asyncio.CancelledError | None) -> None:
            assert not any("unknown" in each for each in getattr(outcome, "__notes__", ()))
            offset = await next_offset(consumer, partition)
            assert await consumer.position(partition) == offset
            if offset <= number:
                await copying.run()
            assert await results(bootstrap, target) == [b"%d" % each for each in range(number + 1)]
            await add(number + 1)

        async with consumer_of(bootstrap, topic) as consumer:
            copying = TransactionalLoop(consumer, producer_of(bootstrap, topic), copy)
            await copying.run()  # the consumer is a member of its group now
            await add(1)
            assert await cancel_at_each_suspension(call, check) >= 6

    loop(test)


class Stage:
    """A broker and a process in virtual time; the topic `source` has a record.

    Attributes:
        broker: The broker.
        runtime: Runtime of the process.
    """

    def __init__(self, world: VirtualWorld) -> None:
        self.broker = VirtualBroker(world)
        self._world = world
        self._process = world.machine("application").process("loop")
        self.runtime = self._process.runtime
        self.options: dict[str, Any] = {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "runtime": self.runtime,
        }

    def now_s(self) -> float:
        return self._world.clock.now_ms / 1000

    def run(
        self, process: Callable[[Records, AnyProducer], object], task_timeout: float
    ) -> BaseException:
        """Run a loop; return the error that ends it."""

        async def main() -> BaseException:
            async with Producer(**self.options) as producer:
                await producer.send_and_wait("source", b"a")
            servers = self.broker.bootstrap_servers
            async with consumer_of(servers, "source", runtime=self.runtime) as consumer:
                copying = TransactionalLoop(
                    consumer,
                    lambda: Producer(**self.options, transactional_id="loop-1"),
                    process,
                    self.runtime,
                    task_timeout=task_timeout,
                )
                with pytest.raises((asyncio.CancelledError, KafkaTimeoutError)) as raised:
                    await copying.run()
                return raised.value

        task = self._process.spawn_async("main", main)
        self._world.run(until=lambda: task.over, timeout_ms=HOUR_MS)
        assert isinstance(task.result, BaseException)
        return task.result


@pytest.fixture
def stage() -> Iterator[Stage]:
    with VirtualWorld(seed=1) as world:
        yield Stage(world)


def test_cancelled_run_ends_with_the_cancellation_if_brokers_do_not_respond(stage: Stage) -> None:
    async def be_cancelled(records: Records, producer: AnyProducer) -> None:
        await producer.send_and_wait("target", b"a")
        stage.broker.kill()
        running = asyncio.current_task()
        assert running is not None
        running.cancel()
        await asyncio.sleep(HOUR_MS)

    error = stage.run(be_cancelled, 300.0)
    assert isinstance(error, asyncio.CancelledError)
    (note,) = error.__notes__
    assert "abort_transaction: no outcome within 60000 ms" in note


def test_process_that_always_fails_ends_the_loop_after_the_task_timeout(stage: Stage) -> None:
    times: list[float] = []

    async def fail(records: Records, producer: AnyProducer) -> None:
        times.append(stage.now_s())
        await asyncio.sleep(1.0)
        raise KafkaTimeoutError(f"attempt {len(times)}")

    error = stage.run(fail, 30.0)
    assert isinstance(error, KafkaTimeoutError)
    assert "within task_timeout=30 s" in str(error)
    assert str(error.__cause__) == f"attempt {len(times)}"
    assert 29.0 <= times[-1] - times[0] <= 32.0


def test_wrong_arguments_are_refused(loop: Loop, bootstrap: str, topic: str) -> None:
    def process(records: Records, producer: AnyProducer) -> None: ...

    async def new_producer() -> AnyProducer:
        return producer_of(bootstrap, topic)()

    async def test() -> None:
        given = producer_of(bootstrap, topic)
        async with consumer_of(bootstrap, topic, enable_auto_commit=True) as automatic:
            with pytest.raises(ConfigError, match="enable_auto_commit=True, expected False"):
                TransactionalLoop(automatic, given, process)
        async with consumer_of(bootstrap, topic) as consumer:
            with pytest.raises(InvalidTypeError, match="new_producer: got the coroutine function"):
                TransactionalLoop(consumer, new_producer, process)  # type: ignore[arg-type]
            with pytest.raises(InvalidTypeError, match=r"expected a kclient\.Consumer"):
                transactions.TransactionalLoop(consumer, given, process)  # type: ignore[arg-type]
        with (
            kclient.Consumer(bootstrap_servers=bootstrap) as blocking,
            pytest.raises(InvalidTypeError, match=r"expected a kclient\.aio\.Consumer"),
        ):
            TransactionalLoop(blocking, given, process)  # type: ignore[arg-type]

    loop(test)
