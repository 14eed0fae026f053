"""The loop of a transactional consumer and producer, on the companion broker."""

import logging
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import TransactionState
from kclient.consumer import ConsumerRecords
from kclient.errors import (
    CommitFailedError,
    ConfigError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from kclient.testing.virtual import VirtualBroker, VirtualWorld
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
        with pytest.raises(InvalidArgumentError, match="task_timeout: got -1"):
            TransactionalLoop(consumer, world.producer, copy, task_timeout=-1)


class Stage:
    """A loop in virtual time: the process of an application, and a broker.

    Attributes:
        broker: The broker.
        error: KafkaTimeoutError or KeyboardInterrupt that ended `run`.
    """

    def __init__(self, world: VirtualWorld) -> None:
        self.broker = VirtualBroker(world)
        self.error: BaseException | None = None
        self._world = world
        self._application = world.machine("application").process("loop")
        self.runtime = self._application.runtime
        self.sleep = self._application.sleep
        self.subscribe: Callable[[str], object] = lambda _: None
        self.stop: Callable[[], None] = lambda: None

    def now_s(self) -> float:
        return self._world.clock.now_ms / 1000

    def send(self, topic: str, value: bytes) -> None:
        """Send a record from a process of its own."""
        process = self._world.machine("source").process("source")

        def main() -> None:
            with Producer(
                bootstrap_servers=self.broker.bootstrap_servers, runtime=process.runtime
            ) as producer:
                producer.send(topic, value).result()

        task = process.spawn("main", main)
        self._world.run(until=lambda: task.over)

    def run(self, process: Callable[[Records, AnyProducer], object], **options: Any) -> None:
        task = self._application.spawn("main", lambda: self._run(process, options))
        self._world.run(until=lambda: task.over, timeout_ms=3_600_000)

    def _run(
        self, process: Callable[[Records, AnyProducer], object], options: dict[str, Any]
    ) -> None:
        common: dict[str, Any] = {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "runtime": self.runtime,
        }
        with Consumer(
            **common,
            group_id="loop",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=1,
        ) as consumer:
            consumer.subscribe(SOURCE)
            self.subscribe = consumer.subscribe
            loop = TransactionalLoop(
                consumer,
                lambda: Producer(**common, transactional_id="loop-1"),
                process,
                self.runtime,
                **options,
            )
            self.stop = loop.stop
            try:
                loop.run()
            except (KafkaTimeoutError, KeyboardInterrupt) as error:
                self.error = error


@pytest.fixture
def stage() -> Iterator[Stage]:
    with VirtualWorld(seed=1) as world:
        yield Stage(world)


def warnings_of_loop(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        each.getMessage()
        for each in caplog.records
        if each.name.startswith("kclient.transactions") and each.levelno == logging.WARNING
    ]


@pytest.mark.parametrize(("options", "expected_s"), [({}, 300.0), ({"task_timeout": 100.0}, 100.0)])
def test_commit_without_response_ends_the_loop_after_the_task_timeout(
    stage: Stage, caplog: pytest.LogCaptureFixture, options: dict[str, float], expected_s: float
) -> None:
    stage.send(SOURCE, b"a")
    died_s: list[float] = []

    def cut_off(records: Records, producer: AnyProducer) -> None:
        copy(records, producer)
        producer.flush()
        stage.broker.kill()
        died_s.append(stage.now_s())

    stage.run(cut_off, **options)
    assert isinstance(stage.error, KafkaTimeoutError)
    assert f"expected some within task_timeout={expected_s:g} s" in str(stage.error)
    cause = stage.error.__cause__
    assert isinstance(cause, KafkaTimeoutError)
    assert "send_offsets_to_transaction: no outcome within 60000 ms" in str(cause)
    # An attempt lasts max.block.ms, 60 s; the abort, the close and the consumer's end follow.
    assert expected_s + 60 <= stage.now_s() - died_s[0] <= expected_s + 300
    assert len(warnings_of_loop(caplog)) == 1


def test_process_that_always_fails_ends_the_loop_after_the_task_timeout(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.send(SOURCE, b"a")
    times: list[float] = []

    def fail(records: Records, producer: AnyProducer) -> None:
        times.append(stage.now_s())
        copy(records, producer)
        stage.sleep(1.0)
        raise KafkaTimeoutError(f"attempt {len(times)}")

    stage.run(fail, task_timeout=30.0)
    assert isinstance(stage.error, KafkaTimeoutError)
    assert str(stage.error.__cause__) == f"attempt {len(times)}"
    assert 29.0 <= times[-1] - times[0] <= 32.0
    assert warnings_of_loop(caplog) == [
        "the transaction was aborted, its records are read again: attempt 1"
    ]


def test_process_that_always_exceeds_the_poll_interval_ends_the_loop(stage: Stage) -> None:
    stage.send(SOURCE, b"a")

    def be_slow(records: Records, producer: AnyProducer) -> None:
        stage.sleep(301.0)  # max.poll.interval.ms is 300 s

    stage.run(be_slow)
    assert stage.error is not None
    assert isinstance(stage.error.__cause__, CommitFailedError)


def test_task_timeout_of_zero_ends_the_loop_with_the_first_error(stage: Stage) -> None:
    stage.send(SOURCE, b"a")

    def fail(records: Records, producer: AnyProducer) -> None:
        raise KafkaTimeoutError("first")

    stage.run(fail, task_timeout=0)
    assert stage.error is not None
    assert str(stage.error.__cause__) == "first"


def test_errors_between_commits_do_not_end_the_loop(stage: Stage) -> None:
    for value in (b"0", b"1", b"2"):
        stage.send(SOURCE, value)
    seen: list[bytes | None] = []

    def fail_every_other_time(records: Records, producer: AnyProducer) -> None:
        seen.extend(each.value for each in records)
        stage.sleep(20.0)  # five attempts take longer than the timeout, no two of one record
        if len(seen) % 2:
            raise KafkaTimeoutError("every other time")
        if len(seen) == 6:
            stage.stop()

    stage.run(fail_every_other_time, task_timeout=30.0)
    assert stage.error is None


def test_partition_that_was_reassigned_has_the_whole_task_timeout(stage: Stage) -> None:
    stage.send(SOURCE, b"a")
    stage.send("other", b"b")
    seen: list[str] = []

    def process(records: Records, producer: AnyProducer) -> None:
        seen.append(records.partitions()[0].topic)
        if len(seen) == 1:  # `source` fails, and is unassigned
            stage.subscribe("other")
        if len(seen) == 2:
            stage.sleep(100.0)
            stage.subscribe(SOURCE)
        if len(seen) in {1, 3}:
            raise KafkaTimeoutError("temporary")
        if len(seen) == 4:
            stage.stop()

    stage.run(process, task_timeout=30.0)
    assert seen == [SOURCE, "other", SOURCE, SOURCE]
    assert stage.error is None


def test_infinite_task_timeout_sets_no_limit(stage: Stage) -> None:
    stage.send(SOURCE, b"a")
    began_s = stage.now_s()

    def fail(records: Records, producer: AnyProducer) -> None:
        stage.sleep(60.0)
        if stage.now_s() - began_s < 3000:
            raise KafkaTimeoutError("temporary")
        stage.stop()

    stage.run(fail, task_timeout=math.inf)
    assert stage.error is None


def test_interrupt_leaves_the_loop_after_one_attempt_to_abort(stage: Stage) -> None:
    stage.send(SOURCE, b"a")
    died_s: list[float] = []

    def interrupt(records: Records, producer: AnyProducer) -> None:
        copy(records, producer)
        producer.flush()
        stage.broker.kill()
        died_s.append(stage.now_s())
        raise KeyboardInterrupt

    stage.run(interrupt)
    assert isinstance(stage.error, KeyboardInterrupt)
    (note,) = stage.error.__notes__
    assert "the end of the transaction is unknown: abort_transaction: no outcome" in note
    assert stage.now_s() - died_s[0] < 200  # the abort, and the end of both clients


def test_stop_during_a_commit_without_response_raises_its_timeout(stage: Stage) -> None:
    stage.send(SOURCE, b"a")
    stage.broker.faults.drop_response(ApiKey.END_TXN, times=10_000)

    def stop(records: Records, producer: AnyProducer) -> None:
        copy(records, producer)
        stage.stop()

    stage.run(stop)
    assert "commit_transaction: no outcome within 60000 ms" in str(stage.error)
