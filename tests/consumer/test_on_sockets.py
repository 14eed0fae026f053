"""Consumer over real sockets and threads, against the companion broker."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from kclient import Consumer, NewTopic, Producer, TopicPartition
from kclient.admin.admin_client import AdminClient
from kclient.common.broker_errors import FencedInstanceIdError
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    ForkedClientError,
    KafkaTimeoutError,
    WakeupError,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.thread_stress import switching_all_the_time
from tests.support.checks.waiting import wait_until

COUNT = 3000
MANY = 5000


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"group.min.session.timeout.ms": 500}) as running:
        with AdminClient(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 4, 1)]).raise_for_errors()
        with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
            for number in range(COUNT):
                producer.send("orders", b"%d" % number, partition=number % 4)
        yield running


def make(cluster: EmbeddedCluster, **options: object) -> Consumer:
    servers = cluster.bootstrap_servers
    return Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest"} | options)


def everything(cluster: EmbeddedCluster, **options: object) -> Consumer:
    consumer = make(cluster, **options)
    consumer.assign([TopicPartition("orders", number) for number in range(4)])
    return consumer


def heartbeat_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "heartbeat" in thread.name]


def test_each_record_is_read_once(cluster: EmbeddedCluster) -> None:
    expected = sorted(range(COUNT))
    with everything(cluster, max_partition_fetch_bytes=4000) as consumer:
        polled: list[int] = []
        while len(polled) < COUNT:
            polled += [int(record.value) for record in consumer.poll(1.0)]
        assert sorted(polled) == expected
        consumer.seek_to_beginning()
        assert sorted(int(next(consumer).value) for _ in range(COUNT)) == expected
        consumer.seek_to_beginning()
        columns: list[int] = []
        while len(columns) < COUNT:
            values = consumer.poll_columns(1.0)["value"].to_pylist()
            columns += [int(value) for value in values if isinstance(value, bytes)]
        assert sorted(columns) == expected
    assert heartbeat_threads() == []


def test_remaining_member_takes_over_partitions(cluster: EmbeddedCluster) -> None:
    seen: list[int] = []
    first = make(cluster, group_id="pair", heartbeat_interval_ms=100, session_timeout_ms=6000)
    second = make(cluster, group_id="pair", heartbeat_interval_ms=100, session_timeout_ms=6000)
    with first, second:
        first.subscribe("orders")
        second.subscribe("orders")
        ends = time.monotonic() + 30
        while len(first.assignment()) != 2 or len(second.assignment()) != 2 or len(seen) < COUNT:
            assert time.monotonic() < ends
            for consumer in (first, second):
                seen += [int(record.value) for record in consumer.poll(0.05)]
                consumer.commit()
        assert len(heartbeat_threads()) == 2
        second.close()
        while len(first.assignment()) != 4:
            assert time.monotonic() < ends
            seen += [int(record.value) for record in first.poll(0.05)]
    assert sorted(set(seen)) == list(range(COUNT))
    assert heartbeat_threads() == []


@pytest.mark.fault("R23")
def test_busy_application_stays_in_the_group(cluster: EmbeddedCluster) -> None:
    lost: list[object] = []
    with make(
        cluster, group_id="busy", heartbeat_interval_ms=100, session_timeout_ms=1000
    ) as consumer:
        consumer.subscribe("orders", on_lost=lost.append, on_revoked=lost.append)
        while not consumer.poll(0.5):
            pass
        generation = consumer.group_metadata().generation_id
        threading.Event().wait(2.5)  # the application works
        consumer.commit()
        assert consumer.group_metadata().generation_id == generation
        assert lost == []


def poll_for(consumer: Consumer, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        consumer.poll(0.05)


@pytest.mark.fault("R15")
def test_fenced_static_member_does_not_rejoin(
    cluster: EmbeddedCluster,
) -> None:
    options = {"group_id": "fenced", "group_instance_id": "one", "heartbeat_interval_ms": 50}
    with make(cluster, **options) as first, make(cluster, **options) as second:
        first.subscribe("orders")
        while not first.assignment():
            first.poll(0.05)
        second.subscribe("orders")
        while not second.assignment():
            second.poll(0.05)
        generation = second.group_metadata().generation_id
        for _ in range(3):  # the application may ignore the error
            with pytest.raises(FencedInstanceIdError, match="'one'"):
                poll_for(first, 10.0)
        second.commit()
        for _ in range(5):
            second.poll(0.05)
        assert second.group_metadata().generation_id == generation
        assert len(second.assignment()) == 4


@pytest.mark.fault("R21")
def test_wakeup_from_another_thread(cluster: EmbeddedCluster) -> None:
    with make(cluster) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_end()
        consumer.poll(0.1)
        timer = threading.Timer(0.3, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(600.0)
        timer.join()


@pytest.mark.fault("R21")
def test_close_from_another_thread_ends_the_poll(cluster: EmbeddedCluster) -> None:
    consumer = make(cluster, **{"group.id": "closed-elsewhere", "auto.offset.reset": "latest"})
    consumer.subscribe("orders")
    while not consumer.assignment():
        consumer.poll(0.1)
    raised: list[BaseException] = []

    def poll() -> None:
        try:
            consumer.poll(600.0)
        except WakeupError as error:
            raised.append(error)
        with pytest.raises(ClosedError):
            consumer.poll(600.0)

    thread = threading.Thread(target=poll)
    thread.start()
    wait_until(consumer._lock.is_held_elsewhere, "the poll has begun", every=0.001)
    started = time.monotonic()
    consumer.close()
    consumer.close()
    thread.join()
    assert time.monotonic() - started < 5.0
    assert len(raised) == 1
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        (group,) = admin.describe_consumer_groups(["closed-elsewhere"]).values()
    assert group.members == ()


def test_two_threads_may_close(cluster: EmbeddedCluster) -> None:
    consumer = make(cluster, **{"group.id": "closed-twice"})
    consumer.subscribe("orders")
    while not consumer.assignment():
        consumer.poll(0.1)
    threads = [threading.Thread(target=consumer.close) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(ClosedError):
        consumer.poll(0)


@pytest.mark.fault("W22")
def test_cancelled_poll_in_an_event_loop_loses_no_record(cluster: EmbeddedCluster) -> None:
    """Each cancelled call gets a record about when the next call begins."""
    name = "cancelled"
    handled: list[int] = []

    async def main() -> int:
        with make(cluster, **{"group.id": name, "enable.auto.commit": False}) as consumer:
            consumer.assign([TopicPartition(name, 0)])

            async def work() -> None:
                while True:
                    with suppress(ConcurrentAccessError):  # the cancelled call has not ended yet
                        records = await asyncio.to_thread(consumer.poll, 0.5)
                        handled.extend(int(record.value) for record in records)
                        await asyncio.to_thread(consumer.commit)

            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    task = group.create_task(work())
                    await asyncio.sleep(0.02)
                    task.cancel()
                    await producer.send(name, b"%d" % number)
            await asyncio.sleep(0.6)
            await asyncio.to_thread(consumer.commit)
            found = await asyncio.to_thread(consumer.committed, [TopicPartition(name, 0)])
            offset = found[TopicPartition(name, 0)]
            return 0 if offset is None else offset.offset

    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer.partitions_for(name)
        committed = asyncio.run(main())
    assert set(range(committed)) <= set(handled)


@pytest.mark.fault("R21")
def test_call_from_another_thread_is_rejected(cluster: EmbeddedCluster) -> None:
    with make(cluster) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_end()
        consumer.poll(0.1)
        caught: list[BaseException] = []

        def intrude() -> None:
            try:
                consumer.seek(TopicPartition("orders", 0), 0)
            except ConcurrentAccessError as error:
                caught.append(error)
            consumer.wakeup()

        timer = threading.Timer(0.3, intrude)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(20.0)
        timer.join()
        assert len(caught) == 1


@pytest.mark.fault("R21")
def test_ctrl_c_ends_poll_without_losing_records(cluster: EmbeddedCluster) -> None:
    with everything(cluster) as consumer:
        seen = [int(record.value) for record in consumer.poll(5.0)]
        for delay in (0.05, 0.1, 0.2):
            consumer.seek_to_end()
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(20.0)
            timer.join()
        consumer.seek_to_beginning()
        seen = []
        while len(seen) < COUNT:
            seen += [int(record.value) for record in consumer.poll(1.0)]
        assert sorted(seen) == list(range(COUNT))


def test_forked_child_is_rejected(cluster: EmbeddedCluster) -> None:
    with everything(cluster) as consumer:
        consumer.poll(1.0)
        child = os.fork()
        if child == 0:
            try:
                consumer.poll(0.0)
            except ForkedClientError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert len(consumer.poll(5.0)) > 0


def test_unreachable_brokers_are_reported_within_timeout() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert not consumer.poll(0.3)
        with pytest.raises(KafkaTimeoutError, match=r"127\.0\.0\.1:1.*refused"):
            consumer.commit({TopicPartition("orders", 0): 1}, timeout=0.5)
        consumer.close(timeout=0.5)


def _by_iteration(consumer: Consumer) -> list[int]:
    return [int(next(consumer).value)]


def _by_poll(consumer: Consumer) -> list[int]:
    return [int(record.value) for record in consumer.poll(1.0, max_records=10)]


def _by_columns(consumer: Consumer) -> list[int]:
    values = consumer.poll_columns(1.0, max_records=40).column("value")
    return [int(value) for value in values.to_pylist() if value is not None]


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("read", [_by_iteration, _by_poll, _by_columns])
def test_records_of_concurrent_polls_go_to_one_thread(
    cluster: EmbeddedCluster,
    read: Callable[[Consumer], list[int]],
    in_loop: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Calls that an event loop may await wait shortly for each other before they are refused.
    monkeypatch.setattr("kclient.consumer.consumer_lock.may_be_awaited", lambda: in_loop)
    topic = f"shared-{read.__name__}-{in_loop}"
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        values = [b"%d" % number for number in range(MANY)]
        producer.send_many(topic, values).result(30)
    refused: list[ConcurrentAccessError] = []
    with make(cluster, max_poll_records=MANY) as consumer, switching_all_the_time():
        consumer.assign([TopicPartition(topic, 0)])
        for rounds in range(50):
            if rounds >= 3 and (refused or in_loop):
                break
            consumer.seek_to_beginning()
            got = read(consumer)
            refused += _read_in_two_threads(consumer, read, got)
            while len(got) < MANY:
                got += read(consumer)
            assert sorted(got) == list(range(MANY))
    assert refused or in_loop


def _read_in_two_threads(
    consumer: Consumer, read: Callable[[Consumer], list[int]], got: list[int]
) -> list[ConcurrentAccessError]:
    start = threading.Barrier(2)
    refused: list[ConcurrentAccessError] = []

    def run() -> None:
        start.wait(60.0)
        try:
            while not refused and len(got) < MANY - 100:
                got.extend(read(consumer))
        except ConcurrentAccessError as error:
            refused.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    return refused
