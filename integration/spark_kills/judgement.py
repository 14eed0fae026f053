"""Holds what was counted to what the documentation says."""

from integration.spark_kills.cells import Cell, Twice
from integration.spark_kills.crash_points import Point
from integration.spark_kills.workload import Count

Plans = list[tuple[str, str]]
"""Starts and ends of micro-batches, as JSON."""


def faults_of(cell: Cell, found: Count, predicted: int, whole: int) -> list[str]:
    """Return what is wrong with a count.

    Args:
        cell: The kill.
        found: The count.
        predicted: How many duplicates there are to be.
        whole: How many there would be, had all that was repeated been acknowledged before.
    """
    faults = []
    if found.lost:
        faults.append(f"{found.lost} records are lost")
    if found.strange:
        faults.append(f"{found.strange} records are none of the job's")
    if found.duplicates != predicted:
        faults.append(f"{found.duplicates} duplicates, {predicted} were to be expected")
    fits = {
        Twice.NOTHING: found.duplicates == 0,
        Twice.SOME: 0 < found.duplicates < whole,
        Twice.ALL: found.duplicates == whole > 0,
    }
    if not fits[cell.twice]:
        faults.append(f"{found.duplicates} duplicates of {whole}, expected {cell.twice}")
    return faults


def replay_faults(point: Point, before: Plans, after: Plans) -> list[str]:
    """Return what is wrong with the first micro-batch of a second life.

    Args:
        point: Where the first life ended.
        before: What was planned in it.
        after: What was planned in the second.
    """
    last, first = before[-1], after[0]
    if point is Point.NEXT_PLAN:
        return [] if first[0] == last[1] else [f"began at {first[0]}, but {last[1]} was done"]
    return [] if first == last else [f"planned {last}, but read {first}"]
