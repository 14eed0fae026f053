"""The table of the consumer: SQLite, with a row for each key."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from examples.flights_pipeline.figures import Cell, Figures, Statistics


class ResultTable:
    """A table in a file with the last value of each key.

    Args:
        file: The file; created if it does not exist.
    """

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, timeout=30.0)  # two members write to it
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS statistics"
            " (key TEXT PRIMARY KEY, value TEXT NOT NULL, stored INTEGER NOT NULL)"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def __len__(self) -> int:
        """Number of keys."""
        row: tuple[int] = self._connection.execute("SELECT count(*) FROM statistics").fetchone()
        return row[0]

    @property
    def stored(self) -> int:
        """Number of records that were stored, with those that replaced an earlier one."""
        row: tuple[int | None] = self._connection.execute(
            "SELECT sum(stored) FROM statistics"
        ).fetchone()
        return row[0] or 0

    def put(self, records: Iterable[tuple[str, str]]) -> None:
        """Insert or replace values by their keys; when it returns, they are in the file."""
        with self._connection:  # one transaction
            self._connection.executemany(
                "INSERT INTO statistics VALUES (?, ?, 1)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value, stored = stored + 1",
                records,
            )

    def statistics(self) -> Statistics:
        """Return all figures."""
        rows = self._connection.execute("SELECT key, value FROM statistics")
        return {Cell(*key.split(" ")): Figures.from_json(json.loads(value)) for key, value in rows}
