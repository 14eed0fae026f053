"""The example of a worker, in a process of its own and in the event loops of the tests."""

import asyncio
import os
import sys
from pathlib import Path

from examples.order_worker import CONCURRENCY, work
from kclient import AdminClient, ConsumerRecord, OffsetAndMetadata, TopicPartition
from kclient.aio import Consumer
from tests.aio.conftest import Loop, produce
from tests.support.processes.child_process import ROOT, ChildProcess


def test_sigterm_ends_the_worker_after_its_batch(bootstrap: str, tmp_path: Path) -> None:
    """What it has processed is committed, and nothing else; it has left the group."""
    produce(bootstrap, "jobs", 5_000)
    command = [sys.executable, "-W", "error", "examples/order_worker.py", bootstrap]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with ChildProcess(command, tmp_path, name="worker", environment=environment) as worker:
        worker.wait_for("processed")
        worker.terminate()
        lines = worker.finish().splitlines()
        assert worker.stderr == ""
    assert lines.pop() == "stopped"
    assert 0 < len(lines) < 5_000
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets("workers")
        assert offsets[TopicPartition("jobs", 0)].offset == len(lines) == len(set(lines))
        (group,) = admin.describe_consumer_groups(["workers"]).values()
        assert group.members == ()


def test_worker_processes_a_bounded_number_of_records_at_a_time(
    loop: Loop, bootstrap: str, partition: TopicPartition
) -> None:
    values = produce(bootstrap, partition.topic, 10 * CONCURRENCY)

    async def test() -> None:
        stop, running, most = asyncio.Event(), 0, 0
        found: list[bytes | None] = []

        async def process(record: ConsumerRecord[bytes | None, bytes | None]) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            found.append(record.value)
            if len(found) == len(values):
                stop.set()

        async with Consumer(
            bootstrap_servers=bootstrap,
            group_id=partition.topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            consumer.subscribe(partition.topic)
            await work(consumer, process, stop)
            committed = await consumer.committed([partition])
        assert sorted(found, key=bytes) == sorted(values)  # type: ignore[arg-type]
        assert most == CONCURRENCY
        assert committed == {partition: OffsetAndMetadata(len(values), leader_epoch=0)}

    loop(test)
