"""Rebalance callbacks of the asyncio consumer that are coroutine functions."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.aio import Consumer
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    KafkaTimeoutError,
)
from tests.aio.conftest import Loop, produce
from tests.support.clients.cancelled_calls import cancel_at_each_suspension

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


def plain_calls(
    consumer: Consumer[Any, Any], partition: TopicPartition
) -> dict[str, Callable[[], object]]:
    """Calls that do not wait, by name."""
    return {
        "subscribe": lambda: consumer.subscribe(partition.topic),
        "assign": lambda: consumer.assign([partition]),
        "pause": lambda: consumer.pause(partition),
        "resume": lambda: consumer.resume(partition),
        "seek": lambda: consumer.seek(partition, 0),
        "seek_to_beginning": lambda: consumer.seek_to_beginning(partition),
        "seek_to_end": lambda: consumer.seek_to_end(partition),
        "commit_async": lambda: consumer.commit_async({partition: 1}),
        "group_metadata": consumer.group_metadata,
    }


def check_refused(calls: dict[str, Callable[[], object]]) -> None:
    """Check that each call is refused by a consumer that is being closed."""
    for call in calls.values():
        with pytest.raises(ClosedError, match="this consumer was closed"):
            call()


def test_calls_of_other_tasks_are_refused_during_close(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    """Those of its callback are not."""
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic).joined(partition.topic)
        calls, ended = plain_calls(member.consumer, partition), asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()
            for name in calls.keys() - {"subscribe", "assign"}:
                calls[name]()

        member.on_event = on_event
        closing = asyncio.create_task(member.consumer.close())
        await until(begun(member.events, "revoked"))
        check_refused(calls)
        ended.set()
        await closing
        check_refused(calls)
        assert member.ended() == ["assigned", "revoked"]

    loop(test)


def test_functions_that_close_calls_may_call_the_consumer(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=bootstrap, group_id=partition.topic, enable_auto_commit=False
        )
        seen: list[str] = []

        def on_revoked(partitions: list[TopicPartition]) -> None:
            for name, call in plain_calls(consumer, partition).items():
                if name not in {"subscribe", "assign"}:
                    call()
                    seen.append(name)

        consumer.subscribe(partition.topic, on_revoked=on_revoked)
        while not consumer.assignment():
            await consumer.poll(0.05)
        await consumer.close()
        assert len(seen) == 7
        with pytest.raises(ClosedError, match="this consumer was closed"):
            consumer.pause(partition)

    loop(test)


def test_calls_are_accepted_again_after_a_close_that_failed(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member, ended = Member(bootstrap, partition.topic), asyncio.Event()

        async def on_event(event: str) -> None:
            await ended.wait()

        member.on_event = on_event
        member.subscribe(partition.topic)
        joining = asyncio.create_task(member.read_until(lambda: "assigned" in member.events))
        await until(begun(member.events, "assigned"))
        closing = asyncio.create_task(member.consumer.close(0.05))
        await asyncio.sleep(0)
        check_refused({"pause": lambda: member.consumer.pause(partition)})
        with pytest.raises(ConcurrentAccessError):
            await closing
        member.consumer.pause(partition)
        ended.set()
        await joining
        await member.consumer.close()

    loop(test)


@pytest.mark.parametrize("timeout", [0.0, 0.2])
def test_timeout_of_close_cancels_its_callback(
    loop: Loop, bootstrap: str, partition: TopicPartition, timeout: float
) -> None:
    """The member leaves the group nevertheless, and the consumer is closed."""
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = await Member(bootstrap, partition.topic, session_timeout_ms=30_000).joined(
            partition.topic
        )
        errors: list[BaseException] = []

        async def on_event(event: str) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                errors.append(error)
                raise

        member.on_event = on_event
        with pytest.raises(
            KafkaTimeoutError, match=r"callback .*_on_revoked: did not end .* was cancelled"
        ):
            await member.consumer.close(timeout)
        assert len(errors) == 1
        with pytest.raises(ClosedError):
            await member.consumer.poll()
        async with asyncio.timeout(15.0):  # shorter than the session
            other = await Member(bootstrap, partition.topic).joined(partition.topic)
            await other.consumer.close()

    loop(test)


def test_unsubscribe_waits_for_the_callback_of_a_poll(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member, ended = Member(bootstrap, partition.topic), asyncio.Event()

        async def on_event(event: str) -> None:
            if event == "assigned":
                await ended.wait()

        member.on_event = on_event
        async with member.consumer as consumer:
            member.subscribe(partition.topic)
            polling = asyncio.create_task(member.read_until(lambda: "assigned" in member.events))
            await until(begun(member.events, "assigned"))
            leaving = asyncio.create_task(consumer.unsubscribe())
            cancelled = asyncio.create_task(consumer.unsubscribe())
            await asyncio.sleep(0.05)
            cancelled.cancel()
            assert member.events == ["begin assigned"]
            ended.set()
            await asyncio.wait([polling, leaving, cancelled])
            assert member.events == ["begin assigned", "assigned", "begin revoked", "revoked"]
            assert consumer.subscription() == set()

    loop(test)


def test_unsubscribe_within_a_callback_does_not_wait_for_it(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition.topic, 1)

    async def test() -> None:
        member = Member(bootstrap, partition.topic)

        async def on_event(event: str) -> None:
            if event == "assigned":
                await asyncio.gather(member.consumer.unsubscribe())

        member.on_event = on_event
        async with member.consumer:
            member.subscribe(partition.topic)
            with pytest.raises(IllegalStateError, match="nothing to read"):
                await member.read_until(lambda: False)
        assert member.events == ["begin assigned", "begin revoked", "revoked", "assigned"]

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
            second = asyncio.create_task(consumer.unsubscribe())
            await asyncio.sleep(0.05)
            assert not second.done()
            ended.set()
            await asyncio.gather(first, second)
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
