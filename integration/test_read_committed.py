"""Transactions of several producers in one partition, read in every way from Apache Kafka."""

from collections.abc import Callable
from random import Random
from typing import Any, Literal

import confluent_kafka
import pytest

from integration.harness.running_kafka import RunningKafka
from kclient import Consumer, TopicPartition

Topic = Callable[..., str]
TIMEOUT_S = 30.0
LOG_STEPS = 60


class TransactionLog:
    """Writes transactions with confluent-kafka, and knows which records count.

    Attributes:
        written: Offsets of all records but the markers, in order.
        committed: Those of committed transactions, or of none.
    """

    def __init__(self, kafka: RunningKafka, topic: str) -> None:
        self.written: list[int] = []
        self.committed: list[int] = []
        self._topic = topic
        self._plain = self._producer(kafka)
        self._writers = [self._producer(kafka, f"{topic}-{number}") for number in range(2)]
        self._open: dict[int, list[int]] = {}
        for writer in self._writers:
            writer.init_transactions(TIMEOUT_S)

    def _producer(self, kafka: RunningKafka, name: str | None = None) -> Any:
        given = {"bootstrap.servers": kafka.bootstrap, "linger.ms": 0, "log_level": 0}
        return confluent_kafka.Producer(given | ({"transactional.id": name} if name else {}))

    def step(self, random: Random) -> None:
        """Write a few records of any producer, or end a transaction."""
        number = random.randrange(len(self._writers))
        match random.choice(["plain", "write", "write", "end"]):
            case "plain":
                self.committed += self._write(self._plain, random.randint(1, 5))
            case "write":
                if number not in self._open:
                    self._writers[number].begin_transaction()
                    self._open[number] = []
                self._open[number] += self._write(self._writers[number], random.randint(1, 5))
            case "end" if number in self._open:
                self.end(number, commit=random.random() < 0.5)

    def end(self, number: int, *, commit: bool) -> None:
        offsets = self._open.pop(number)
        if commit:
            self._writers[number].commit_transaction(TIMEOUT_S)
            self.committed += offsets
        else:
            self._writers[number].abort_transaction(TIMEOUT_S)

    def end_all(self) -> None:
        for number in list(self._open):
            self.end(number, commit=number == 0)
        self.committed.sort()

    def _write(self, producer: Any, count: int) -> list[int]:
        offsets: list[int] = []

        def delivered(error: object, message: Any) -> None:
            assert error is None
            offsets.append(message.offset())

        for _ in range(count):
            producer.produce(self._topic, b"value", partition=0, on_delivery=delivered)
        assert producer.flush(TIMEOUT_S) == 0
        self.written += offsets
        return offsets


def check_by_turns(consumer: Consumer, random: Random, expected: list[int]) -> None:
    """Read records by iteration, poll and poll_columns in turn; none is skipped or repeated."""
    read: list[int] = []
    while len(read) < len(expected):
        some = random.randint(1, 6)
        match random.choice(["next", "poll", "columns", "position"]):
            case "next":
                read += [next(consumer).offset for _ in range(min(some, len(expected) - len(read)))]
            case "poll":
                read += [record.offset for record in consumer.poll(TIMEOUT_S, some)]
            case "columns":
                offsets = consumer.poll_columns(TIMEOUT_S, some).column("offset")
                read += [int(str(offset)) for offset in offsets]
            case "position":
                position = consumer.position(TopicPartition(*consumer.assignment().pop()))
                assert not read or position > read[-1]
        assert read == expected[: len(read)]


@pytest.fixture
def transactions(kafka: RunningKafka, topic: Topic) -> tuple[str, TransactionLog]:
    name = topic()
    return name, TransactionLog(kafka, name)


@pytest.mark.parametrize(
    ("isolation", "max_poll_records"),
    [
        ("read_committed", 10),
        pytest.param("read_committed", 500, marks=pytest.mark.campaign),
        pytest.param("read_uncommitted", 10, marks=pytest.mark.campaign),
        pytest.param("read_uncommitted", 500, marks=pytest.mark.campaign),
    ],
)
def test_all_read_methods_return_committed_records_only(
    kafka: RunningKafka,
    transactions: tuple[str, TransactionLog],
    isolation: Literal["read_committed", "read_uncommitted"],
    max_poll_records: int,
) -> None:
    name, log = transactions
    random = Random(max_poll_records)
    for _ in range(LOG_STEPS):
        log.step(random)
    log.end_all()
    expected = log.committed if isolation == "read_committed" else log.written
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        max_poll_records=max_poll_records,
    ) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        for _ in range(20):
            consumer.seek_to_beginning()
            check_by_turns(consumer, random, expected)


def test_lag_ends_at_an_open_transaction(
    kafka: RunningKafka, transactions: tuple[str, TransactionLog]
) -> None:
    name, log = transactions
    random = Random(5)
    while not log.written or len(log.written) == len(log.committed):
        log.step(random)
    place = TopicPartition(name, 0)
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([place])
        stable = consumer.end_offsets([place])[place]
        while consumer.position(place) < stable or consumer.metrics()["fetch-total"] == 0:
            consumer.poll(0.2)
        assert consumer.lag(place) == 0
        assert consumer.metrics()["records-lag-max"] == 0
    log.end_all()
