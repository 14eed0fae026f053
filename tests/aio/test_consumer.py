"""The asyncio consumer, against a broker in another process."""

import asyncio
import gc
import os
import re
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.aio import Consumer
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    WakeupError,
)
from kclient.testing import FaultProxy
from tests.aio.conftest import Loop, produce
from tests.support.clients.cancelled_calls import cancel_at_each_suspension
from tests.support.processes.process_stats import open_descriptors

UNREACHABLE = "127.0.0.1:1"


@asynccontextmanager
async def reading(
    bootstrap: str, partition: TopicPartition, **options: Any
) -> AsyncIterator[Consumer[bytes | None, bytes | None]]:
    """A consumer of one partition, from its beginning."""
    async with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", **options
    ) as consumer:
        consumer.assign([partition])
        yield consumer


# --- reading


def test_consumer_without_connection_has_one_descriptor(loop: Loop) -> None:
    async def test() -> None:
        before = open_descriptors(os.getpid())
        async with Consumer(bootstrap_servers=UNREACHABLE):
            assert open_descriptors(os.getpid()) == before + 1

    loop(test)


def test_poll_returns_records_in_order(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 1_200)

    async def test() -> None:
        async with reading(bootstrap, partition) as consumer:
            found: list[bytes | None] = []
            while len(found) < len(values):
                found += [record.value for record in await consumer.poll()]
            assert found == values
            assert len(await consumer.poll(0.01)) == 0
            assert await consumer.position(partition) == len(values)
            assert await consumer.lag(partition) == 0

    loop(test)


def test_iteration_returns_records_until_close(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 700)

    async def test() -> None:
        async with reading(bootstrap, partition) as consumer:
            found: list[bytes | None] = []

            async def read() -> None:
                async for record in consumer:
                    found.append(record.value)  # noqa: PERF401 (read while it grows)

            task = asyncio.create_task(read())
            while len(found) < len(values):
                await asyncio.sleep(0)
            await consumer.close()
            await task
        assert found == values

    loop(test)


def test_records_after_a_break_are_returned_by_poll(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 10)

    async def test() -> None:
        async with reading(bootstrap, partition) as consumer:
            async for record in consumer:
                if record.offset == 3:
                    break
            assert [record.value for record in await consumer.poll()] == values[4:]

    loop(test)


def test_columns_and_offsets_are_returned(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 100)

    async def test() -> None:
        async with reading(bootstrap, partition) as consumer:
            batch = await consumer.poll_columns(10.0)
            assert batch.column("value").to_pylist() == values
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 100}
            found = await consumer.offsets_for_times({partition: 0})
            assert found[partition] is not None

    loop(test)


def test_buffered_polls_let_other_tasks_run(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 500)

    async def test() -> None:
        async with reading(bootstrap, partition, max_poll_records=1) as consumer:
            await consumer.poll()
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count())
            for _ in range(100):
                assert await consumer.poll()
            assert turns >= 10
            counting.cancel()
            await asyncio.wait([counting])

    loop(test)


def test_consumer_uses_no_thread_and_no_task(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        threads = threading.active_count()
        async with Consumer(
            bootstrap_servers=bootstrap, group_id=partition.topic, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(partition.topic)
            while not await consumer.poll():
                pass
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert threading.active_count() == threads

    loop(test)


# --- groups


def test_members_share_the_partitions_and_commit(loop: Loop, bootstrap: str, topic: str) -> None:
    values = produce(bootstrap, topic, 400, partitions=4)

    async def test() -> None:
        found: list[bytes | None] = []

        async def member() -> None:
            async with Consumer(
                bootstrap_servers=bootstrap,
                group_id=topic,
                auto_offset_reset="earliest",
                heartbeat_interval_ms=100,
                enable_auto_commit=False,
            ) as consumer:
                consumer.subscribe(topic)
                while len(consumer.assignment()) != 2:
                    await consumer.poll(0.1)
                consumer.seek_to_beginning()
                ready.append(consumer)
                while len(ready) < 2:
                    await consumer.poll(0.1, max_records=1)
                consumer.seek_to_beginning()
                count = 0
                while count < 200:
                    records = await consumer.poll()
                    count += len(records)
                    found.extend(record.value for record in records)
                await consumer.commit()
                ends = await consumer.committed(consumer.assignment())
                assert {each and each.offset for each in ends.values()} == {100}
                ready.append(consumer)
                while len(ready) < 4:
                    await consumer.poll(0.1)

        ready: list[object] = []
        await asyncio.gather(member(), member())
        assert sorted(found, key=bytes) == sorted(values)  # type: ignore[arg-type]

    loop(test)


def test_commit_does_not_wait_for_a_poll_of_another_task(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 0)

    async def test() -> None:
        async with Consumer(bootstrap_servers=bootstrap, group_id=partition.topic) as consumer:
            consumer.assign([partition])
            polling = asyncio.create_task(consumer.poll(60.0), name="reader")
            await asyncio.sleep(0)
            offsets = {partition: OffsetAndMetadata(0)}
            await consumer.commit(offsets)
            assert await consumer.committed([partition]) == offsets
            with pytest.raises(ConcurrentAccessError, match=r"while task 'reader' waits in poll"):
                await consumer.poll()
            assert not polling.done()
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await polling

    loop(test)


def test_slow_coroutine_keeps_its_membership(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """Heartbeats are sent while the application awaits something else."""
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        async with Consumer(
            bootstrap_servers=bootstrap,
            group_id=partition.topic,
            enable_auto_commit=False,
            heartbeat_interval_ms=50,
            session_timeout_ms=500,
        ) as consumer:
            consumer.subscribe(partition.topic)
            while not consumer.assignment():
                await consumer.poll(0.1)
            await asyncio.sleep(1.5)  # three sessions
            await consumer.commit({partition: OffsetAndMetadata(1)})

    loop(test)


# --- cancellation


@pytest.mark.fault("W22")
@pytest.mark.parametrize("name", ["poll", "iteration", "columns"])
def test_cancelled_read_loses_no_record(
    loop: Loop, bootstrap: str, partition: TopicPartition, name: str
) -> None:
    values = produce(bootstrap, partition.topic, 120)
    open_consumers: list[tuple[Consumer[Any, Any], list[bytes | None]]] = []

    async def read(consumer: Consumer[Any, Any], found: list[bytes | None]) -> None:
        while len(found) < len(values):
            if name == "iteration":
                found.append((await anext(consumer)).value)
            elif name == "poll":
                found += [record.value for record in await consumer.poll(max_records=50)]
            else:
                batch = await consumer.poll_columns(max_records=50)
                found += batch.column("value").to_pylist()

    async def call(number: int) -> None:
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        consumer.assign([partition])
        open_consumers.append((consumer, []))
        await read(*open_consumers[-1])

    async def check(number: int, outcome: object) -> None:
        consumer, found = open_consumers.pop()
        await read(consumer, found)
        assert found == values, f"cancelled at suspension {number}"
        await consumer.close()

    async def test() -> None:
        assert await cancel_at_each_suspension(call, check) >= 3

    loop(test)


@pytest.mark.parametrize("name", ["commit", "committed", "position", "end_offsets"])
def test_cancelled_call_leaves_the_consumer_usable(
    loop: Loop, bootstrap: str, partition: TopicPartition, name: str
) -> None:
    produce(bootstrap, partition.topic, 5)
    offsets = {partition: OffsetAndMetadata(3)}

    async def run(consumer: Consumer[Any, Any]) -> None:
        if name == "commit":
            await consumer.commit(offsets)
        elif name == "committed":
            await consumer.committed([partition])
        elif name == "position":
            assert await consumer.position(partition) in (0, 3)
        else:
            assert await consumer.end_offsets([partition]) == {partition: 5}

    async def test() -> None:
        async def call(number: int) -> None:
            consumer: Consumer[Any, Any] = Consumer(
                bootstrap_servers=bootstrap,
                group_id=f"{partition.topic}-{number}",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            consumer.assign([partition])
            consumers.append(consumer)
            await run(consumer)

        async def check(number: int, outcome: object) -> None:
            consumer = consumers.pop()
            if name == "commit" and isinstance(outcome, asyncio.CancelledError):
                assert "its outcome is unknown" in outcome.__notes__[0]
            await run(consumer)
            await consumer.commit(offsets)
            assert await consumer.committed([partition]) == offsets
            await consumer.close()

        consumers: list[Consumer[Any, Any]] = []
        assert await cancel_at_each_suspension(call, check) >= 2

    loop(test)


def test_cancelled_close_still_leaves_the_group(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        async def call(number: int) -> None:
            consumer: Consumer[Any, Any] = Consumer(
                bootstrap_servers=bootstrap,
                group_id=partition.topic,
                group_instance_id=None,
                auto_offset_reset="earliest",
                session_timeout_ms=60_000,
            )
            consumer.subscribe(partition.topic)
            consumers.append(consumer)
            try:
                while not consumer.assignment():
                    await consumer.poll(0.2)
            finally:
                await consumer.close()

        async def check(number: int, outcome: object) -> None:
            await consumers.pop().close()  # waits for the end of the first close

        consumers: list[Consumer[Any, Any]] = []
        async with asyncio.timeout(40.0):  # a member that stays would hold the group for 60 s
            assert await cancel_at_each_suspension(call, check) >= 5

    loop(test)


# --- closing and wrong use


def test_close_ends_the_poll_of_another_task(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 0)

    async def test() -> None:
        consumer = Consumer(bootstrap_servers=bootstrap, group_id=partition.topic)
        consumer.assign([partition])
        polling = asyncio.create_task(consumer.poll(60.0))
        position = asyncio.create_task(consumer.position(TopicPartition(partition.topic, 0)))
        await position
        await asyncio.gather(consumer.close(), consumer.close())
        with pytest.raises(ClosedError):
            await polling
        with pytest.raises(ClosedError):
            await consumer.poll()
        with pytest.raises(ClosedError):
            async with consumer:
                pass

    loop(test)


def test_calls_end_at_their_timeouts_without_a_broker(
    loop: Loop, partition: TopicPartition
) -> None:
    async def test() -> None:
        async with asyncio.timeout(20.0):
            consumer = Consumer(bootstrap_servers=UNREACHABLE, group_id="group")
            consumer.assign([partition])
            assert len(await consumer.poll(0.1)) == 0
            with pytest.raises(BootstrapError):
                await consumer.commit({partition: OffsetAndMetadata(0)}, timeout=0.1)
            with pytest.raises(BootstrapError):
                await consumer.position(partition, timeout=0.1)
            await consumer.close(0.1)

    loop(test)


def test_poll_needs_a_subscription(loop: Loop) -> None:
    async def test() -> None:
        async with Consumer(bootstrap_servers=UNREACHABLE) as consumer:
            with pytest.raises(IllegalStateError, match="nothing to read"):
                await consumer.poll()
            with pytest.raises(ValueError, match="timeout"):
                await consumer.poll(-1)

    loop(test)


def test_no_commit_of_the_last_records_after_an_exception(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 5)

    async def test() -> None:
        async def fail(kind: type[BaseException]) -> None:
            async with reading(bootstrap, partition, group_id=partition.topic) as consumer:
                while not await consumer.poll():
                    pass
                raise kind

        for kind in (KeyError, asyncio.CancelledError):
            with pytest.raises(kind):
                await fail(kind)
        async with reading(bootstrap, partition, group_id=partition.topic) as consumer:
            assert await consumer.committed([partition]) == {partition: None}
            while not await consumer.poll():
                pass
        async with reading(bootstrap, partition, group_id=partition.topic) as consumer:
            found = await consumer.committed([partition])
            assert found[partition] == OffsetAndMetadata(5, leader_epoch=0)

    loop(test)


def drop(objects: list[Consumer[Any, Any]]) -> None:
    objects.clear()
    gc.collect()


def test_unclosed_consumer_is_collected_with_a_warning(
    bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        consumer = Consumer(
            bootstrap_servers=bootstrap, group_id=partition.topic, auto_offset_reset="earliest"
        )
        consumer.subscribe(partition.topic)
        while not await consumer.poll():
            pass
        unclosed: list[Consumer[Any, Any]] = [consumer]
        del consumer
        with pytest.warns(ResourceWarning, match=r"aio\.Consumer .* never closed"):
            drop(unclosed)
        await asyncio.sleep(0)

    asyncio.run(test())


def check_unclosed(unclosed: list[Consumer[Any, Any]]) -> None:
    """Drop the last reference to a consumer, and expect its warning."""
    reference = weakref.ref(unclosed[0])
    with pytest.warns(ResourceWarning, match=r"aio\.Consumer .* never closed"):
        drop(unclosed)
    assert reference() is None


class Callbacks:
    """An application whose callbacks refer to its consumer."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self.consumer = consumer
        self.is_revoking = False

    async def on_revoked(self, partitions: list[TopicPartition]) -> None:
        self.is_revoking = True
        await asyncio.Event().wait()


async def joined(bootstrap: str, group: str, topic: str) -> Callbacks:
    consumer: Consumer[Any, Any] = Consumer(bootstrap_servers=bootstrap, group_id=group)
    callbacks = Callbacks(consumer)
    consumer.subscribe(topic, on_revoked=callbacks.on_revoked)
    while not consumer.assignment():
        await consumer.poll(0.1)
    return callbacks


def test_close_that_its_event_loop_does_not_finish_is_reported(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 1)
    unclosed: list[Consumer[Any, Any]] = []

    async def leave_open() -> None:
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=proxy.bootstrap_servers,
            group_id=topic,
            auto_offset_reset="earliest",
        )
        unclosed.append(consumer)
        consumer.assign([TopicPartition(topic, 0)])
        while not await consumer.poll():
            pass
        proxy.hold()
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        closing.cancel()

    with FaultProxy(bootstrap) as proxy:
        asyncio.run(leave_open())
        check_unclosed(unclosed)


@pytest.mark.parametrize("is_closing", [True, False])
def test_consumer_of_an_ended_loop_whose_callbacks_refer_to_it_is_collected(
    bootstrap: str, topic: str, is_closing: bool
) -> None:
    produce(bootstrap, topic, 1)
    unclosed: list[Consumer[Any, Any]] = []

    async def leave_open() -> None:
        callbacks = await joined(bootstrap, f"{topic}-{is_closing}", topic)
        unclosed.append(callbacks.consumer)
        if is_closing:
            closing = asyncio.create_task(callbacks.consumer.close())
            while not callbacks.is_revoking:
                await asyncio.sleep(0.001)
            closing.cancel()
            await asyncio.wait([closing])

    def run_and_end() -> None:
        """Run an event loop that does not cancel its tasks at its end."""
        ended = asyncio.new_event_loop()
        ended.run_until_complete(leave_open())
        ended.close()

    async def bind_another() -> None:
        async with Consumer(bootstrap_servers=bootstrap):
            pass

    before = open_descriptors(os.getpid())
    run_and_end()
    asyncio.run(bind_another())
    check_unclosed(unclosed)
    assert open_descriptors(os.getpid()) == before


# --- a blocked event loop


@pytest.mark.parametrize(
    ("session_timeout_ms", "level", "text"),
    [
        (30_000, "WARNING", r"at least [12]\.\d s \(heartbeats are due every 0\.5 s\)"),
        (1_000, "ERROR", r"at least [12]\.\d s, longer than session\.timeout\.ms \(1\.0 s\)"),
    ],
)
def test_blocked_event_loop_is_named_once(
    bootstrap: str,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    session_timeout_ms: int,
    level: str,
    text: str,
) -> None:
    produce(bootstrap, topic, 1)

    async def test() -> None:
        async with Consumer(
            bootstrap_servers=bootstrap,
            group_id=topic,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=500,
        ) as consumer:
            consumer.subscribe(topic)
            while not consumer.assignment():
                await consumer.poll(0.1)
            time.sleep(1.6)
            await consumer.poll(0.3)
            assert consumer.metrics()["event-loop-late-max-ms"] > 1_000

    asyncio.run(test())
    found = [record for record in caplog.records if "event loop was blocked" in record.message]
    assert [record.levelname for record in found] == [level]
    assert re.search(text, found[0].message)
    assert "asyncio.to_thread" in found[0].message


def test_polls_that_time_out_keep_no_memory(loop: Loop, bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    produce(bootstrap, topic, 0)

    async def test() -> None:
        async with reading(bootstrap, partition) as consumer:

            async def polls(count: int) -> int:
                for _ in range(count):
                    assert not await consumer.poll(0.001)
                gc.collect()
                return len(gc.get_objects())

            await polls(100)
            before = await polls(100)
            assert await polls(1_000) - before < 300

    loop(test)
