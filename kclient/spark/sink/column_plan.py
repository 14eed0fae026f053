"""The columns of a record, with the names of Spark's own connector."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, InvalidTypeError
from kclient.common.types import check_topic_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField


class Pick(Enum):
    """A column that is used if there is one with the default name."""

    IF_PRESENT = "if present"

    def __repr__(self) -> str:
        return "the column with that name, if there is one"


IF_PRESENT: Final = Pick.IF_PRESENT
Column = str | Pick | None
"""Name of a required column; `IF_PRESENT`; or None for a column that is not used."""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The columns of a DataFrame that make up its records.

    Attributes:
        topic: Topic of every record; None if a column has it.
        topic_column: Column with the topic.
        key: Column with the key.
        value: Column with the value.
        headers: Column with the headers.
        partition: Column with the partition.
    """

    topic: str | None = None
    topic_column: str | None = None
    key: str | None = None
    value: str = "value"
    headers: str | None = None
    partition: str | None = None

    def roles(self) -> dict[str, str]:
        """Return the column of each part of a record, by the default name of the part."""
        found = {
            "topic": self.topic_column,
            "key": self.key,
            "value": self.value,
            "headers": self.headers,
            "partition": self.partition,
        }
        return {role: name for role, name in found.items() if name is not None}

    def names(self) -> list[str]:
        """Return the used columns, each once."""
        return list(dict.fromkeys(self.roles().values()))

    def renamed(self) -> "ColumnPlan":
        """Return the plan for a DataFrame whose columns have the default names."""
        return ColumnPlan(
            topic=self.topic,
            topic_column=self.topic_column and "topic",
            key=self.key and "key",
            headers=self.headers and "headers",
            partition=self.partition and "partition",
        )

    def renaming(self, df: "DataFrame") -> "DataFrame":
        """Return a DataFrame of the used columns with the default names."""
        # Quoted, because a dot would select a field of a struct.
        found = {role: "`" + name.replace("`", "``") + "`" for role, name in self.roles().items()}
        return df.select([df[name].alias(role) for role, name in found.items()])


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """The columns by the user's arguments, before they are checked against a DataFrame.

    Attributes:
        topic: Topic of every record; takes precedence over the column ``topic``.
        key: Column with the key.
        value: Column with the value.
        headers: Column with the headers.
        partition: Column with the partition.
    """

    topic: str | None = None
    key: Column = IF_PRESENT
    value: str = "value"
    headers: Column = IF_PRESENT
    partition: Column = IF_PRESENT

    def __post_init__(self) -> None:
        if self.topic is not None:
            check_topic_name(self.topic)
        for what in ("key", "value", "headers", "partition"):
            name = getattr(self, what)
            if isinstance(name, str) and name:
                continue
            if what == "value" or not (name is None or isinstance(name, Pick)):
                raise InvalidTypeError(
                    f"{what}: got {describe(name)}, expected the name of a column"
                    + ("" if what == "value" else " or None")
                )

    def plan(self, names: Sequence[str]) -> ColumnPlan:
        """Select columns by the names of a DataFrame.

        Raises:
            ConfigError: A required column is missing, or its name is not unique.
        """
        found = ColumnPlan(
            topic=self.topic,
            topic_column=None if self.topic is not None else _topic_column(names),
            key=_chosen("key", self.key, names),
            value=_present("value", self.value, names),
            headers=_chosen("headers", self.headers, names),
            partition=_chosen("partition", self.partition, names),
        )
        for name in found.names():
            if names.count(name) > 1:
                raise ConfigError(
                    f"column {name!r}: got {names.count(name)} columns with that name, expected one"
                )
        return found

    def checked_plan(self, fields: "Iterable[StructField]") -> ColumnPlan:
        """Select columns of a schema, and check their types.

        Raises:
            ConfigError: As `plan`, or a column has a type that cannot be sent.
        """
        types = [(field.name, field.dataType) for field in fields]
        plan = self.plan([name for name, _ in types])
        by_name = dict(types)
        for name, is_right, expected, hint in (
            (plan.topic_column, _is_text, "string", "cast it to string"),
            (plan.key, _is_data, "string or binary", _CAST),
            (plan.value, _is_data, "string or binary", _CAST),
            (plan.headers, _is_headers, _HEADERS, "headers=None sends no headers"),
            (plan.partition, _is_int, "int", "cast it to int"),
        ):
            if name is not None and not is_right(by_name[name]):
                raise ConfigError(
                    f"column {name!r}: got {_shown(by_name[name])}, expected {expected}; {hint}"
                )
        return plan


_CAST: Final = "cast it to string, or convert it to JSON with to_json(struct(...))"
_HEADERS: Final = "array<struct<key:string,value:binary>>"


def _topic_column(names: Sequence[str]) -> str:
    if "topic" in names:
        return "topic"
    raise ConfigError(
        "topic: got neither an option 'topic' nor a column 'topic', expected one of them"
        + _nearest("topic", names)
    )


def _chosen(what: str, column: Column, names: Sequence[str]) -> str | None:
    if isinstance(column, Pick):
        return what if what in names else None
    return None if column is None else _present(what, column, names)


def _present(what: str, name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    listed = f"the columns {', '.join(map(repr, names)):.200}" if names else "no columns"
    raise ConfigError(
        f"{what}: got {listed}, expected one with the name {name!r}" + _nearest(name, names)
    )


def _nearest(name: str, names: Sequence[str]) -> str:
    folded = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def _kind(data_type: Any) -> str:
    kind: str = data_type.typeName()
    return kind


def _shown(data_type: Any) -> str:
    shown: str = data_type.simpleString()
    return shown


def _is_text(data_type: Any) -> bool:
    return _kind(data_type).startswith(("string", "varchar", "char"))


def _is_data(data_type: Any) -> bool:
    return _is_text(data_type) or _kind(data_type) == "binary"


def _is_int(data_type: Any) -> bool:
    return _kind(data_type) == "integer"


def _is_headers(data_type: Any) -> bool:
    if _kind(data_type) != "array" or _kind(data_type.elementType) != "struct":
        return False
    fields: list[tuple[str, Callable[[Any], bool]]] = [("key", _is_text), ("value", _is_binary)]
    given = data_type.elementType.fields
    return len(given) == 2 and all(
        field.name == name and is_right(field.dataType)
        for field, (name, is_right) in zip(given, fields, strict=True)
    )


def _is_binary(data_type: Any) -> bool:
    return _kind(data_type) == "binary"
