"""What came of a run of the pipeline."""

from dataclasses import dataclass
from pathlib import Path

from examples.flights_pipeline.figures import Statistics


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What came of a run.

    Attributes:
        flights: How many flights were sent.
        statistics: What was read from the topic of the statistics.
        records: How many records that were; more than statistics if some came twice.
        batches: How many micro-batches Spark ran.
        too_late: Rows that came after their window was closed; 0 unless something is wrong.
        differences: Figures that are not what pandas finds in the source, in words.
        report: Where the HTML report is.
        seconds: How long it took.
    """

    flights: int
    statistics: Statistics
    records: int
    batches: int
    too_late: int
    differences: tuple[str, ...]
    report: Path
    seconds: float

    @property
    def matches(self) -> bool:
        """Whether every figure is right."""
        return not self.differences
