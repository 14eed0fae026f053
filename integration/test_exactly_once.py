"""Copies of 100,000 records by three processes that are killed, suspended and cut off."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition, aio
from kclient.admin import TransactionState
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until

RECORDS = 100_000
PARTITIONS = 6
COPIERS = 3
TIMEOUT_S = 150.0
PROPERTIES = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.min.session.timeout.ms": "1000",
}
_numbers = itertools.count(1)


class Cluster(NamedTuple):
    """Three brokers.

    Attributes:
        bootstrap: Their addresses.
        bounce: Kills a broker and starts it again.
    """

    bootstrap: str
    bounce: Callable[[], object]


class Fleet:
    """The processes of a copy."""

    def __init__(self, bootstrap: str, source: str, target: str, mode: str, log: Path) -> None:
        self._arguments = (bootstrap, source, target)
        self._mode = mode
        self._log = log
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._admin = AdminClient(bootstrap_servers=bootstrap)

    def _name(self, number: int) -> str:
        return f"{self._arguments[2]}-{number}"

    def start(self, number: int, dies_at: int = 0) -> None:
        """Start a copier, under the same transactional id whenever it is started."""
        with self._log.open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [
                    sys.executable, "-m", "integration.exactly_once.copier", *self._arguments,
                    self._name(number), self._mode, str(dies_at),
                ],
                stdout=log,
                stderr=log,
            )  # fmt: skip

    def await_death(self, number: int) -> None:
        self._processes[number].wait(TIMEOUT_S)

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait(TIMEOUT_S)

    def suspend_in_transaction(self, number: int) -> None:
        """Suspend a copier while its transaction is open, until the coordinator has aborted it."""
        process = self._processes[number]

        def is_suspended() -> bool:
            process.send_signal(signal.SIGSTOP)
            if self.state(number) is TransactionState.ONGOING:
                return True
            self.resume(number)
            return False

        wait_until(is_suspended, "it is suspended in a transaction", TIMEOUT_S)
        wait_until(
            lambda: self.state(number) is TransactionState.COMPLETE_ABORT,
            "the coordinator has aborted the transaction",
            TIMEOUT_S,
        )

    def state(self, number: int) -> TransactionState:
        name = self._name(number)
        return self._admin.describe_transactions([name])[name].state

    def resume(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGCONT)

    def end(self) -> None:
        for number, process in self._processes.items():
            self.resume(number)
            process.kill()
            process.wait(TIMEOUT_S)
        self._admin.close()


class Copy:
    """What readers of the target see."""

    def __init__(self, bootstrap: str, target: str, isolation: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "isolation.level": isolation})
        self._consumer.assign([TopicPartition(target, each) for each in range(PARTITIONS)])
        self._consumer.seek_to_beginning()
        self.values: dict[int, list[int]] = {each: [] for each in range(PARTITIONS)}

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))

    def read(self) -> int:
        """Read on; return the number of different records so far."""
        for each in self._consumer.poll(0.2, max_records=20_000):
            assert each.value is not None
            self.values[each.partition].append(int(each.value))
        return sum(len(set(values)) for values in self.values.values())

    def read_to_the_end(self) -> None:
        ends = self._consumer.end_offsets(list(self._consumer.assignment()))
        wait_until(
            lambda: (
                self.read() >= 0
                and all(self._consumer.position(each) >= end for each, end in ends.items())
            ),
            "the copy is read to its end",
            TIMEOUT_S,
        )

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def copying(
    cluster: Cluster, mode: str, directory: Path
) -> Iterator[tuple[Fleet, Copy, Callable[[float], None]]]:
    bootstrap = cluster.bootstrap
    source, target = f"source-{next(_numbers)}", f"copy-{next(_numbers)}"
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            [NewTopic(each, PARTITIONS, 3, configs={"min.insync.replicas": "2"})
             for each in (source, target)]
        )  # fmt: skip
    with Producer(bootstrap_servers=bootstrap) as producer:
        for partition in range(PARTITIONS):
            values = [b"%d" % each for each in range(partition, RECORDS, PARTITIONS)]
            producer.send_many(source, values, partition=partition).result(TIMEOUT_S)
    log = directory / "copiers.log"
    fleet = Fleet(bootstrap, source, target, mode, log)
    copy = Copy(bootstrap, target, "read_committed")

    def progress(share: float) -> None:
        wait_until(lambda: copy.read() >= share * RECORDS, f"{share} is copied", TIMEOUT_S)

    try:
        yield fleet, copy, progress
    except BaseException as error:
        error.add_note(log.read_text()[-8_000:])
        raise
    finally:
        fleet.end()
        copy.close()


def kill_and_start(embedded: EmbeddedCluster) -> None:
    embedded.kill(1)
    embedded.start(1)


@pytest.fixture(scope="module", params=["companion", "4.3.1", "3.9.2"])
def cluster(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    if request.param == "companion":
        with EmbeddedCluster(3, config=PROPERTIES) as embedded:
            yield Cluster(embedded.bootstrap_servers, partial(kill_and_start, embedded))
        return
    directory = tmp_path_factory.mktemp(f"exactly-once-{request.param}-")
    options = ClusterOptions(nodes=3, heap_mb=512, properties=PROPERTIES)
    with KafkaCluster(runtimes(request.param), directory, options) as started:
        yield Cluster(started.bootstrap(), started.nodes[0].restart)


@pytest.mark.timeout(300)  # 60 to 100 s alone: the suspended instance waits for its transaction
def test_copy_in_transactions_has_each_record_once(cluster: Cluster, tmp_path: Path) -> None:
    with copying(cluster, "exactly-once", tmp_path) as (fleet, copy, progress):
        fleet.start(0, dies_at=20)
        fleet.start(1)
        fleet.start(2)
        fleet.await_death(0)
        fleet.start(0)
        progress(0.2)
        fleet.suspend_in_transaction(1)
        progress(0.3)
        fleet.kill(2)
        fleet.start(2)
        progress(0.4)
        fleet.resume(1)
        cluster.bounce()
        progress(0.5)
        fleet.kill(0)
        fleet.start(0)
        progress(1.0)
        copy.read_to_the_end()
        for partition, values in copy.values.items():
            assert values == list(range(partition, RECORDS, PARTITIONS))


def test_copy_at_least_once_has_duplicates(cluster: Cluster, tmp_path: Path) -> None:
    with copying(cluster, "at-least-once", tmp_path) as (fleet, copy, progress):
        fleet.start(0, dies_at=20)
        fleet.start(1)
        fleet.await_death(0)
        fleet.start(0)
        progress(1.0)
        copy.read_to_the_end()
        assert len(copy) > RECORDS


def test_copy_in_an_event_loop_has_each_record_once(cluster: Cluster) -> None:
    source, target = f"source-{next(_numbers)}", f"copy-{next(_numbers)}"
    values = [b"%d" % each for each in range(300)]
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(source, 1, 3), NewTopic(target, 1, 3)]).raise_for_errors()
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_many(source, values).result(TIMEOUT_S)
    with Consumer(bootstrap_servers=cluster.bootstrap, isolation_level="read_committed") as reader:
        reader.assign([TopicPartition(target, 0)])
        reader.seek_to_beginning()
        asyncio.run(_copy_with_interruptions(cluster.bootstrap, source, target, len(values)))
        found: list[bytes | None] = []
        end = reader.end_offsets(reader.assignment())[TopicPartition(target, 0)]
        while reader.position(TopicPartition(target, 0)) < end:
            found += [each.value for each in reader.poll()]
    assert found == values


async def _copy_with_interruptions(bootstrap: str, source: str, target: str, count: int) -> None:
    """Copy records in one task; the process fails once, and `run` is cancelled once."""
    calls = itertools.count(1)
    copied = 0

    async def copy(records: Any, producer: aio.Producer[Any, Any]) -> None:
        nonlocal copied
        await producer.send_many(target, [each.value for each in records])
        call = next(calls)
        if call == 1:
            running = asyncio.current_task()
            assert running is not None
            running.cancel()
            await asyncio.sleep(TIMEOUT_S)
        if call == 2:
            raise ZeroDivisionError
        copied += len(records)
        if copied == count:
            loop.stop()

    async with aio.Consumer(
        bootstrap_servers=bootstrap,
        group_id=target,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=100,
    ) as consumer:
        consumer.subscribe(source)
        loop = aio.TransactionalLoop(
            consumer,
            lambda: aio.Producer(bootstrap_servers=bootstrap, transactional_id=target),
            copy,
        )
        with pytest.raises(asyncio.CancelledError):
            await loop.run()
        with pytest.raises(ZeroDivisionError):
            await loop.run()
        await loop.run()
