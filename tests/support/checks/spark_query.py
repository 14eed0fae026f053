"""Simulation of Spark's use of a stream source, without Spark."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.stream_reader import StreamReader, UnlimitedStreamReader
from tests.support.checks.travelled import travelled
from tests.support.clients.clients import Clients

EARLIEST = {"startingOffsets": "earliest"}

Options = Mapping[str, str]


class Query:
    """Spark's use of a source: offset log, commit log, and a new plan after a crash.

    Attributes:
        ends: Ends of the micro-batches, as Spark's offset log has them.
        committed: Number of these in the commit log.
    """

    def __init__(self, make: Callable[[], StreamReader]) -> None:
        self._make = make
        self.reader = make()
        self.ends: list[dict[str, Any]] = []
        self.committed = 0

    def start(self) -> dict[str, Any]:
        """Return the start of the micro-batch that is not committed yet."""
        return self.ends[self.committed - 1] if self.committed else self._initial()

    def plan(self) -> bool:
        """Log the end of the next micro-batch, if there is one."""
        start = self.start()
        reader: Any = self.reader
        if isinstance(reader, UnlimitedStreamReader):
            end = reader.latestOffset()
        else:
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(start):
            return False
        self.ends.append(json.loads(json.dumps(end)))
        return True

    def run(self) -> list[int]:
        """Read the last logged micro-batch, and commit it."""
        start = self.start()
        ranges = travelled(self.reader.partitions(start, self.ends[-1]))
        found = [row for one in ranges for row in numbers(travelled(self._make()).read(one))]
        self.committed = len(self.ends)
        return sorted(found)

    def batch(self) -> list[int] | None:
        """Read the next micro-batch; return None if there is none."""
        return self.run() if self.plan() else None

    def rest(self) -> list[list[int]]:
        """Read all available micro-batches."""
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
        return found

    def crash(self) -> None:
        """Continue from the checkpoint with a new source."""
        self.reader.stop()
        self.reader = self._make()

    def _initial(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.reader.initialOffset()))
        return found


Stream = Callable[[Options], Query]


def queries(clients: Clients, kind: type[StreamReader]) -> Iterator[Stream]:
    """Yield a function that creates queries, and stop them at the end."""
    made: list[Query] = []

    def make(options: Options) -> Query:
        made.append(Query(lambda: kind(parsed(clients, options))))
        return made[-1]

    yield make
    for query in made:
        query.reader.stop()


def numbers(batches: Iterator[Any]) -> list[int]:
    """Return the values of all rows."""
    return [int(value) for batch in batches for value in batch.column("value").to_pylist()]


def parsed(clients: Clients, options: Options) -> SourceOptions:
    """Return options for a stream from the cluster of `clients`."""
    servers = {"kafka.bootstrap.servers": clients.bootstrap}
    return SourceOptions.parse({**servers, **options}, streaming=True)
