"""The loop of a transactional consumer and producer, on the companion broker."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import TransactionState
from kclient.consumer import ConsumerRecords
from kclient.errors import (
    ConfigError,
    InvalidTypeError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from kclient.transactions import TransactionalLoop
from tests.support.checks.waiting import wait_until

SOURCE, TARGET = "source", "target"
CLEANUP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
TIMEOUT_S = 20.0

Records = ConsumerRecords[Any, Any]
AnyProducer = Producer[Any, Any]


class World:
    """A broker with two topics, and a consumer of the first."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.bootstrap_servers
        self.admin = AdminClient(bootstrap_servers=self.bootstrap)
        self.admin.create_topics([NewTopic(SOURCE, 1), NewTopic(TARGET, 1)]).raise_for_errors()
        self.made = 0

    def send(self, *values: bytes) -> None:
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            producer.send_many(SOURCE, values).result(TIMEOUT_S)

    def consumer(self, **options: Any) -> Consumer[Any, Any]:
        given = {
            "group_id": "loop",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
        }
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=self.bootstrap, **{**given, **options}
        )
        consumer.subscribe(SOURCE)
        return consumer

    def producer(self, **options: Any) -> AnyProducer:
        self.made += 1
        return Producer(bootstrap_servers=self.bootstrap, transactional_id="loop-1", **options)

    def results(self) -> list[bytes]:
        """Return what a committed reader sees."""
        partition = TopicPartition(TARGET, 0)
        with Consumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning()
            found: list[bytes] = []
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                found += [each.value or b"" for each in consumer.poll(0.1)]
            return found

    def committed(self) -> int | None:
        found = self.admin.list_consumer_group_offsets("loop").get(TopicPartition(SOURCE, 0))
        return None if found is None else found.offset


@pytest.fixture
def world() -> Iterator[World]:
    with EmbeddedCluster(config={CLEANUP: "50"}) as cluster:
        made = World(cluster)
        yield made
        made.admin.close()


def copy(records: Records, producer: AnyProducer) -> None:
    for each in records:
        producer.send(TARGET, each.value)


def run(loop: TransactionalLoop[Any, Any], until: Callable[[], bool]) -> None:
    """Run a loop until a condition holds, and raise what it raises."""
    failures: list[BaseException] = []

    def target() -> None:
        try:
            loop.run()
        except BaseException as error:  # noqa: BLE001 (raised by the test)
            failures.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    wait_until(lambda: bool(failures) or until(), "the loop has done its work", TIMEOUT_S)
    if not failures:
        loop.stop()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_results_and_offsets_are_committed_together(world: World) -> None:
    world.send(b"a", b"b", b"c")
    with world.consumer() as consumer:
        run(TransactionalLoop(consumer, world.producer, copy), lambda: world.committed() == 3)
    assert world.results() == [b"a", b"b", b"c"]
    assert world.made == 1


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_records_of_a_failed_process_are_read_again(world: World, reset: str) -> None:
    failing = True

    def fail_once(records: Records, producer: AnyProducer) -> None:
        copy(records, producer)
        producer.flush()
        if failing:
            raise ZeroDivisionError

    with world.consumer(auto_offset_reset=reset) as consumer:
        wait_until(
            lambda: not consumer.poll(0.1) and bool(consumer.assignment()), "the group", TIMEOUT_S
        )
        consumer.position(TopicPartition(SOURCE, 0))
        world.send(b"a", b"b")
        loop = TransactionalLoop(consumer, world.producer, fail_once)
        with pytest.raises(ZeroDivisionError):
            run(loop, lambda: False)
        assert world.results() == []
        assert world.committed() is None
        failing = False
        run(loop, lambda: world.committed() == 2)
    assert world.results() == [b"a", b"b"]


def test_temporary_error_of_the_process_repeats_it(world: World) -> None:
    world.send(b"a")
    attempts: list[int] = []

    def fail_once(records: Records, producer: AnyProducer) -> None:
        attempts.append(len(records))
        copy(records, producer)
        if len(attempts) == 1:
            raise KafkaTimeoutError("the other cluster did not respond")

    with world.consumer() as consumer:
        run(TransactionalLoop(consumer, world.producer, fail_once), lambda: world.committed() == 1)
    assert attempts == [1, 1]
    assert world.results() == [b"a"]
    assert world.made == 1


def test_record_that_the_broker_refuses_ends_the_loop(world: World) -> None:
    world.send(b"a")

    def too_large(records: Records, producer: AnyProducer) -> None:
        producer.send(TARGET, b"x" * 2_000_000)

    with world.consumer() as consumer, pytest.raises(RecordTooLargeError):
        run(TransactionalLoop(consumer, world.producer, too_large), lambda: False)
    assert world.committed() is None


def test_another_producer_with_the_id_fences_the_loop(world: World) -> None:
    world.send(b"a")

    def be_fenced(records: Records, producer: AnyProducer) -> None:
        with world.producer() as other:
            other.init_transactions(TIMEOUT_S)
        copy(records, producer)

    with world.consumer() as consumer, pytest.raises(ProducerFencedError):
        run(TransactionalLoop(consumer, world.producer, be_fenced), lambda: False)
    assert world.results() == []
    assert world.committed() is None


@pytest.mark.parametrize("sends_late", [True, False])
def test_transaction_that_lasted_too_long_is_repeated(world: World, *, sends_late: bool) -> None:
    world.send(b"a")
    attempts: list[int] = []

    def be_slow_once(records: Records, producer: AnyProducer) -> None:
        attempts.append(len(records))
        copy(records, producer)
        producer.flush()
        if len(attempts) > 1:
            return
        wait_until(
            lambda: (
                world.admin.describe_transactions(["loop-1"])["loop-1"].state
                is TransactionState.COMPLETE_ABORT
            ),
            "the coordinator has aborted the transaction",
            TIMEOUT_S,
        )
        if sends_late:
            producer.send(TARGET, b"late")

    with world.consumer() as consumer:
        loop = TransactionalLoop(
            consumer, lambda: world.producer(transaction_timeout_ms=500), be_slow_once
        )
        run(loop, lambda: world.committed() == 1)
    assert attempts == [1, 1]
    assert world.results() == [b"a"]


def test_commit_without_a_response_is_repeated(world: World) -> None:
    world.send(b"a")
    world.cluster.faults.drop_response(ApiKey.END_TXN, times=2)
    with world.consumer() as consumer:
        loop = TransactionalLoop(consumer, lambda: world.producer(max_block_ms=300), copy)
        run(loop, lambda: world.committed() == 1)
    assert world.results() == [b"a"]


def test_wrong_arguments_are_refused(world: World) -> None:
    automatic = world.consumer(enable_auto_commit=True)
    with automatic, pytest.raises(ConfigError, match="enable_auto_commit=True, expected False"):
        TransactionalLoop(automatic, world.producer, copy)
    with world.consumer() as consumer, world.producer() as producer:
        with pytest.raises(InvalidTypeError, match="process: got 'copy'"):
            TransactionalLoop(consumer, world.producer, "copy")  # type: ignore[arg-type]
        with pytest.raises(InvalidTypeError, match="new_producer: got"):
            TransactionalLoop(consumer, producer, copy)  # type: ignore[arg-type]
