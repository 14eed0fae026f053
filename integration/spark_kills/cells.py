"""The cells of the kill matrix: job, point of the kill, and expected duplicates."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from integration.spark_kills.crash_points import Point
from integration.spark_kills.jobs import STREAMS, Kind
from kclient.spark.options.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE

BATCH = 1
"""The micro-batch that is killed: there is one before it, and there are others after it."""


class Duplicates(StrEnum):
    """Share of the repeated records that is in the topic twice."""

    NOTHING = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Cell:
    """A kill.

    Attributes:
        kind: The job.
        point: Point of the kill.
        duplicates: Documented share of duplicates.
        executor: Whether an executor is killed and not the driver.
        latest: Whether the stream starts at the latest, and is killed in its first micro-batch.
        delivery: Delivery guarantee of the sink.
        broker: Whether the broker is killed and restarted, and not the driver.
    """

    kind: Kind
    point: Point
    duplicates: Duplicates
    executor: bool = False
    latest: bool = False
    delivery: str = AT_LEAST_ONCE
    broker: bool = False

    @property
    def name(self) -> str:
        """Name for the command line."""
        kind = self.kind.name.lower().replace("_", "-")
        latest = "-latest" if self.latest else ""
        once = "-once" if self.delivery == EXACTLY_ONCE else ""
        return f"{self.victim}/{kind}{once}{latest}/{self.point.name.lower().replace('_', '-')}"

    @property
    def victim(self) -> str:
        """The process that is killed."""
        return "executor" if self.executor else "broker" if self.broker else "driver"

    @property
    def streams(self) -> bool:
        """Whether the job is a stream."""
        return self.kind in STREAMS

    @property
    def batch(self) -> int | None:
        """Number of the micro-batch that is killed; None if unknown at the point."""
        is_known = self.streams and self.point not in {Point.PLANNED, Point.NEXT_PLAN}
        return BATCH if is_known else None

    @property
    def awaited(self) -> str:
        """File of the checkpoint that exists when the point is reached; empty for none."""
        if not self.streams:
            return ""
        if self.latest:
            return "offsets/0"
        return f"commits/{BATCH}" if self.point is Point.NEXT_PLAN else f"offsets/{BATCH}"


def _cells() -> Iterator[Cell]:
    for kind in (Kind.STREAM, Kind.BATCH):
        yield Cell(kind, Point.PLANNED, Duplicates.NOTHING)
        if kind is Kind.BATCH:
            yield Cell(kind, Point.BEGUN, Duplicates.NOTHING)
        yield Cell(kind, Point.MID_TASK, Duplicates.SOME)
        yield Cell(kind, Point.ALL_DONE, Duplicates.ALL)
        yield Cell(kind, Point.COMMITTED, Duplicates.ALL)
        if kind is Kind.STREAM:
            yield Cell(kind, Point.NEXT_PLAN, Duplicates.NOTHING)
    yield Cell(Kind.STREAM, Point.PLANNED, Duplicates.NOTHING, latest=True)
    yield Cell(Kind.WINDOWS, Point.ALL_DONE, Duplicates.ALL)
    yield Cell(Kind.FOREACH_BATCH, Point.COMMITTED, Duplicates.ALL)
    yield Cell(Kind.FOREACH_PARTITION, Point.MID_TASK, Duplicates.SOME)
    yield Cell(Kind.WRITE_PARTITIONS, Point.MID_TASK, Duplicates.SOME)
    for kind in (Kind.STREAM, Kind.BATCH, Kind.FOREACH_PARTITION, Kind.WRITE_PARTITIONS):
        yield Cell(kind, Point.MID_TASK, Duplicates.SOME, executor=True)
        if kind in {Kind.STREAM, Kind.BATCH}:
            yield Cell(kind, Point.TASK_DONE, Duplicates.ALL, executor=True)


def _cells_once() -> Iterator[Cell]:
    """Return the kills with exactly-once delivery: none may leave a duplicate."""
    once = partial(Cell, duplicates=Duplicates.NOTHING, delivery=EXACTLY_ONCE)
    for kind in (Kind.STREAM, Kind.BATCH):
        for point in (
            Point.PLANNED,
            Point.MID_TASK,
            Point.COMMITTING,
            Point.ALL_DONE,
            Point.COMMITTED,
        ):
            yield once(kind, point)
    yield once(Kind.WINDOWS, Point.ALL_DONE)
    yield once(Kind.FOREACH_BATCH, Point.COMMITTED)
    yield once(Kind.FOREACH_PARTITION, Point.MID_TASK)
    yield once(Kind.WRITE_PARTITIONS, Point.MID_TASK)
    for kind in (Kind.STREAM, Kind.BATCH):
        yield once(kind, Point.MID_TASK, executor=True)
        yield once(kind, Point.TASK_DONE, executor=True)
        yield once(kind, Point.MID_TASK, broker=True)
        yield once(kind, Point.COMMITTING, broker=True)


CELLS = (*_cells(), *_cells_once())
SHORT = (
    "driver/stream/mid-task",
    "driver/stream/next-plan",
    "driver/stream-once/mid-task",
    "driver/stream-once/all-done",
    "executor/batch/task-done",
)
"""The cells that `integration/test_spark_kills.py` runs."""


def named(names: Iterator[str] | list[str] | tuple[str, ...]) -> list[Cell]:
    """Return the cells whose names contain one of these.

    Raises:
        ValueError: No cell has a name with one of them.
    """
    for name in names:
        if not any(name in cell.name for cell in CELLS):
            raise ValueError(f"--only: got {name!r}, expected a part of a cell's name; see --list")
    return [cell for cell in CELLS if any(name in cell.name for name in names)]
