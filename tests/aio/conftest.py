"""A broker, and the event loops that the tests of the asyncio clients run in."""

import asyncio
import importlib
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.broker_process import BrokerProcess

_LIMIT_S = 60.0
_names = itertools.count()

Test = Callable[[], Awaitable[None]]
Loop = Callable[[Test], None]


@pytest.fixture(scope="package")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = Path(tmp_path_factory.mktemp("broker"))
    with BrokerProcess(directory, "group.min.session.timeout.ms=500") as broker:
        yield broker.bootstrap


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_names)}"


async def _limited(test: Test) -> None:
    async with asyncio.timeout(_LIMIT_S):
        await test()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture(params=["asyncio", "debug", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Loop:
    """Run a test in an event loop; fail if a task is left at its end."""

    def run(test: Test) -> None:
        factory: Any = None
        if request.param == "uvloop":
            factory = importlib.import_module("uvloop").new_event_loop
        with asyncio.Runner(debug=request.param == "debug", loop_factory=factory) as runner:
            runner.run(_limited(test))

    return run
