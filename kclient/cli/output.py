"""Output of the client commands: text for people, or one JSON object per line for programs."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import TypeVar

from kclient.admin.results import Results
from kclient.common.errors import KafkaError

K = TypeVar("K")
V = TypeVar("V")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def show(options: argparse.Namespace, text: str, result: object) -> None:
    """Print a result: as text, or with --json as one object on one line.

    Args:
        options: The parsed command line.
        text: What people read.
        result: A result of `AdminClient`, or a mapping.
    """
    print(json.dumps(as_json(result), ensure_ascii=False) if options.json else text)


def as_json(value: object) -> object:
    """Return a result of `AdminClient` in the types of JSON.

    Named tuples are objects with the names of their fields; sets are sorted lists; constants are
    their names, and an error is its text.
    """
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, BaseException):
        return str(value)
    fields = getattr(value, "_asdict", None)
    if fields is not None:
        value = fields()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value


def number(value: int | None) -> str:
    """Return a number as text, or a dash for None."""
    return "-" if value is None else str(value)


def show_rows(
    options: argparse.Namespace, columns: Sequence[str], rows: Sequence[Mapping[str, object]]
) -> None:
    """Print rows: some of their fields as a table, or with --json each as an object."""
    if options.json:
        for row in rows:
            show(options, "", row)
    elif rows:
        print(table(columns, [[row[name] for name in columns] for row in rows]))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as columns of equal width, below their names; None is shown as a dash."""
    lines = [[str(name).upper().replace("_", " ") for name in header]]
    lines += [["-" if item is None else str(item) for item in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(item.ljust(width) for item, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def show_errors(
    command: str, results: Results[K, V], ignored: type[KafkaError] | tuple[()] = ()
) -> int:
    """Print the error of each item that failed on standard error; return the exit status.

    Errors of the class `ignored` are no failure.
    """
    errors = [error for error in results.errors.values() if not isinstance(error, ignored)]
    for error in errors:
        print(f"kclient {command}: {error}", file=sys.stderr)
    return 1 if errors else 0


def succeeded(results: Results[K, V]) -> list[tuple[K, V]]:
    """Return the items that succeeded, with their results; `show_errors` prints the others."""
    errors = results.errors
    return [(item, results[item]) for item in results if item not in errors]
