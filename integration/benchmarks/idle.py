"""Cost of many idle consumers in one event loop.

Run by hand: ``make bench-idle BENCH_ARGS="--consumers 1000 --client kclient"``. A companion broker
in a process of its own has one empty topic. Each consumer is the only member of its group, or with
``--one-group`` all are members of one group, and a task for each waits in ``poll(5)`` again and
again. When all have their partitions, the CPU time of the process with the consumers, the growth of
its memory and of its descriptors and the polls of the network are taken over some seconds.
"""

import argparse
import asyncio
import gc
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kclient import AdminClient, NewTopic
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import cpu_seconds, open_descriptors, resident_bytes

_TOPIC = "idle"
_POLL_S = 5.0
_AT_ONCE = 20
_JOIN_LIMIT_S = 240.0
_CLIENTS = ("kclient", "aiokafka")
_LOOPS = ("asyncio", "uvloop")


class Idle(NamedTuple):
    """An idle consumer.

    Attributes:
        assigned: whether it is a member of its group and has its partitions.
        poll: waits for records.
        close: closes it.
    """

    assigned: Callable[[], bool]
    poll: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[None]]


async def kclient_consumer(bootstrap: str, group: str) -> Idle:
    from kclient.aio import Consumer  # noqa: PLC0415 - the other client does not pay for it

    joined: list[object] = []
    consumer: Any = Consumer(bootstrap_servers=bootstrap, group_id=group)
    consumer.subscribe(_TOPIC, on_assigned=joined.append)
    return Idle(lambda: bool(joined), lambda: consumer.poll(_POLL_S), consumer.close)


async def aiokafka_consumer(bootstrap: str, group: str) -> Idle:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # noqa: PLC0415

    joined: list[object] = []

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: object) -> None: ...

        def on_partitions_assigned(self, assigned: object) -> None:
            joined.append(assigned)

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    consumer.subscribe([_TOPIC], listener=Listener())
    await consumer.start()
    return Idle(
        lambda: bool(joined), lambda: consumer.getmany(timeout_ms=_POLL_S * 1000), consumer.stop
    )


class Sample(NamedTuple):
    """Figures of this process, and the CPU time of the broker, at one time."""

    seconds: float
    cpu_seconds: float
    broker_cpu_seconds: float
    resident_bytes: int
    descriptors: int
    polls: int


class Polls:
    """Count of the polls of kclient's connections."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> None:
        """Count from now on."""
        from kclient.network.selector import Selector  # noqa: PLC0415 - only where it is measured

        poll = Selector.poll

        def counted(selector: Selector, timeout_ms: float, now_ms: float) -> float:
            self.count += 1
            return poll(selector, timeout_ms, now_ms)

        Selector.poll = counted  # type: ignore[method-assign, assignment]


def sample(broker: int, polls: Polls) -> Sample:
    gc.collect()
    pid = os.getpid()
    return Sample(
        time.monotonic(),
        cpu_seconds(pid),
        cpu_seconds(broker),
        resident_bytes(pid),
        open_descriptors(pid),
        polls.count,
    )


async def measure(chosen: argparse.Namespace, broker: BrokerProcess, polls: Polls) -> list[Sample]:
    """Return the figures before there are consumers, when all have joined, and at the end."""
    create = kclient_consumer if chosen.client == "kclient" else aiokafka_consumer
    warm = await create(broker.bootstrap, "warm-up")
    await warm.poll()
    await warm.close()
    samples = [sample(broker.pid, polls)]
    groups = ["all" if chosen.one_group else f"group-{each}" for each in range(chosen.consumers)]
    consumers: list[Idle] = []
    tasks: list[asyncio.Task[None]] = []
    for number, group in enumerate(groups, 1):
        consumers.append(await create(broker.bootstrap, group))
        tasks.append(asyncio.create_task(_poll_for_long(consumers[-1])))
        if number % _AT_ONCE == 0 and not chosen.one_group:
            await _until_assigned(consumers)
    await _until_assigned(consumers)
    await asyncio.sleep(_POLL_S)
    for _ in range(2):
        samples.append(sample(broker.pid, polls))
        await asyncio.sleep(chosen.seconds)
    samples[-1] = sample(broker.pid, polls)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for consumer in consumers:
        await consumer.close()
    return samples


async def _poll_for_long(consumer: Idle) -> None:
    while True:
        await consumer.poll()


async def _until_assigned(consumers: Sequence[Idle]) -> None:
    async with asyncio.timeout(_JOIN_LIMIT_S):
        while not all(each.assigned() for each in consumers):
            await asyncio.sleep(0.05)


def report(chosen: argparse.Namespace, samples: Sequence[Sample]) -> str:
    """Return the figures of one consumer."""
    before, first, last = samples
    seconds, count = last.seconds - first.seconds, chosen.consumers
    figures = [
        f"{(last.cpu_seconds - first.cpu_seconds) / seconds:.1%} of a core",
        f"{(first.resident_bytes - before.resident_bytes) / count / 1024:.0f} KiB",
        f"{(first.descriptors - before.descriptors) / count:.1f} descriptors",
    ]
    if last.polls:
        figures.append(f"{(last.polls - first.polls) / seconds / count:.1f} polls/s")
    broker_cpu = last.broker_cpu_seconds - first.broker_cpu_seconds
    kind = "of one group" if chosen.one_group else "each in its group"
    return (
        f"{count} consumers of {chosen.client} on {chosen.loop}, {kind}: {', '.join(figures)}; "
        f"broker {broker_cpu / seconds:.0%} of a core"
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.idle",
        description="Measures many idle consumers in one event loop.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--consumers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--client", choices=_CLIENTS, default=_CLIENTS[0])
    parser.add_argument("--loop", choices=_LOOPS, default=_LOOPS[0])
    parser.add_argument("--one-group", action="store_true", help="all are members of one group")
    chosen = parser.parse_args(given)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the broker inherits it
    factory: Any = None
    if chosen.loop == "uvloop":
        import uvloop  # noqa: PLC0415 - only where it is measured

        factory = uvloop.new_event_loop
    polls = Polls()
    if chosen.client == "kclient":
        polls.begin()
    with (
        tempfile.TemporaryDirectory(prefix="kclient-idle-") as directory,
        BrokerProcess(Path(directory)) as broker,
        asyncio.Runner(loop_factory=factory) as runner,
    ):
        with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics(NewTopic(_TOPIC, chosen.consumers if chosen.one_group else 1, 1))
        samples = runner.run(measure(chosen, broker, polls))
        print(report(chosen, samples), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
