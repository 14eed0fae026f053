"""Statistics of traced records: percentiles of each stage, and their share of the whole."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kclient.common.metrics import percentile
from kclient.journey.stages import Stage
from kclient.journey.traces import Trace

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Times of one stage, or of all stages together, in milliseconds.

    Attributes:
        stage: The stage.
        count: Number of records.
        p50: Median.
        p90: 90th percentile.
        p99: 99th percentile.
        maximum: Largest value.
        share: Sum over the sum of all stages, from 0 to 1.
        ascending: All values in ascending order.
    """

    stage: Stage
    count: int
    p50: float
    p90: float
    p99: float
    maximum: float
    share: float
    ascending: Sequence[float] = field(repr=False)

    def as_fields(self) -> dict[str, Any]:
        """Return what `Report.as_fields` returns of a stage."""
        return {
            **asdict(self)["stage"]._asdict(),
            "count": self.count,
            "p50_ms": self.p50,
            "p90_ms": self.p90,
            "p99_ms": self.p99,
            "max_ms": self.maximum,
            "share": self.share,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """Stages of one client, which add up to a whole.

    Attributes:
        title: What the whole is.
        stages: Stages in order; those that took no time in any record are left out.
        whole: Times of the whole.
        failed: Number of traced records without an end.
        note: How the broker's stages were measured.
    """

    title: str
    stages: Sequence[StageTimes]
    whole: StageTimes
    failed: int
    note: str

    def as_fields(self) -> dict[str, Any]:
        """Return what `Report.as_fields` returns of a section."""
        return {
            "title": self.title,
            "note": self.note,
            "failed": self.failed,
            "stages": [each.as_fields() for each in self.stages],
            "whole": self.whole.as_fields(),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Statistics of a journey.

    Attributes:
        sections: One for each traced client.
    """

    sections: Sequence[Section]

    def as_fields(self) -> dict[str, Any]:
        """Return the statistics as JSON values; all times are milliseconds."""
        return {"sections": [each.as_fields() for each in self.sections]}


def summarize(
    title: str, stages: Iterable[Stage], traces: Sequence[Trace], *, failed: int = 0, note: str
) -> Section | None:
    """Return the statistics of traces; None if there are none.

    Args:
        title: What the stages are together.
        stages: All stages that the traces may have, in order.
        traces: The traces.
        failed: Number of traced records without an end.
        note: How the broker's stages were measured.
    """
    if not traces:
        return None
    total = sum(trace.ended_ns - trace.started_ns for trace in traces)
    rows = []
    for stage in stages:
        values = [
            trace.durations_ns[stage.name] for trace in traces if stage.name in trace.durations_ns
        ]
        if any(values):
            rows.append(_times(stage, values, total))
    whole = [trace.ended_ns - trace.started_ns for trace in traces]
    return Section(title, rows, _times(Stage("in all", "", "", "", ""), whole, total), failed, note)


def _times(stage: Stage, values_ns: list[int], total_ns: int) -> StageTimes:
    ascending = sorted(value / _NS_PER_MS for value in values_ns)
    return StageTimes(
        stage,
        len(ascending),
        percentile(ascending, 0.5),
        percentile(ascending, 0.9),
        percentile(ascending, 0.99),
        ascending[-1],
        sum(values_ns) / total_ns if total_ns else 0.0,
        ascending,
    )
