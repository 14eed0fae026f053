"""The clients on an asyncio event loop, without a thread: a second face over the same cores."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kclient import NewTopic
from kclient.admin import topic_calls
from kclient.admin.admin_config import parse_admin_config
from kclient.admin.admin_core import AdminCall, AdminCore
from kclient.common.broker_errors import TopicExistsError
from kclient.common.errors import BootstrapError, ClosedError
from kclient.common.system_condition import SystemCondition
from kclient.network.system_net import SystemPoller
from tests.support.clients.asyncio_driver import LoopDriver, WouldBlockError
from tests.support.processes.broker_process import BrokerProcess

T = TypeVar("T")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(Path(tmp_path_factory.mktemp("broker"))) as broker:
        yield broker.bootstrap


@pytest.fixture
def on_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Awaitable[None]]], None]:
    """Run a test on a loop where a blocking poll, a wait or a new thread is an error."""

    def refuse(*_: object, **__: object) -> None:
        raise WouldBlockError("a thread was started, or a condition of threads was awaited")

    really_poll = SystemPoller.poll

    def poll(self: SystemPoller, timeout_ms: float | None) -> list[tuple[object, int]]:
        if timeout_ms != 0:
            refuse()
        return really_poll(self, timeout_ms)

    monkeypatch.setattr(SystemPoller, "poll", poll)
    monkeypatch.setattr(SystemCondition, "wait", refuse)
    monkeypatch.setattr(threading.Thread, "start", refuse)

    def run(test: Callable[[], Awaitable[None]]) -> None:
        threads = threading.active_count()
        asyncio.run(_whole(test))
        assert threading.active_count() == threads

    return run


async def _whole(test: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(60.0):
        await test()
    assert asyncio.all_tasks() == {asyncio.current_task()}


class AsyncAdmin:
    """Face of an admin client for coroutines."""

    def __init__(self, driver: LoopDriver, bootstrap: str) -> None:
        self._driver = driver
        self.core = AdminCore(parse_admin_config({"bootstrap_servers": bootstrap}), driver.runtime)

    async def call(self, call: AdminCall[T], timeout: float = 20.0) -> T:
        return await self._driver.run(self.core.call(call, timeout * 1000.0))

    async def create_topic(self, name: str, partitions: int) -> None:
        topic = NewTopic(name, partitions, 1)
        await self.call(
            lambda requester, end: topic_calls.create_topics(
                requester, [topic], end, validate_only=False
            )
        )

    async def partition_count(self, name: str) -> int:
        found = await self.call(
            lambda requester, end: topic_calls.describe_topics(requester, [name], end)
        )
        return len(found[name].partitions)

    async def topics(self) -> set[str]:
        found = await self.call(
            lambda requester, end: topic_calls.list_topics(requester, end, include_internal=False)
        )
        return {each.name for each in found}


def test_admin_calls_run_on_an_event_loop(
    bootstrap: str, on_loop: Callable[[Callable[[], Awaitable[None]]], None]
) -> None:
    async def test() -> None:
        driver = LoopDriver()
        admin = AsyncAdmin(driver, bootstrap)
        await admin.create_topic("admin", 3)
        assert await admin.partition_count("admin") == 3
        with pytest.raises(TopicExistsError):
            await admin.create_topic("admin", 3)
        admin.core.close()
        with pytest.raises(ClosedError):
            await admin.topics()

    on_loop(test)


def test_concurrent_admin_calls_run_in_turn(
    bootstrap: str, on_loop: Callable[[Callable[[], Awaitable[None]]], None]
) -> None:
    async def test() -> None:
        admin = AsyncAdmin(LoopDriver(), bootstrap)
        names = {f"turn-{number}" for number in range(5)}
        await asyncio.gather(*(admin.create_topic(name, 1) for name in names))
        assert await admin.topics() >= names
        admin.core.close()

    on_loop(test)


def test_names_are_looked_up_by_a_coroutine(
    bootstrap: str, on_loop: Callable[[Callable[[], Awaitable[None]]], None]
) -> None:
    ip, _, port = bootstrap.rpartition(":")
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        await asyncio.sleep(0.01)
        if host != "broker.example":
            raise OSError("no such name")
        return [ip]

    async def test() -> None:
        driver = LoopDriver(resolve)
        admin = AsyncAdmin(driver, f"broker.example:{port}")
        await admin.topics()
        admin.core.close()
        unknown = AsyncAdmin(driver, f"unknown.example:{port}")
        with pytest.raises(BootstrapError, match="no such name"):
            await unknown.call(
                lambda requester, end: topic_calls.list_topics(
                    requester, end, include_internal=False
                ),
                timeout=0.3,
            )
        unknown.core.close()
        assert asked[0] == "broker.example"
        assert set(asked) == {"broker.example", "unknown.example"}

    on_loop(test)


def test_cancelled_call_leaves_the_client_usable(
    bootstrap: str, on_loop: Callable[[Callable[[], Awaitable[None]]], None]
) -> None:
    async def test() -> None:
        driver = LoopDriver()
        admin = AsyncAdmin(driver, bootstrap)
        call = asyncio.ensure_future(admin.create_topic("cancelled", 1))
        while not driver.polls:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await admin.create_topic("after-cancelled", 1)
        assert "after-cancelled" in await admin.topics()
        admin.core.close()

    on_loop(test)


def test_loop_stays_responsive_while_a_call_waits(
    on_loop: Callable[[Callable[[], Awaitable[None]]], None],
) -> None:
    """A call to a port without a broker waits for its timeout, and others run meanwhile."""

    async def test() -> None:
        driver = LoopDriver()
        admin = AsyncAdmin(driver, "127.0.0.1:1")
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.001)

        counting = asyncio.ensure_future(count())
        with pytest.raises(BootstrapError):
            await admin.call(
                lambda requester, end: topic_calls.list_topics(
                    requester, end, include_internal=False
                ),
                timeout=0.3,
            )
        counting.cancel()
        await asyncio.wait([counting])
        # Neither blocked nor spinning: polls are few, turns of the other task many.
        assert turns > driver.polls
        admin.core.close()

    on_loop(test)
