"""asyncio code in virtual time."""

import asyncio
import contextlib

import pytest

from kclient.aio import Consumer, Producer
from kclient.testing.virtual import (
    SimulationError,
    VirtualBroker,
    VirtualProcess,
    VirtualTask,
    VirtualWorld,
)


def finish(world: VirtualWorld, task: VirtualTask) -> object:
    world.run(until=lambda: task.over, timeout_ms=100_000_000.0)
    return task.result


def test_sleeps_and_timeouts_take_virtual_time(
    world: VirtualWorld, process: VirtualProcess
) -> None:
    events: list[tuple[str, float]] = []
    loop_times: list[float] = []

    async def after(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        events.append((name, seconds))

    async def main() -> str:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            group.create_task(after("late", 3_600.0))
            group.create_task(after("early", 60.0))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(86_400.0):
                await asyncio.Event().wait()
        loop_times.append(loop.time() - began)
        return "done"

    assert finish(world, process.spawn_async("main", main)) == "done"
    assert events == [("early", 60.0), ("late", 3_600.0)]
    assert loop_times == [pytest.approx(90_000.0, abs=1.0)]


def test_loops_of_two_processes_run_alternately(world: VirtualWorld) -> None:
    broker = VirtualBroker(world)
    writer, reader = (world.machine(name).process("p") for name in ("writer", "reader"))
    read: list[bytes | None] = []

    async def write() -> None:
        async with Producer(
            bootstrap_servers=broker.bootstrap_servers, runtime=writer.runtime
        ) as producer:
            for number in range(20):
                await producer.send_and_wait("t", b"%d" % number)
                await asyncio.sleep(1.0)

    async def consume() -> None:
        async with Consumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            runtime=reader.runtime,
        ) as consumer:
            consumer.subscribe("t")
            async for record in consumer:
                read.append(record.value)
                if len(read) == 20:
                    return

    writer.spawn_async("main", write)
    task = reader.spawn_async("main", consume)
    finish(world, task)
    assert read == [b"%d" % number for number in range(20)]
    assert world.clock.now_ms > 19_000.0


def test_killed_process_runs_no_finally_block(world: VirtualWorld, process: VirtualProcess) -> None:
    ended: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(1_000.0)
        finally:
            ended.append("finally")

    process.spawn_async("main", main)
    world.run(timeout_ms=10_000.0)
    process.kill()
    world.run(timeout_ms=2_000_000.0)
    assert ended == []


def test_errors_of_the_coroutine_end_the_run(world: VirtualWorld, process: VirtualProcess) -> None:
    async def main() -> None:
        await asyncio.sleep(1.0)
        raise KeyError("lost")

    task = process.spawn_async("main", main)
    with pytest.raises(KeyError, match="lost"):
        finish(world, task)


def test_threads_are_refused(world: VirtualWorld, process: VirtualProcess) -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    task = process.spawn_async("main", main)
    with pytest.raises(SimulationError, match="threads have no virtual time"):
        finish(world, task)
