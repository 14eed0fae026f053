"""Exactly-once delivery: order of the steps, markers, repetitions and failures."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kclient.common.broker_errors import InvalidTxnTimeoutError, ProducerFencedError
from kclient.common.errors import ConfigError, IllegalStateError, KafkaError, KafkaTimeoutError
from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kclient.producer.errors import ProducerFatalError
from kclient.producer.producer import Producer
from kclient.spark.sink.commit_marker import CommitMarker
from kclient.spark.sink.exactly_once import ExactlyOnce, TransactionClients
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.row_chunks import RowChunk
from kclient.spark.sink.sink_identity import SinkIdentity
from kclient.spark.sink.write_errors import NonDeterministicReplayError, WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport
from kclient.spark.sink.write_task import write_task
from tests.spark.sink.fake_producer import FakeProducer

SERVERS: Mapping[str, object] = {"bootstrap.servers": "h:1"}
TASK = TaskIdentity(partition=3, attempt=1, batch_id=7, query_id="q")
NAME = "kclient-spark-orders-3"


class FakeTransactions(FakeProducer):
    """A producer that notes the calls of transactions, and the offsets of a group.

    Attributes:
        calls: Names of the calls, in order.
        offsets: Committed offsets of the group.
        waits: Timeouts of the commits.
        fails_at: Name of a call that fails, and its error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.at_once = True
        self.calls: list[str] = []
        self.waits: list[float | None] = []
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.fails_at: dict[str, KafkaError] = {}
        self._sent_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.on_send = lambda: self.call("send")

    def call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails_at:
            raise self.fails_at[name]

    def init_transactions(self, timeout: float | None = None) -> None:
        self.call("init")

    def begin_transaction(self) -> None:
        self.call("begin")

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        self.call("offsets")
        assert group == ConsumerGroupMetadata(NAME)
        self._sent_offsets = dict(offsets)

    def commit_transaction(self, timeout: float | None = None) -> None:
        self.waits.append(timeout)
        self.call("commit")
        self.offsets |= self._sent_offsets

    def abort_transaction(self, timeout: float | None = None) -> None:
        self.call("abort")

    def close(self, timeout: float | None = None) -> None:
        super().close(timeout)
        self.call("close")


class FakeClients(TransactionClients):
    """Returns the fakes."""

    def __init__(self, fake: FakeTransactions) -> None:
        super().__init__(ProducerSettings(SERVERS))
        self._fake = fake

    def producer(self, transactional_id: str) -> Producer[bytes, bytes]:
        assert transactional_id == NAME
        return self._fake.as_producer

    def committed(self, group_id: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
        assert group_id == NAME
        self._fake.call("committed")
        return self._fake.offsets


@pytest.fixture
def fake() -> FakeTransactions:
    return FakeTransactions()


def chunks(*values: bytes, topic: str | list[str] = "t") -> list[RowChunk]:
    return [RowChunk(row, topic, [value]) for row, value in enumerate(values)]


def write(
    fake: FakeTransactions, rows: Iterable[RowChunk], task: TaskIdentity = TASK
) -> TaskReport:
    fake.calls.clear()
    delivery = ExactlyOnce(FakeClients(fake), SinkIdentity(sink_id="orders"))
    return write_task(rows, delivery, task)


def test_rows_and_marker_are_committed_in_one_transaction(fake: FakeTransactions) -> None:
    report = write(fake, chunks(b"a", b"bc"))

    assert report == TaskReport(TASK, rows=2, bytes=3)
    assert fake.calls == [
        "init", "committed", "begin", "send", "send", "offsets", "commit", "close",
    ]  # fmt: skip
    marker = CommitMarker.latest(NAME, fake.offsets.values())
    assert marker is not None
    assert (marker.batch_id, marker.rows) == (7, 2)
    assert list(fake.offsets) == [TopicPartition("t", 0)]


def test_committed_rows_are_counted_and_not_sent_again(fake: FakeTransactions) -> None:
    write(fake, chunks(b"a", b"bc"))
    again = TaskIdentity(3, attempt=2, batch_id=7)

    assert write(fake, chunks(b"bc", b"a"), again) == TaskReport(again, rows=2, bytes=3)

    assert fake.calls == ["init", "committed", "close"]


def test_other_rows_than_the_committed_ones_raise(fake: FakeTransactions) -> None:
    write(fake, chunks(b"a", b"bc"))
    for rows in (chunks(b"a"), chunks(b"a", b"bd"), chunks(b"a", b"a")):
        with pytest.raises(
            NonDeterministicReplayError, match=r"batch 7: got . row.*expected 2 row"
        ):
            write(fake, rows)
        assert "send" not in fake.calls


def test_next_micro_batch_is_written(fake: FakeTransactions) -> None:
    write(fake, chunks(b"a"))
    write(fake, chunks(b"a", topic=["u"]), TaskIdentity(3, batch_id=8))

    assert fake.calls.count("send") == 1
    assert {place.topic: each.offset for place, each in fake.offsets.items()} == {"t": 7, "u": 8}
    write(fake, chunks(b"a", topic=["t"]), TaskIdentity(3, batch_id=9))
    assert fake.calls.count("send") == 1


def test_earlier_micro_batch_than_the_committed_one_fails(fake: FakeTransactions) -> None:
    write(fake, chunks(b"a"))

    with pytest.raises(WriteFailedError, match="got a committed batch 7, expected 6 or an earlier"):
        write(fake, chunks(b"a"), TaskIdentity(3, batch_id=6))
    assert "send" not in fake.calls
    assert fake.calls[-1] == "close"


def test_offset_of_another_application_fails(fake: FakeTransactions) -> None:
    fake.offsets[TopicPartition("t", 0)] = OffsetAndMetadata(5, "mine")

    with pytest.raises(KafkaError, match="got a committed offset 5 that no sink has written"):
        write(fake, chunks(b"a"))


def test_task_without_rows_opens_no_connection(fake: FakeTransactions) -> None:
    assert write(fake, []) == TaskReport(TASK, rows=0, bytes=0)
    assert fake.calls == []


def test_failure_aborts_the_transaction(fake: FakeTransactions) -> None:
    def rows() -> Iterable[RowChunk]:
        yield from chunks(b"a")
        raise RuntimeError("of the query")

    with pytest.raises(RuntimeError, match="of the query"):
        write(fake, rows())
    assert fake.calls[-2:] == ["abort", "close"]
    assert not fake.offsets


@pytest.mark.parametrize("step", ["init", "committed", "begin", "offsets", "commit"])
def test_producer_is_closed_after_each_error(fake: FakeTransactions, step: str) -> None:
    fake.fails_at = {step: ProducerFencedError("fenced"), "abort": ProducerFencedError("fenced")}

    with pytest.raises(KafkaError, match="fenced"):
        write(fake, chunks(b"a"))
    assert fake.calls[-1] == "close"
    assert ("abort" in fake.calls) == (step in {"offsets", "commit"})


def test_commit_without_outcome_fails_the_task(fake: FakeTransactions) -> None:
    fake.fails_at = {"commit": KafkaTimeoutError("no outcome"), "abort": IllegalStateError("busy")}

    with pytest.raises(WriteFailedError, match=f"commit of transaction '{NAME}': no outcome"):
        write(fake, chunks(b"a"))
    assert fake.waits == [600.0, 300.0]


def test_names_of_transactions_are_stable() -> None:
    assert SinkIdentity("p", "s").transactional_id(TASK) == "p-s-3"
    assert SinkIdentity("p").transactional_id(TASK) == "p-q-3"
    assert SinkIdentity().batch_id(TASK) == 7
    assert SinkIdentity(sink_id="w", is_single_write=True).batch_id(TASK) == 0
    with pytest.raises(IllegalStateError, match="no id of a streaming query"):
        SinkIdentity().transactional_id(TaskIdentity(0))
    with pytest.raises(IllegalStateError, match="no id of a micro-batch"):
        SinkIdentity().batch_id(TaskIdentity(0, query_id="q"))


def test_rejected_transaction_timeout_names_the_option(fake: FakeTransactions) -> None:
    stopped = ProducerFatalError("the producer stopped")
    stopped.__cause__ = InvalidTxnTimeoutError("larger than the broker's limit")
    fake.fails_at = {"init": stopped}

    with pytest.raises(ConfigError, match=r"transaction.timeout.ms: got 900000, expected at most"):
        write(fake, chunks(b"a"))
    assert fake.calls == ["init", "close"]


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        ({"acks": 1}, "acks: got 1, expected 'all' with a transactional_id"),
        ({"enable.idempotence": False}, "enable_idempotence: got False"),
        ({"transaction.timeout.ms": 0}, "transaction.timeout.ms: got 0"),
    ],
)
def test_options_that_contradict_transactions_fail(conf: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        TransactionClients(ProducerSettings({**SERVERS, **conf}))


def test_marker_survives_the_offset() -> None:
    marker = CommitMarker(7, 2**40, 2**64 - 1)
    older = CommitMarker(3, 1, 1)
    assert CommitMarker.latest(NAME, [older.committed(), marker.committed()]) == marker
