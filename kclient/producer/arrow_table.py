"""Checks of the table given to `send_arrow`: column names, topics, batches."""

import difflib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import check_topic_name
from kclient.record.arrow import import_pyarrow
from kclient.record.arrow_columns import as_binary, checked

COLUMNS = ("value", "key", "partition", "timestamp", "headers", "topic")
"""Valid column names."""

_ROWS_HINT = (
    "leave it out; to send each row as JSON, use value_serializer=json_serializer and "
    "send_many(topic, table.to_pylist())"
)
_FEW_ROWS = 1024  # smaller batches are combined: each batch has a fixed cost


def arrow_batches(topic: str | None, data: object) -> list[Any]:
    """Check the column names of a table and return its Arrow batches.

    Args:
        topic: Topic of all, or None if the column ``topic`` names it.
        data: ``pyarrow.RecordBatch`` or ``pyarrow.Table``.

    Raises:
        ConfigError: pyarrow is not installed.
        InvalidTypeError: `data` is neither a batch nor a table.
        InvalidArgumentError: A column is unknown, missing or duplicate, or a buffer is too short.
    """
    if topic is not None:
        check_topic_name(topic)
    arrow = import_pyarrow()
    if not isinstance(data, arrow.RecordBatch | arrow.Table):
        raise InvalidTypeError(
            f"batch: got {_describe(data)}, expected a pyarrow.RecordBatch or pyarrow.Table"
        )
    table: Any = data
    _check_names(topic, table.schema.names)
    checked(table, "batch")
    batches: list[Any] = [table] if isinstance(data, arrow.RecordBatch) else table.to_batches()
    if len(batches) > 1 and table.num_rows < _FEW_ROWS * len(batches):
        batches = checked(table, "batch", full=True).combine_chunks().to_batches()
    return [batch for batch in batches if batch.num_rows]


def _describe(data: object) -> str:
    """Describe an argument and its conversion to a table, without the rows of a data frame."""
    kind = type(data)
    module = kind.__module__.partition(".")[0]
    if module == "pandas":
        return f"a pandas {kind.__name__} (pa.Table.from_pandas(df) makes a table of it)"
    if module == "polars":
        return f"a polars {kind.__name__} (df.to_arrow() makes a table of it)"
    if isinstance(data, dict):
        return "a dict (pa.table(columns) makes a table of it)"
    if isinstance(data, list):
        return "a list (pa.Table.from_pylist(rows) makes a table of it)"
    return describe(data)


def _check_names(topic: str | None, names: list[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name.lower(), COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else _ROWS_HINT
            raise InvalidArgumentError(
                f"column {name!r:.80}: expected one of {', '.join(COLUMNS)}; {hint}"
            )
        if names.count(name) > 1:
            raise InvalidArgumentError(f"column {name!r}: got it twice, expected it once")
    if "value" not in names:
        raise InvalidArgumentError(
            "column 'value': got none, expected one; a column of nulls makes tombstones"
        )
    if topic is None and "topic" not in names:
        raise InvalidArgumentError("topic: got None, expected a name, or a column 'topic'")
    if topic is not None and "topic" in names:
        raise InvalidArgumentError(
            f"topic: got {topic!r} and a column 'topic', expected one of the two; leave the "
            "column out, or give None to go by it"
        )


def topic_names(batch: Any, first: int) -> Any:
    """Return the column ``topic`` after checking each name.

    Args:
        batch: An Arrow record batch.
        first: Number of the first row in error texts.

    Raises:
        InvalidTypeError: The column does not hold strings.
        InvalidArgumentError: A row has no topic, or an invalid name.
    """
    names = _texts(batch.column("topic"))
    if names.null_count:
        row = first + import_module("pyarrow.compute").index(names.is_null(), value=True).as_py()
        raise InvalidArgumentError(f"topic: row {row}: got null, expected a topic name")
    for name in names.unique():
        try:
            check_topic_name(name.as_py())
        except InvalidArgumentError as error:
            row = first + import_module("pyarrow.compute").index(names, name).as_py()
            problem = str(error).removeprefix("topic: ")
            raise InvalidArgumentError(f"topic: row {row}: {problem}") from None
    return names


def by_topic(batch: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """Yield each topic and its rows in order; with several topics, rows are copied.

    Args:
        batch: An Arrow record batch.
        names: Result of `topic_names`.

    Raises:
        InvalidArgumentError: The batch is malformed.
    """
    equal = import_module("pyarrow.compute").equal
    unique: list[str] = names.unique().to_pylist()
    if len(unique) > 1:
        checked(batch, "batch", full=True)
    for name in unique:
        yield name, batch if len(unique) == 1 else batch.filter(equal(names, name))


def _texts(array: Any) -> Any:
    arrow = import_pyarrow()
    kind = array.type.value_type if arrow.types.is_dictionary(array.type) else array.type
    if str(kind) not in {"string", "large_string", "string_view"}:
        raise InvalidTypeError(f"topic: got Arrow type {array.type}, expected string")
    texts = as_binary(checked(array, "topic", full=True), "topic")
    return texts.cast(arrow.large_binary()).cast(arrow.large_string())
