"""The result of a run of the pipeline."""

from dataclasses import dataclass
from pathlib import Path

from examples.flights_pipeline.figures import Statistics


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The result of a run.

    Attributes:
        flights: Number of flights sent.
        statistics: Statistics read from their topic.
        records: Number of records read; more than statistics if there were duplicates.
        read_again: Records that the consumer group read twice, because a member was killed.
        batches: Number of micro-batches.
        too_late: Rows that arrived after their window was closed; expected 0.
        differences: A line for each figure that does not match the source.
        report: File of the HTML report.
        seconds: Duration.
    """

    flights: int
    statistics: Statistics
    records: int
    read_again: int
    batches: int
    too_late: int
    differences: tuple[str, ...]
    report: Path
    seconds: float

    @property
    def matches(self) -> bool:
        """Whether every figure is right."""
        return not self.differences
