"""The asyncio consumer, against a broker in another process."""

import asyncio
import contextvars
import gc
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from kclient import AdminClient, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from kclient.aio import Consumer
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    WakeupError,
)
from tests.aio.conftest import Loop
from tests.support.clients.cancelled_calls import cancel_at_each_suspension
from tests.support.processes.process_stats import open_descriptors

UNREACHABLE = "127.0.0.1:1"


@pytest.fixture
def partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


def produce(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[bytes]:
    """Create a topic with records; return their values."""
    values = [b"%d" % number for number in range(count)]
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(NewTopic(topic, partitions, 1))
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % partitions)
    return values


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


# --- rebalance callbacks that are coroutine functions

in_callbacks: contextvars.ContextVar[str] = contextvars.ContextVar("in_callbacks", default="")


class Member:
    """A member of a group whose callbacks are coroutine functions.

    Attributes:
        consumer: The consumer.
        events: Begin and end of each callback.
        on_event: Awaited within each callback, with its name.
    """

    def __init__(self, bootstrap: str, group_id: str, **options: Any) -> None:
        self.consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=bootstrap,
            group_id=group_id,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=50,
            **{"enable_auto_commit": False, "session_timeout_ms": 500, **options},
        )
        self.events: list[str] = []
        self.on_event: Callable[[str], Awaitable[object]] = self._pause

    def subscribe(self, topic: str | list[str]) -> None:
        self.consumer.subscribe(
            topic,
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
        )

    async def joined(self, topic: str) -> "Member":
        self.subscribe(topic)
        await self.read_until(lambda: "assigned" in self.events)
        return self

    async def read_until(self, done: Callable[[], bool]) -> None:
        while not done():
            await self.consumer.poll(0.05)

    def ended(self) -> list[str]:
        return [event for event in self.events if not event.startswith("begin")]

    async def _pause(self, event: str) -> None:
        await asyncio.sleep(0)

    async def _on_assigned(self, partitions: list[TopicPartition]) -> None:
        await self._run("assigned")

    async def _on_revoked(self, partitions: list[TopicPartition]) -> None:
        await self._run("revoked")

    async def _on_lost(self, partitions: list[TopicPartition]) -> None:
        await self._run("lost")

    async def _run(self, event: str) -> None:
        self.events.append(f"begin {event}")
        await self.on_event(event)
        self.events.append(event)


def begun(events: list[str], event: str) -> Callable[[], bool]:
    return lambda: f"begin {event}" in events


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.001)


def test_coroutine_callbacks_run_in_the_task_of_poll(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """They see its contextvars, and locks that it holds are held by them."""
    produce(bootstrap, partition.topic, 3)

    async def test() -> None:
        lock, seen = asyncio.Lock(), []

        async def on_event(event: str) -> None:
            await asyncio.sleep(0.01)
            seen.append((event, in_callbacks.get(), asyncio.current_task(), lock.locked()))
            in_callbacks.set(event)
            if event == "revoked":
                await member.consumer.commit({partition: 2})
            with pytest.raises(IllegalStateError, match="poll was called from within a callback"):
                await member.consumer.poll()

        in_callbacks.set("caller")
        member = Member(bootstrap, partition.topic)
        member.on_event = on_event
        async with member.consumer as consumer:
            member.subscribe(partition.topic)
            async with lock:
                await member.read_until(lambda: "assigned" in member.events)
                await consumer.unsubscribe()
            committed = await consumer.committed([partition])
            assert committed == {partition: OffsetAndMetadata(2)}
        here = asyncio.current_task()
        assert seen == [("assigned", "caller", here, True), ("revoked", "assigned", here, True)]
        assert member.events == ["begin assigned", "assigned", "begin revoked", "revoked"]

    loop(test)


def test_functions_and_partials_are_callbacks_as_well(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        events: list[str] = []

        async def note(event: str, partitions: list[TopicPartition]) -> None:
            await asyncio.sleep(0)
            events.append(event)

        async with Consumer(bootstrap_servers=bootstrap, group_id=partition.topic) as consumer:
            consumer.subscribe(
                partition.topic,
                on_assigned=lambda _: events.append("function"),
                on_revoked=partial(note, "partial"),
            )
            while not events:
                await consumer.poll(0.1)
            consumer.subscribe(partition.topic, on_revoked=lambda each: note("returned", each))
        assert events == ["function", "returned"]

    loop(test)


@pytest.mark.fault("R16")
def test_member_keeps_its_membership_during_a_slow_callback(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """Heartbeats continue, also between the commits of other tasks."""
    produce(bootstrap, partition.topic, 4)

    async def test() -> None:
        member = Member(bootstrap, partition.topic, max_poll_records=1)
        consumer, ended = member.consumer, asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()

        async def commit_twice() -> None:
            await consumer.commit({partition: 1})
            await asyncio.sleep(0.8)
            await consumer.commit({partition: 2})
            await asyncio.sleep(0.8)
            ended.set()

        member.on_event = on_event
        async with consumer:
            member.subscribe(partition.topic)
            polling = asyncio.create_task(member.read_until(lambda: "assigned" in member.events))
            await until(begun(member.events, "assigned"))
            await commit_twice()
            await polling
            generation = consumer.group_metadata()
            assert generation.generation_id == 1
            await consumer.commit({partition: 3})
            assert consumer.group_metadata() == generation
        assert "lost" not in member.events

    loop(test)


def test_heartbeats_continue_if_a_call_began_before_the_callback(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """The calls of two tasks overlap: the first to begin is the first to end."""
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        consumer = member.consumer
        ended = asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()

        async with consumer:
            member.on_event = on_event
            # Begun before `unsubscribe`, ends while its callback waits.
            committing = asyncio.create_task(consumer.commit({partition: 1}))
            leaving = asyncio.create_task(consumer.unsubscribe())
            await until(begun(member.events, "revoked"))
            await committing
            await asyncio.sleep(1.5)
            await consumer.commit({partition: 1})
            ended.set()
            await leaving

    loop(test)


@pytest.mark.fault("R16")
def test_poll_raises_the_error_of_a_coroutine_callback(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 2)

    async def test() -> None:
        async def fail(event: str) -> None:
            await asyncio.sleep(0)
            raise KeyError(event)

        member = Member(bootstrap, partition.topic)
        member.on_event = fail
        async with member.consumer as consumer:
            member.subscribe(partition.topic)
            with pytest.raises(KeyError, match="assigned"):
                await member.read_until(lambda: False)
            found: list[object] = []
            while len(found) < len(values):
                found += [record.value for record in await consumer.poll()]
            assert found == values
            with pytest.raises(KeyError, match="revoked"):
                await consumer.unsubscribe()
            assert consumer.subscription() == set()
            assert consumer.assignment() == set()

    loop(test)


class CancelledRebalances:
    """Rebalances with coroutine callbacks that are cancelled; members rejoin for one topic of two.

    Attributes:
        members: Members whose rebalance was cancelled or has ended.
    """

    def __init__(self, bootstrap: str, partition: TopicPartition, other: str) -> None:
        self.members: list[Member] = []
        self._bootstrap, self._partition, self._other = bootstrap, partition, other

    async def call(self, number: int) -> None:
        """Run a rebalance."""
        await self.begin(f"{self._partition.topic}-{number}", "")

    async def begin(self, group: str, cancelled: str) -> None:
        """Run a rebalance, and cancel it in the first callback of the given name."""
        member = Member(self._bootstrap, group, session_timeout_ms=10_000)

        async def on_event(event: str) -> None:
            task = asyncio.current_task()
            assert task is not None
            if event == cancelled and member.events.count(f"begin {event}") == 1:
                task.cancel()
            await asyncio.sleep(0)
            if event == "revoked":
                await member.consumer.commit({self._partition: 1})

        member.on_event = on_event
        self.members.append(member)
        member.subscribe([self._partition.topic, self._other])
        await self._rebalance(member)

    async def check(self, number: int, outcome: object) -> None:
        """Continue a rebalance where it was cancelled, and check its callbacks."""
        member = self.members.pop()
        last = member.events[-1] if member.events else ""
        if last.startswith("begin"):  # its callback was cancelled
            await member.read_until(lambda: member.events.count(last) == 2)
        await self._rebalance(member)
        assert member.ended() == ["assigned", "revoked", "assigned"], (number, outcome)
        assert member.consumer.assignment() == {self._partition}
        committed = await member.consumer.committed([self._partition])
        assert committed == {self._partition: OffsetAndMetadata(1)}
        await member.consumer.close()

    async def _rebalance(self, member: Member) -> None:
        await member.read_until(lambda: "assigned" in member.events)
        if len(member.consumer.subscription()) == 2:
            member.subscribe(self._partition.topic)
        await member.read_until(lambda: member.ended().count("assigned") == 2)


@pytest.mark.fault("R11", "R16")
def test_poll_cancelled_in_a_callback_runs_it_again(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    other = f"{partition.topic}-other"
    produce(bootstrap, partition.topic, 1)
    produce(bootstrap, other, 1)
    rebalances = CancelledRebalances(bootstrap, partition, other)

    async def test() -> None:
        assert await cancel_at_each_suspension(rebalances.call, rebalances.check) >= 10
        for event in ("assigned", "revoked"):
            task = asyncio.create_task(rebalances.begin(f"{partition.topic}-{event}", event))
            await asyncio.wait([task])
            assert task.cancelled()
            assert rebalances.members[0].events[-1] == f"begin {event}"
            await rebalances.check(0, None)

    loop(test)


def test_close_waits_for_the_callback_of_a_poll(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """The callback may still commit; if it takes too long the consumer stays open."""
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = Member(bootstrap, partition.topic)
        consumer, ended = member.consumer, asyncio.Event()

        async def on_event(event: str) -> None:
            if event == "assigned":
                await ended.wait()
                await consumer.commit({partition: 1})

        member.on_event = on_event
        member.subscribe(partition.topic)
        polling = asyncio.create_task(member.read_until(lambda: False))
        await until(begun(member.events, "assigned"))
        with pytest.raises(ConcurrentAccessError, match="a rebalance callback did not end in time"):
            await consumer.close(0.05)
        assert await consumer.committed([partition]) == {partition: None}
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0.05)
        with pytest.raises(ClosedError):
            await consumer.committed([partition])
        assert not closing.done()
        ended.set()
        await closing
        with pytest.raises(ClosedError):
            await polling
        assert member.ended() == ["assigned", "revoked"]
        async with Consumer(bootstrap_servers=bootstrap, group_id=partition.topic) as other:
            committed = await other.committed([partition])
            assert committed == {partition: OffsetAndMetadata(1)}

    loop(test)


def test_close_awaits_on_revoked_which_may_commit(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        seen: list[str] = []

        async def on_event(event: str) -> None:
            seen.append(in_callbacks.get())
            await asyncio.sleep(1.0)  # two sessions
            await asyncio.gather(member.consumer.commit({partition: 1}))

        member.on_event = on_event
        in_callbacks.set("closes")
        await member.consumer.close()
        assert member.ended() == ["assigned", "revoked"]
        assert seen == ["closes"]
        async with Consumer(bootstrap_servers=bootstrap, group_id=partition.topic) as other:
            committed = await other.committed([partition])
            assert committed == {partition: OffsetAndMetadata(1)}

    loop(test)


def test_callback_that_closes_its_consumer_is_refused(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = Member(bootstrap, partition.topic)

        async def on_event(event: str) -> None:
            with pytest.raises(IllegalStateError, match="a rebalance callback, which it would"):
                await asyncio.gather(member.consumer.close())
            with pytest.raises(IllegalStateError, match="a rebalance callback, which it would"):
                await member.consumer.close()

        member.on_event = on_event
        member.subscribe(partition.topic)
        await member.read_until(lambda: "assigned" in member.events)
        await member.consumer.close()
        assert member.ended() == ["assigned", "revoked"]

    loop(test)


def test_cancelled_close_runs_the_callback_to_its_end(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        ended = asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()

        member.on_event = on_event
        closing = asyncio.create_task(member.consumer.close())
        await until(begun(member.events, "revoked"))
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        ended.set()
        await member.consumer.close()
        assert member.ended() == ["assigned", "revoked"]

    loop(test)


def test_unsubscribe_of_another_task_reports_no_partition_twice(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        consumer, ended = member.consumer, asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()

        async with consumer:
            member.on_event = on_event
            first = asyncio.create_task(consumer.unsubscribe())
            await until(begun(member.events, "revoked"))
            assert not await consumer.poll(0.05)
            await consumer.unsubscribe()
            ended.set()
            await first
            assert consumer.assignment() == set()
            assert member.events == ["begin assigned", "assigned", "begin revoked", "revoked"]

    loop(test)


def test_empty_subscription_does_not_skip_a_coroutine_callback(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        async with member.consumer as consumer:
            for unsubscribe in (consumer.subscribe, consumer.assign):
                with pytest.raises(IllegalStateError, match=r"use await consumer\.unsubscribe\(\)"):
                    unsubscribe([])
            assert consumer.assignment() == {partition}
            await consumer.unsubscribe()
            consumer.assign([])

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
