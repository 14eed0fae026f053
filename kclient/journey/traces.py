"""Traces of single records: the time of each stage, also as text for another process."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kclient.common.runtime import Clock

_NS_PER_S = 1_000_000_000
_TOLERANCE_NS = _NS_PER_S
"""Between two processes: one may have read its clocks before a step of the wall clock."""


class Trace(NamedTuple):
    """Stages of one record, without gap or overlap.

    Attributes:
        topic: Topic.
        partition: Partition.
        offset: Offset; -1 if the broker sent no response.
        started_ns: Start of the first stage, on the monotonic clock.
        ended_ns: End of the last stage.
        durations_ns: Time of each stage by name, in order.
    """

    topic: str
    partition: int
    offset: int
    started_ns: int
    ended_ns: int
    durations_ns: dict[str, int]


def durations(names: Sequence[str], points_ns: Sequence[int]) -> dict[str, int]:
    """Return the time of each stage, from the points between them.

    Some points are milliseconds as float, which differ from nanoseconds in the last digit; a point
    is therefore never earlier than the one before.

    Args:
        names: The stages.
        points_ns: Start of the first one and end of each.
    """
    ordered: list[int] = []
    for point in points_ns:
        ordered.append(max(point, ordered[-1]) if ordered else point)
    return {name: end - start for name, (start, end) in zip(names, pairwise(ordered), strict=True)}


def as_lines(traces: Iterable[Trace], clock: Clock) -> Iterator[str]:
    """Return a line with the times of both clocks, and a line for each trace."""
    yield json.dumps({"monotonicNs": clock.monotonic_ns(), "wallNs": clock.wall_ns()}) + "\n"
    for trace in traces:
        yield json.dumps(trace._asdict()) + "\n"


def from_lines(lines: Iterable[str], clock: Clock) -> list[Trace]:
    """Return the traces of lines that were written on this machine.

    Processes of a machine share the monotonic clock, which starts with the machine.

    Raises:
        ValueError: They are not lines of traces, or were written on another machine.
    """
    try:
        first, *others = (json.loads(line) for line in lines)
        started_ns = first["wallNs"] - first["monotonicNs"]
        traces = [Trace(**fields) for fields in others]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"traces: got other lines, expected those of Journey.lines: {error}"
        ) from error
    away_ns = abs(started_ns - (clock.wall_ns() - clock.monotonic_ns()))
    if away_ns > _TOLERANCE_NS:
        raise ValueError(
            f"traces: got monotonic times that started {away_ns / _NS_PER_S:,.0f} s away, expected "
            "those of this machine"
        )
    return traces
