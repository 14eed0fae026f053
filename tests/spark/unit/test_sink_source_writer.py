"""What the data source's writers make of options, on every Spark."""

import copy
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import datasource as api
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.sink.at_least_once import AtLeastOnce
from kclient.spark.sink.batch_writer import batch_writer
from kclient.spark.sink.commit_message import CommitMessage, reports_of
from kclient.spark.sink.source_writer import FOREACH_BATCH_ID, planned
from kclient.spark.sink.stream_writer import stream_writer
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"}
HEADERS = T.ArrayType(
    T.StructType([T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())])
)
PLAIN = T.StructType([T.StructField("value", T.StringType())])
FULL = T.StructType([*PLAIN.fields, T.StructField("headers", HEADERS)])


@pytest.mark.parametrize(
    ("schema", "option", "column"),
    [
        (FULL, None, "headers"),
        (PLAIN, None, None),
        (FULL, "true", "headers"),
        (FULL, "false", None),
    ],
)
def test_headers_are_sent_where_there_are_some_unless_they_are_unwanted(
    schema: T.StructType, option: str | None, column: str | None
) -> None:
    options = OPTIONS if option is None else {**OPTIONS, "includeheaders": option}

    assert planned(options, schema).columns.headers == column


def test_who_insists_on_headers_is_told_that_there_are_none() -> None:
    with pytest.raises(ConfigError, match="headers: got no column 'headers'"):
        planned({**OPTIONS, "includeHeaders": "true"}, PLAIN)


def test_the_batchs_number_of_foreach_batch_is_no_option_of_the_users() -> None:
    found = planned({**OPTIONS, FOREACH_BATCH_ID.lower(): "7"}, PLAIN)

    assert found.batch_id == 7
    assert planned(OPTIONS, PLAIN).batch_id is None


def test_a_task_waits_for_its_last_rows_as_long_as_the_option_says() -> None:
    for option, seconds in (({"deliverytimeoutms": "1500"}, 1.5), ({}, None)):
        delivery = planned({**OPTIONS, **option}, PLAIN).delivery
        assert isinstance(delivery, AtLeastOnce)
        assert delivery._flush_timeout == seconds


def test_a_batch_cannot_overwrite_a_topic() -> None:
    with pytest.raises(ConfigError, match="mode: got 'overwrite', expected 'append'"):
        batch_writer(OPTIONS, PLAIN, overwrite=True)


def test_a_stream_gets_arrow_batches_from_every_spark() -> None:
    writer = stream_writer(OPTIONS, PLAIN, overwrite=False)

    if hasattr(api, "DataSourceStreamArrowWriter"):
        assert isinstance(writer, api.DataSourceStreamArrowWriter)
    else:  # Spark 4.0 tells by this one alone, for streams as for batches
        assert isinstance(writer, api.DataSourceArrowWriter)
        assert isinstance(writer, api.DataSourceStreamWriter)


@pytest.mark.parametrize("make", [batch_writer, stream_writer])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topic": None}, "topic: got neither an option 'topic' nor a column 'topic'"),
        ({"delivery": "exactly-once"}, "exactly-once"),
        ({"kafka.acks": "0"}, "acks: got 0, expected 'all' or 1"),
        ({"kafka.bootstrap.servers": None}, "kafka.bootstrap.servers: got nothing"),
    ],
)
def test_wrong_options_are_refused_where_the_writer_is_made(
    make: Any, options: dict[str, str | None], text: str
) -> None:
    given = {name: value for name, value in (OPTIONS | options).items() if value is not None}

    with pytest.raises(ConfigError, match=text):
        make(given, PLAIN, overwrite=False)


@pytest.mark.parametrize("make", [batch_writer, stream_writer])
def test_wrong_columns_are_refused_where_the_writer_is_made(make: Any) -> None:
    bad = T.StructType([T.StructField("value", T.LongType())])

    with pytest.raises(ConfigError, match="column 'value': got bigint"):
        make(OPTIONS, bad, overwrite=False)


def test_a_writer_can_travel_and_shows_no_settings() -> None:
    writer = batch_writer({**OPTIONS, "kafka.client.id": "hunter2"}, PLAIN, overwrite=False)

    assert "hunter2" not in repr(copy.deepcopy(writer).__dict__)


def test_the_reports_of_failed_tasks_are_missing_among_the_messages() -> None:
    report = TaskReport(TaskIdentity(1), rows=5, bytes=50)

    assert reports_of([None, CommitMessage(report), Row()]) == [report]
