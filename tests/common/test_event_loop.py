"""Detection of an event loop that a call would block."""

import asyncio
import sys
from types import SimpleNamespace

import pytest

from kclient.common.errors import EventLoopError, IllegalStateError
from kclient.common.event_loop import (
    is_inside_event_loop,
    refuse_in_event_loop,
    running_event_loop,
)


def test_thread_without_a_loop_may_block() -> None:
    assert not is_inside_event_loop()
    refuse_in_event_loop("poll", "consumer.poll")
    with pytest.raises(IllegalStateError, match="await it: got no running asyncio loop"):
        running_event_loop("await it")


def test_blocking_call_in_a_loop_is_refused() -> None:
    async def call() -> None:
        assert is_inside_event_loop()
        assert running_event_loop("x") is asyncio.get_running_loop()
        with pytest.raises(EventLoopError) as caught:
            refuse_in_event_loop("poll", "consumer.poll, 1.0")
        assert str(caught.value) == (
            "poll: called inside a running event loop, expected a thread of its own; "
            "await asyncio.to_thread(consumer.poll, 1.0)"
        )
        with pytest.raises(EventLoopError, match="await the object itself, or await asyncio"):
            refuse_in_event_loop("result", "future.result", awaitable=True)

    asyncio.run(call())
    assert not is_inside_event_loop()


def test_thread_of_a_loop_may_block() -> None:
    async def call() -> bool:
        return await asyncio.to_thread(is_inside_event_loop)

    assert not asyncio.run(call())


def test_program_without_asyncio_has_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "asyncio.events")
    assert not is_inside_event_loop()


@pytest.mark.parametrize(("shell", "inside"), [("notebook", False), ("terminal", True)])
def test_cells_of_notebooks_may_block(
    monkeypatch: pytest.MonkeyPatch, shell: str, inside: bool
) -> None:
    kernel = {"kernel": object()} if shell == "notebook" else {}
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(**kernel))
    monkeypatch.setitem(sys.modules, "IPython", ipython)

    async def call() -> bool:
        return is_inside_event_loop()

    assert asyncio.run(call()) is inside
