"""A broker, and the event loops that the tests of the asyncio clients run in."""

import asyncio
import importlib
import itertools
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from kclient import AdminClient, NewTopic, Producer, TopicPartition
from kclient.common.system_tasks import SystemCondition
from kclient.network.system_net import SystemPoller
from tests.support.processes.broker_process import BrokerProcess

_LIMIT_S = 60.0
_names = itertools.count()

Test = Callable[[], Awaitable[None]]
Loop = Callable[[Test], None]

_FACTORIES: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "debug": asyncio.new_event_loop,
    "uvloop": lambda: importlib.import_module("uvloop").new_event_loop(),
}
if sys.version_info >= (3, 12):

    def _eager() -> asyncio.AbstractEventLoop:
        """Return an event loop whose tasks run to their first suspension when they are created."""
        loop = asyncio.new_event_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    _FACTORIES["eager"] = _eager


@pytest.fixture(scope="package")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = Path(tmp_path_factory.mktemp("broker"))
    with BrokerProcess(directory, "group.min.session.timeout.ms=500") as broker:
        yield broker.bootstrap


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_names)}"


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


async def _limited(test: Test) -> None:
    async with asyncio.timeout(_LIMIT_S):
        await test()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture(params=_FACTORIES)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """Run a test in an event loop where nothing may block; fail if a task is left at its end."""

    really_poll, really_wait, really_start = (
        SystemPoller.poll,
        SystemCondition.wait,
        threading.Thread.start,
    )

    def refuse_in_loop() -> None:
        if threading.current_thread() is threading.main_thread():
            raise AssertionError("a thread was started, or a poll or a condition waited")

    def poll(self: SystemPoller, timeout_ms: float | None) -> list[tuple[object, int]]:
        if timeout_ms != 0:
            refuse_in_loop()
        return really_poll(self, timeout_ms)

    def wait(self: SystemCondition, timeout: float | None = None) -> bool:
        refuse_in_loop()
        return really_wait(self, timeout)

    def start(self: threading.Thread) -> None:
        refuse_in_loop()
        really_start(self)

    def run(test: Test) -> None:
        monkeypatch.setattr(SystemPoller, "poll", poll)
        monkeypatch.setattr(SystemCondition, "wait", wait)
        monkeypatch.setattr(threading.Thread, "start", start)
        factory = _FACTORIES[request.param]
        with asyncio.Runner(debug=request.param == "debug", loop_factory=factory) as runner:
            runner.run(_limited(test))
        monkeypatch.undo()

    return run
