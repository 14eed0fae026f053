"""Errors of rows that were not written: which row, in the numbers of its Spark partition."""

import pytest

from kclient.common.errors import KafkaError
from kclient.spark.sink.delivery import PendingRows
from kclient.spark.sink.write_errors import (
    WriteFailedError,
    missing_topic,
    not_acknowledged,
    not_queued,
)
from kclient.spark.sink.write_report import TaskIdentity
from tests.spark.sink.fake_producer import FakeOutcome


def rows(error: WriteFailedError) -> tuple[int, int]:
    return error.first_row, error.last_row


@pytest.mark.parametrize(
    ("topic", "first", "last", "text"),
    [
        ("t", 5, 5, "topic 't', row 5: late"),
        ("t", 5, 9, "topic 't', one of the rows 5 to 9: late"),
        (None, 5, 9, "one of the rows 5 to 9: late"),
    ],
)
def test_rows_that_were_not_acknowledged(
    topic: str | None, first: int, last: int, text: str
) -> None:
    error = not_acknowledged(PendingRows(topic, first, last, FakeOutcome()), KafkaError("late"))
    assert str(error) == text
    assert (error.topic, rows(error)) == (topic, (first, last))


@pytest.mark.parametrize(
    ("cause", "text", "failed"),
    [
        ("no memory", "topic 't', batch of rows 100 to 109: no memory", (100, 109)),
        ("row 7: too large", "topic 't', row 107: too large", (107, 107)),
        (
            "value of row 7 is too large",
            "topic 't', row 107: value of row 107 is too la",
            (107, 107),
        ),
    ],
)
def test_row_of_a_batch_is_counted_from_the_start_of_the_partition(
    cause: str, text: str, failed: tuple[int, int]
) -> None:
    error = not_queued("t", 100, 109, KafkaError(cause))
    assert str(error).startswith(text)
    assert rows(error) == failed


def test_single_row_keeps_the_text_of_its_error() -> None:
    error = not_queued(None, 3, 3, KafkaError("row 0: too large"))
    assert (str(error), rows(error)) == ("row 3: row 0: too large", (3, 3))


def test_row_without_topic_names_column_and_remedy() -> None:
    error = missing_topic("destination", 4)
    assert str(error).startswith("column 'destination', row 4: got null, expected a topic")
    assert (error.topic, rows(error)) == (None, (4, 4))


def test_error_in_a_task_begins_with_the_task() -> None:
    error = not_queued("t", 3, 3, KafkaError("x")).in_task(TaskIdentity(2, 1))
    assert str(error) == "Spark partition 2, attempt 1, topic 't', row 3: x"
    assert (error.topic, rows(error)) == ("t", (3, 3))
