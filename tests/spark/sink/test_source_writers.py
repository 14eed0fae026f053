"""Options and schema of the data source's writers."""

import copy
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import datasource as api
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.options.sink_options import FOREACH_BATCH_ID
from kclient.spark.sink.at_least_once import AtLeastOnce
from kclient.spark.sink.exactly_once import ExactlyOnce
from kclient.spark.sink.source_writers import (
    CommitMessage,
    batch_writer,
    plan_write,
    reports_of,
    stream_writer,
)
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
def test_headers_are_sent_by_default_if_present(
    schema: T.StructType, option: str | None, column: str | None
) -> None:
    options = OPTIONS if option is None else {**OPTIONS, "includeheaders": option}

    assert plan_write(options, schema, is_stream=True).columns.headers == column


def test_required_headers_column_must_exist() -> None:
    with pytest.raises(
        ConfigError, match="headers: got the columns 'value', expected one with the name 'headers'"
    ):
        plan_write({**OPTIONS, "includeHeaders": "true"}, PLAIN, is_stream=True)


def test_batch_id_of_foreach_batch_is_extracted() -> None:
    found = plan_write({**OPTIONS, FOREACH_BATCH_ID.lower(): "7"}, PLAIN, is_stream=False)

    assert found.batch_id == 7
    assert plan_write(OPTIONS, PLAIN, is_stream=False).batch_id is None


def test_delivery_timeout_becomes_the_flush_timeout() -> None:
    for option, seconds in (({"deliverytimeoutms": "1500"}, 1.5), ({}, None)):
        delivery = plan_write({**OPTIONS, **option}, PLAIN, is_stream=True).delivery
        assert isinstance(delivery, AtLeastOnce)
        assert delivery._flush_timeout == seconds


def test_overwrite_mode_fails() -> None:
    with pytest.raises(ConfigError, match="mode: got 'overwrite', expected 'append'"):
        batch_writer(OPTIONS, PLAIN, overwrite=True)


def test_stream_writer_gets_arrow_batches() -> None:
    writer = stream_writer(OPTIONS, PLAIN, overwrite=False)

    if hasattr(api, "DataSourceStreamArrowWriter"):
        assert isinstance(writer, api.DataSourceStreamArrowWriter)
    else:  # Spark 4.0 has only this one, for streams and batches
        assert isinstance(writer, api.DataSourceArrowWriter)
        assert isinstance(writer, api.DataSourceStreamWriter)


@pytest.mark.parametrize("make", [batch_writer, stream_writer])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topic": None}, "topic: got neither an option 'topic' nor a column 'topic'"),
        ({"delivery": "exactly-twice"}, "did you mean 'exactly-once'"),
        ({"sinkId": "s", "writeId": "w"}, "Id: got '.' for a (table|stream), expected"),
        ({"kafka.acks": "0"}, "acks: got 0, expected 'all' or 1"),
        ({"kafka.bootstrap.servers": None}, "kafka.bootstrap.servers: got nothing"),
    ],
)
def test_wrong_options_fail_when_the_writer_is_created(
    make: Any, options: dict[str, str | None], text: str
) -> None:
    given = {name: value for name, value in (OPTIONS | options).items() if value is not None}

    with pytest.raises(ConfigError, match=text):
        make(given, PLAIN, overwrite=False)


@pytest.mark.parametrize(
    ("options", "batch", "stream"),
    [
        ({}, "writeId: got nothing, expected an id for delivery 'exactly-once'", None),
        ({"sinkId": "s"}, "sinkId: got 's' for a table, expected writeId", None),
        ({"writeId": "w"}, None, "writeId: got 'w' for a stream, expected sinkId"),
        ({"writeId": ""}, "writeId: got '' .str., expected a text of 1 to 200", "writeId: got ''"),
        ({FOREACH_BATCH_ID: "7", "sinkId": "s"}, None, None),
        ({"transactionalIdPrefix": "p" * 201, "writeId": "w"}, "Prefix: got 'ppp", "got 'ppp"),
        (
            {"delivery": "at-least-once", "writeId": "w"},
            "writeId: got 'w' .str., expected it with",
            "w",
        ),
    ],
)
def test_ids_of_exactly_once_delivery(
    options: dict[str, str], batch: str | None, stream: str | None
) -> None:
    given = {**OPTIONS, "delivery": "exactly-once", **options}
    for make, text in ((batch_writer, batch), (stream_writer, stream)):
        if text is None:
            assert "ExactlyOnce" in repr(make(given, PLAIN, overwrite=False).__dict__)
        else:
            with pytest.raises(ConfigError, match=text):
                make(given, PLAIN, overwrite=False)


def test_sink_and_write_have_names_of_their_own() -> None:
    given = {**OPTIONS, "delivery": "exactly-once", "transactionalIdPrefix": "p"}
    task = TaskIdentity(2, batch_id=7, query_id="q")
    for options, is_stream, name, batch_id in (
        ({}, True, "p-q-2", 7),
        ({"sinkId": "s"}, True, "p-s-2", 7),
        ({"writeId": "w"}, False, "p-w-2", 0),
        ({"sinkId": "s", FOREACH_BATCH_ID: "9"}, False, "p-s-2", 7),
    ):
        delivery = plan_write({**given, **options}, PLAIN, is_stream=is_stream).delivery
        assert isinstance(delivery, ExactlyOnce)
        identity = delivery._identity
        assert (identity.transactional_id(task), identity.batch_id(task)) == (name, batch_id)


@pytest.mark.parametrize("make", [batch_writer, stream_writer])
def test_wrong_columns_fail_when_the_writer_is_created(make: Any) -> None:
    bad = T.StructType([T.StructField("value", T.LongType())])

    with pytest.raises(ConfigError, match="column 'value': got bigint"):
        make(OPTIONS, bad, overwrite=False)


def test_writer_pickles_and_hides_settings() -> None:
    writer = batch_writer({**OPTIONS, "kafka.client.id": "hunter2"}, PLAIN, overwrite=False)

    assert "hunter2" not in repr(copy.deepcopy(writer).__dict__)


def test_reports_of_failed_tasks_are_left_out() -> None:
    report = TaskReport(TaskIdentity(1), rows=5, bytes=50)

    assert reports_of([None, CommitMessage(report), Row()]) == [report]
