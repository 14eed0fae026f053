"""The event loop that a client on asyncio runs in."""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Workload

TASKS = 64


def runner(load: Workload) -> asyncio.Runner:
    """Returns the runner of asyncio's event loop, or of uvloop's if the contender's name has it."""
    if "uvloop" not in load.client.split():
        return asyncio.Runner()
    import uvloop  # noqa: PLC0415 - the cells of the other event loop do not pay for it

    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def measure_latencies(
    send_and_wait: Callable[[bytes], Awaitable[object]],
    values: list[bytes],
    load: Workload,
    meter: Meter,
) -> int:
    """Sends each value when the one before it is acknowledged, or in 64 tasks that do so.

    Returns:
        The number of acknowledged records, with that of the warm-up.
    """
    took: list[float] = []

    async def send_each(some: list[bytes]) -> None:
        for value in some:
            began = perf_counter()
            await send_and_wait(value)
            took.append(perf_counter() - began)

    meter.start(skipped=1)
    if "tasks" in load.client.split():
        async with asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(send_each(values[number::TASKS]))
    else:
        await send_each(values)
    meter.stop()
    meter.note_latencies(took)
    return 1 + len(took)
