"""At-least-once delivery: outcomes, failures and reports of tasks."""

from collections.abc import Iterator

import pytest

from kclient.common.errors import ClosedError, KafkaError, KafkaTimeoutError
from kclient.producer.errors import DeliveryTimeoutError
from kclient.spark.sink.at_least_once import AtLeastOnceTask
from kclient.spark.sink.row_chunks import RowChunk
from kclient.spark.sink.write_errors import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport
from tests.spark.sink.fake_producer import FakeProducer

TASK = TaskIdentity(partition=3, attempt=1, batch_id=7)


def chunks(count: int, rows: int = 10) -> Iterator[RowChunk]:
    for number in range(count):
        yield RowChunk(number * rows, "t", [b"value"] * rows)


def task(producer: FakeProducer, timeout: float | None = None) -> AtLeastOnceTask:
    return AtLeastOnceTask(producer.as_producer, TASK, timeout)


def test_task_waits_for_all_outcomes_and_reports_counts() -> None:
    producer = FakeProducer()
    writing = task(producer, 12.5)

    for chunk in chunks(3):
        writing.write(chunk)

    assert writing.finish() == TaskReport(TASK, rows=30, bytes=150)
    assert producer.flushes == [12.5]


def test_first_failure_is_raised_with_rows_and_cause() -> None:
    producer = FakeProducer()
    writing = task(producer)
    for chunk in chunks(3):
        writing.write(chunk)
    cause = DeliveryTimeoutError("no acknowledgement")
    producer.outcomes[1].complete(cause)
    producer.outcomes[2].complete(KafkaError("a later one"))

    with pytest.raises(WriteFailedError) as caught:
        writing.finish()

    assert str(caught.value) == "topic 't', one of the rows 10 to 19: no acknowledgement"
    assert caught.value.__cause__ is cause
    assert (caught.value.topic, caught.value.first_row, caught.value.last_row) == ("t", 10, 19)


def test_known_failure_is_raised_by_the_next_write() -> None:
    producer = FakeProducer()
    writing = task(producer)
    first, second = chunks(2)
    writing.write(first)
    producer.outcomes[0].complete(KafkaError("refused"))

    with pytest.raises(WriteFailedError, match="one of the rows 0 to 9: refused"):
        writing.write(second)


def test_completed_rows_are_dropped() -> None:
    producer = FakeProducer()
    producer.at_once = True
    writing = task(producer)

    for chunk in chunks(500):
        writing.write(chunk)
        assert writing.pending == 0


def test_flush_timeout_fails_the_task() -> None:
    producer = FakeProducer()
    writing = task(producer, 0.1)
    for chunk in chunks(1):
        writing.write(chunk)
    producer.broken = KafkaTimeoutError("10 records have no outcome yet")

    with pytest.raises(WriteFailedError, match="10 records have no outcome yet") as caught:
        writing.finish()

    assert isinstance(caught.value.__cause__, KafkaTimeoutError)


def test_known_failure_takes_precedence_over_flush_timeout() -> None:
    producer = FakeProducer()
    writing = task(producer, 0.1)
    for chunk in chunks(2):
        writing.write(chunk)
    producer.outcomes[1].complete(KafkaError("refused"))
    producer.broken = KafkaTimeoutError("10 records have no outcome yet")

    with pytest.raises(WriteFailedError, match="one of the rows 10 to 19: refused"):
        writing.finish()


def test_row_that_cannot_be_queued_is_named() -> None:
    producer = FakeProducer()
    refusal = ClosedError("send: the producer is closed")

    def refuse() -> None:
        raise refusal

    writing = task(producer)
    first, second = chunks(2)
    writing.write(first)
    producer.on_send = refuse

    with pytest.raises(WriteFailedError, match="topic 't', batch of rows 10 to 19: send") as caught:
        writing.write(second)

    assert caught.value.__cause__ is refusal
