"""Tasks of a simulation."""

import importlib.util
import sys

import pytest

from kclient.testing.virtual import (
    ProcessKilledError,
    VirtualProcess,
    VirtualTask,
    VirtualWorld,
)


def test_current_task_is_identified(world: VirtualWorld, process: VirtualProcess) -> None:
    ids = [process.runtime.tasks.caller_id()]

    def ask() -> VirtualTask:
        ids.append(process.runtime.tasks.caller_id())
        assert task.is_current()
        return task

    task = process.spawn("asking", ask)
    assert not task.is_current()
    world.run(until=lambda: task.over)
    assert len(set(ids)) == 2
    assert task.result is task


def test_closing_the_world_frees_resources_of_dead_tasks() -> None:
    class Held:
        pass

    gone: list[str] = []
    with VirtualWorld(1) as world:
        process = world.machine("m").process("p")

        def hold() -> None:
            held = Held()
            try:
                process.sleep(100.0)
            finally:
                gone.append(repr(held))
                with pytest.raises(ProcessKilledError):
                    process.sleep(1.0)

        process.spawn("hold", hold)
        world.run(timeout_ms=500)
        process.kill()
        assert gone == []
    assert len(gone) == 1


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "greenlet", None)
    spec = importlib.util.find_spec("kclient.testing.virtual.virtual_task")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match="pip install greenlet"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
