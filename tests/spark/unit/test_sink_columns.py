"""Which columns a sink uses, and which it refuses before anything is sent."""

from collections.abc import Sequence

import pytest
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.sink.column_plan import ColumnPlan, ColumnWishes

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


def test_columns_are_found_by_their_usual_names_and_others_are_left_alone() -> None:
    plan = ColumnWishes().checked_plan(FULL.fields)

    assert plan == ColumnPlan(
        topic=None,
        topic_column="topic",
        key="key",
        value="value",
        headers="headers",
        partition="partition",
    )
    assert plan.names() == ["topic", "key", "value", "headers", "partition"]


def test_the_topic_that_is_named_goes_over_the_column() -> None:
    plan = ColumnWishes(topic="t").checked_plan(FULL.fields)

    assert (plan.topic, plan.topic_column) == ("t", None)


def test_a_column_may_be_unwanted_or_have_another_name() -> None:
    wishes = ColumnWishes(topic="t", key="topic", value="key", headers=None, partition=None)

    assert wishes.checked_plan(FULL.fields).roles() == {"key": "topic", "value": "key"}


@pytest.mark.parametrize(
    ("wishes", "fields", "text"),
    [
        (
            ColumnWishes(topic="t"),
            schema(vale=T.StringType()),
            "value: got no column 'value', expected one of the columns 'vale'; did you mean 'vale'",
        ),
        (ColumnWishes(topic="t"), [], "value: got no column 'value'"),
        (
            ColumnWishes(topic="t", key="k"),
            schema(value=T.StringType()),
            "key: got no column 'k'",
        ),
        (
            ColumnWishes(),
            schema(value=T.StringType()),
            "got neither an option 'topic' nor a column 'topic'",
        ),
        (
            ColumnWishes(topic="t"),
            schema(value=T.LongType()),
            "column 'value': got bigint, expected string or binary; cast it to string",
        ),
        (
            ColumnWishes(topic="t", key="n"),
            schema(value=T.BinaryType(), n=T.DoubleType()),
            "column 'n': got double, expected string or binary",
        ),
        (
            ColumnWishes(),
            schema(value=T.BinaryType(), topic=T.NullType()),
            "column 'topic': got void, expected string",
        ),
        (
            ColumnWishes(topic="t"),
            schema(value=T.BinaryType(), partition=T.LongType()),
            "column 'partition': got bigint, expected int; cast it to int",
        ),
        (
            ColumnWishes(topic="t"),
            schema(value=T.BinaryType(), headers=T.MapType(T.StringType(), T.BinaryType())),
            (
                "column 'headers': got map<string,binary>, expected "
                "array<struct<key:string,value:binary>>"
            ),
        ),
        (
            ColumnWishes(topic="t"),
            schema(
                value=T.BinaryType(),
                headers=T.ArrayType(T.StructType([T.StructField("key", T.StringType())])),
            ),
            "column 'headers': got array<struct<key:string>>",
        ),
        (
            ColumnWishes(topic="t"),
            [*schema(value=T.StringType()), *schema(value=T.StringType())],
            "column 'value': got 2 of that name, expected one",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_column(
    wishes: ColumnWishes, fields: Sequence[T.StructField], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        wishes.checked_plan(fields)

    assert text in str(caught.value)
