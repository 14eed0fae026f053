"""All clients on one asyncio event loop, where nothing may block."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable

import pytest

from kclient import NewTopic
from kclient.common.broker_errors import RebalanceInProgressError
from kclient.common.errors import CommitFailedError
from kclient.common.system_tasks import SystemCondition
from kclient.network.system_net import SystemPoller
from tests.support.clients.asyncio_driver import LoopDriver
from tests.support.clients.step_condition import WouldBlockError
from tests.support.clients.stepped_clients import SteppedAdmin, SteppedConsumer, SteppedProducer

Test = Callable[[LoopDriver], Awaitable[None]]

_LIMIT_S = 60.0


def run_without_threads(test: Test, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test on a loop where a poll that waits, a condition of threads or a thread fails.

    Raises:
        AssertionError: A thread or a task is left.
    """

    def refuse(*_: object, **__: object) -> None:
        raise WouldBlockError("a thread was started, or a poll or a condition of threads waited")

    really_poll = SystemPoller.poll

    def poll(self: SystemPoller, timeout_ms: float | None) -> list[tuple[object, int]]:
        if timeout_ms != 0:
            refuse()
        return really_poll(self, timeout_ms)

    monkeypatch.setattr(SystemPoller, "poll", poll)
    monkeypatch.setattr(SystemCondition, "wait", refuse)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    threads = threading.active_count()
    asyncio.run(_whole(test))
    assert threading.active_count() == threads


async def _whole(test: Test) -> None:
    async with asyncio.timeout(_LIMIT_S):
        await test(LoopDriver())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def check_all_clients(driver: LoopDriver, bootstrap: str, topic: str) -> None:
    """Create a topic, produce, and read it with a group in which a member joins and leaves."""
    admin = SteppedAdmin(driver.runtime, bootstrap_servers=bootstrap)
    await driver.run(admin.create_topics(NewTopic(topic, 4, 1)))
    admin.close()
    producer = SteppedProducer(driver.runtime, bootstrap_servers=bootstrap)
    sent = [b"%d" % number for number in range(200)]
    first = Member(driver, bootstrap, topic)
    await first.has(4)
    await driver.run(producer.send_many(topic, [*sent[:100]]))
    second = Member(driver, bootstrap, topic)
    await second.has(2)
    await first.has(2)
    for number in range(100, 200):
        await driver.run(producer.send(topic, sent[number], partition=number % 4))
    await driver.run(producer.flush(20.0))
    while len({*first.values, *second.values}) < len(sent):
        await asyncio.sleep(0.01)
    await second.stop()
    await first.has(4)
    await first.stop()
    await driver.run(producer.close(20.0))
    assert {*first.values, *second.values} == set(sent)
    assert second.values
    assert first.events[0] == ("assigned", 4)
    assert {("revoked", 4), ("assigned", 2)} <= set(first.events)
    assert ("assigned", 2) in second.events


class Member:
    """Member of a group that reads until it is stopped.

    Attributes:
        values: Values of the records, by partition.
        events: Rebalance callbacks, with the number of partitions.
        consumer: The consumer.
    """

    def __init__(self, driver: LoopDriver, bootstrap: str, topic: str) -> None:
        self.values: list[bytes] = []
        self.events: list[tuple[str, int]] = []
        self.consumer = SteppedConsumer(
            driver.runtime,
            bootstrap_servers=bootstrap,
            group_id=f"group of {topic}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        self.consumer.subscribe(
            [topic],
            on_assigned=lambda gained: self.events.append(("assigned", len(gained))),
            on_revoked=lambda lost: self.events.append(("revoked", len(lost))),
        )
        self._driver = driver
        self._is_stopping = False
        self._reading = asyncio.ensure_future(self._read())

    async def stop(self) -> None:
        """Leave the group and close."""
        self._is_stopping = True
        await self._reading
        await self._driver.run(self.consumer.close())

    async def has(self, *partitions: int) -> None:
        """Wait until the member owns one of these numbers of partitions."""
        while len(self.consumer.assignment()) not in partitions:
            await asyncio.sleep(0.01)

    async def _read(self) -> None:
        while not self._is_stopping:
            for record in await self._driver.run(self.consumer.poll(0.2)):
                self.values.append(bytes(record.value or b""))
            if self.consumer.assignment():
                with contextlib.suppress(RebalanceInProgressError, CommitFailedError):
                    await self._driver.run(self.consumer.commit())
