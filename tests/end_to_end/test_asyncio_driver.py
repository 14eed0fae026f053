"""The clients on an asyncio event loop, without a thread: a second face over the same cores."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kclient import NewTopic, OffsetAndMetadata, TopicPartition
from kclient.common.broker_errors import (
    TopicExistsError,
)
from kclient.common.errors import BootstrapError, ClosedError
from tests.support.clients.asyncio_clients import Test, check_all_clients, run_without_threads
from tests.support.clients.asyncio_driver import LoopDriver
from tests.support.clients.stepped_clients import SteppedAdmin, SteppedConsumer, SteppedProducer
from tests.support.processes.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = Path(tmp_path_factory.mktemp("broker"))
    with BrokerProcess(directory, "group.min.session.timeout.ms=500") as broker:
        yield broker.bootstrap


@pytest.fixture
def on_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[[Test], None]:
    return lambda test: run_without_threads(test, monkeypatch)


def admin_of(driver: LoopDriver, bootstrap: str) -> SteppedAdmin:
    return SteppedAdmin(driver.runtime, bootstrap_servers=bootstrap)


# --- admin client


def test_admin_calls_run_on_an_event_loop(bootstrap: str, on_loop: Callable[[Test], None]) -> None:
    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, bootstrap)
        await driver.run(admin.create_topics(NewTopic("admin", 3, 1)))
        assert await driver.run(admin.partition_count("admin")) == 3
        with pytest.raises(TopicExistsError):
            await driver.run(admin.create_topics(NewTopic("admin", 3, 1)))
        admin.close()
        with pytest.raises(ClosedError):
            await driver.run(admin.list_topics())

    on_loop(test)


def test_concurrent_admin_calls_run_in_turn(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, bootstrap)
        names = {f"turn-{number}" for number in range(5)}
        calls = (driver.run(admin.create_topics(NewTopic(name, 1, 1))) for name in names)
        await asyncio.gather(*calls)
        assert await driver.run(admin.list_topics()) >= names
        admin.close()

    on_loop(test)


def test_names_are_looked_up_by_a_coroutine(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    ip, _, port = bootstrap.rpartition(":")
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        await asyncio.sleep(0.01)
        if host != "broker.example":
            raise OSError("no such name")
        return [ip]

    async def test(_: LoopDriver) -> None:
        driver = LoopDriver(resolve)
        admin = admin_of(driver, f"broker.example:{port}")
        await driver.run(admin.list_topics())
        admin.close()
        unknown = admin_of(driver, f"unknown.example:{port}")
        with pytest.raises(BootstrapError, match="no such name"):
            await driver.run(unknown.list_topics(timeout=0.3))
        unknown.close()
        await driver.cancel_look_ups()
        assert asked[0] == "broker.example"
        assert set(asked) == {"broker.example", "unknown.example"}

    on_loop(test)


def test_cancelled_call_leaves_the_client_usable(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, bootstrap)
        call = asyncio.ensure_future(driver.run(admin.create_topics(NewTopic("cancelled", 1, 1))))
        while not driver.polls:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await driver.run(admin.create_topics(NewTopic("after-cancelled", 1, 1)))
        assert "after-cancelled" in await driver.run(admin.list_topics())
        admin.close()

    on_loop(test)


def test_loop_stays_responsive_while_a_call_waits(on_loop: Callable[[Test], None]) -> None:
    """A call to a port without a broker waits for its timeout, and others run meanwhile."""

    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, "127.0.0.1:1")
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.001)

        counting = asyncio.ensure_future(count())
        with pytest.raises(BootstrapError):
            await driver.run(admin.list_topics(timeout=0.3))
        counting.cancel()
        await asyncio.wait([counting])
        # Neither blocked nor spinning: polls are few, turns of the other task many.
        assert turns > driver.polls
        admin.close()

    on_loop(test)


# --- producer


def test_records_are_produced_on_an_event_loop(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, bootstrap)
        await driver.run(admin.create_topics(NewTopic("produced", 2, 1)))
        admin.close()
        producer = SteppedProducer(driver.runtime, bootstrap_servers=bootstrap, acks="all")
        futures = [
            await driver.run(producer.send("produced", b"v-%d" % number, partition=number % 2))
            for number in range(100)
        ]
        found = await asyncio.gather(*futures)
        assert [(each.partition, each.offset) for each in found] == [
            (number % 2, number // 2) for number in range(100)
        ]
        delivery = await driver.run(producer.send_many("produced", [b"many"] * 1_000))
        await driver.run(producer.flush(20.0))
        assert delivery.done()
        assert await driver.run(producer.close(20.0)) == 0
        with pytest.raises(ClosedError):
            await driver.run(producer.send("produced", b"late"))

    on_loop(test)


def test_send_waits_for_memory_on_an_event_loop(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    """Each record needs most of the memory, so that every send waits for the one before it."""

    async def test(driver: LoopDriver) -> None:
        producer = SteppedProducer(
            driver.runtime,
            bootstrap_servers=bootstrap,
            buffer_memory=100_000,
            batch_size=0,
            linger_ms=1_000,
        )
        admin = admin_of(driver, bootstrap)
        await driver.run(admin.create_topics(NewTopic("memory", 1, 1)))
        admin.close()
        sends = [driver.run(producer.send("memory", bytes(60_000))) for _ in range(5)]
        futures = await asyncio.gather(*sends)
        assert sorted([(await each).offset for each in futures]) == [0, 1, 2, 3, 4]
        assert await driver.run(producer.close(20.0)) == 0

    on_loop(test)


def test_waits_of_a_producer_without_a_broker_end_at_their_deadlines(
    on_loop: Callable[[Test], None],
) -> None:
    async def test(driver: LoopDriver) -> None:
        producer = SteppedProducer(
            driver.runtime, bootstrap_servers="127.0.0.1:1", max_block_ms=200
        )
        with pytest.raises(BootstrapError):
            await driver.run(producer.send("nowhere", b""))
        assert await driver.run(producer.close(1.0)) == 0

    on_loop(test)


# --- consumer


def test_group_rebalances_on_an_event_loop(bootstrap: str, on_loop: Callable[[Test], None]) -> None:
    on_loop(lambda driver: check_all_clients(driver, bootstrap, "grouped"))


def test_member_that_does_not_poll_keeps_its_membership(
    bootstrap: str, on_loop: Callable[[Test], None]
) -> None:
    """Heartbeats are sent by a task of the loop while the application awaits something else."""

    async def test(driver: LoopDriver) -> None:
        admin = admin_of(driver, bootstrap)
        await driver.run(admin.create_topics(NewTopic("idle", 1, 1)))
        admin.close()
        consumer = SteppedConsumer(
            driver.runtime,
            bootstrap_servers=bootstrap,
            group_id="idle",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            session_timeout_ms=1_000,
        )
        consumer.subscribe(["idle"])
        while not consumer.assignment():
            await driver.run(consumer.poll(0.2))
        await asyncio.sleep(2.5)
        await driver.run(consumer.commit({TopicPartition("idle", 0): OffsetAndMetadata(0)}))
        assert await driver.run(consumer.committed([TopicPartition("idle", 0)])) == {
            TopicPartition("idle", 0): OffsetAndMetadata(0)
        }
        await driver.run(consumer.close())

    on_loop(test)


def test_cancelled_poll_loses_no_record(bootstrap: str, on_loop: Callable[[Test], None]) -> None:
    async def test(driver: LoopDriver) -> None:
        partition = TopicPartition("cancelled-poll", 0)
        admin = admin_of(driver, bootstrap)
        await driver.run(admin.create_topics(NewTopic(partition.topic, 1, 1)))
        admin.close()
        consumer = SteppedConsumer(driver.runtime, bootstrap_servers=bootstrap)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(driver.run(consumer.poll(30.0)), 0.02)
        producer = SteppedProducer(driver.runtime, bootstrap_servers=bootstrap)
        await driver.run(producer.send_many(partition.topic, [b"a", b"b"]))
        await driver.run(producer.close(20.0))
        values: list[bytes | None] = []
        while len(values) < 2:
            with contextlib.suppress(TimeoutError):
                found = await asyncio.wait_for(driver.run(consumer.poll(30.0)), 0.05)
                values += [record.value for record in found]
        assert values == [b"a", b"b"]
        await driver.run(consumer.close())

    on_loop(test)
