"""Selection and validation of the columns of a sink."""

from collections.abc import Sequence

import pytest
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.sink.column_plan import ColumnPlan, ColumnSelection

HEADERS = T.ArrayType(
    T.StructType([T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())])
)
FULL = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.StringType()),
        T.StructField("headers", HEADERS),
    ]
)


def schema(**types: T.DataType) -> Sequence[T.StructField]:
    return [T.StructField(name, kind) for name, kind in types.items()]


def test_columns_are_selected_by_default_names() -> None:
    plan = ColumnSelection().checked_plan(FULL.fields)

    assert plan == ColumnPlan(
        topic=None,
        topic_column="topic",
        key="key",
        value="value",
        headers="headers",
        partition="partition",
    )
    assert plan.names() == ["topic", "key", "value", "headers", "partition"]


def test_topic_argument_takes_precedence_over_the_column() -> None:
    plan = ColumnSelection(topic="t").checked_plan(FULL.fields)

    assert (plan.topic, plan.topic_column) == ("t", None)


def test_columns_can_be_renamed_or_disabled() -> None:
    selection = ColumnSelection(topic="t", key="topic", value="key", headers=None, partition=None)

    assert selection.checked_plan(FULL.fields).roles() == {"key": "topic", "value": "key"}


@pytest.mark.parametrize(
    ("selection", "fields", "text"),
    [
        (
            ColumnSelection(topic="t"),
            schema(vale=T.StringType()),
            "value: got the columns 'vale', expected one with the name 'value'; did you mean",
        ),
        (
            ColumnSelection(topic="t"),
            [],
            "value: got no columns, expected one with the name 'value'",
        ),
        (
            ColumnSelection(topic="t", key="k"),
            schema(value=T.StringType()),
            "key: got the columns 'value', expected one with the name 'k'",
        ),
        (
            ColumnSelection(),
            schema(value=T.StringType()),
            "got neither an option 'topic' nor a column 'topic'",
        ),
        (
            ColumnSelection(topic="t"),
            schema(value=T.LongType()),
            "column 'value': got bigint, expected string or binary; cast it to string",
        ),
        (
            ColumnSelection(topic="t", key="n"),
            schema(value=T.BinaryType(), n=T.DoubleType()),
            "column 'n': got double, expected string or binary",
        ),
        (
            ColumnSelection(),
            schema(value=T.BinaryType(), topic=T.NullType()),
            "column 'topic': got void, expected string",
        ),
        (
            ColumnSelection(topic="t"),
            schema(value=T.BinaryType(), partition=T.LongType()),
            "column 'partition': got bigint, expected int; cast it to int",
        ),
        (
            ColumnSelection(topic="t"),
            schema(value=T.BinaryType(), headers=T.MapType(T.StringType(), T.BinaryType())),
            (
                "column 'headers': got map<string,binary>, expected "
                "array<struct<key:string,value:binary>>"
            ),
        ),
        (
            ColumnSelection(topic="t"),
            schema(
                value=T.BinaryType(),
                headers=T.ArrayType(T.StructType([T.StructField("key", T.StringType())])),
            ),
            "column 'headers': got array<struct<key:string>>",
        ),
        (
            ColumnSelection(topic="t"),
            [*schema(value=T.StringType()), *schema(value=T.StringType())],
            "column 'value': got 2 columns with that name, expected one",
        ),
    ],
)
def test_unsuitable_columns_fail(
    selection: ColumnSelection, fields: Sequence[T.StructField], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        selection.checked_plan(fields)

    assert text in str(caught.value)
