"""Comparison of the counts with the documentation."""

from integration.spark_kills.cells import Cell, Duplicates
from integration.spark_kills.crash_points import Point
from integration.spark_kills.workload import Count

Plans = list[tuple[str, str]]
"""Starts and ends of micro-batches, as JSON."""


def faults_of(cell: Cell, found: Count, predicted: int, whole: int) -> list[str]:
    """Return the faults of a count.

    Args:
        cell: The kill.
        found: The count.
        predicted: Expected number of duplicates.
        whole: Number of repeated records.
    """
    faults = []
    if found.lost:
        faults.append(f"{found.lost} records are lost")
    if found.unexpected:
        faults.append(f"{found.unexpected} records are not of the job")
    if found.duplicates != predicted:
        faults.append(f"{found.duplicates} duplicates, expected {predicted}")
    fits = {
        Duplicates.NOTHING: found.duplicates == 0,
        Duplicates.SOME: 0 < found.duplicates < whole,
        Duplicates.ALL: found.duplicates == whole > 0,
    }
    if not fits[cell.duplicates]:
        faults.append(f"{found.duplicates} duplicates of {whole}, expected {cell.duplicates}")
    return faults


def replay_faults(point: Point, before: Plans, after: Plans) -> list[str]:
    """Return the faults of the first micro-batch after a restart.

    Args:
        point: Point of the kill.
        before: Plans before the kill.
        after: Plans after the restart.
    """
    last, first = before[-1], after[0]
    if point is Point.NEXT_PLAN:
        return (
            [] if first[0] == last[1] else [f"started at {first[0]}, but {last[1]} was committed"]
        )
    return [] if first == last else [f"planned {last}, but read {first}"]
