"""What a run of the pipeline can be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """A run of the pipeline.

    Attributes:
        bootstrap: Kafka's address; None starts the companion broker for the run.
        master: Spark's master: ``local[2]`` or ``spark://host:port``.
        flights: How many flights, spread evenly over the year; None for all.
        report: File for the report; None for one in `directory`.
        prefix: Begins the names of topics and consumer group.
        directory: For results, checkpoint and report; None makes a temporary one.
        checkpoint: Where Spark keeps its checkpoint; None for a place in `directory`. A cluster of
            several machines needs one that all of them share, and each run a new one.
        conf: Settings of Spark's.
    """

    bootstrap: str | None = None
    master: str = "local[2]"
    flights: int | None = None
    report: Path | None = None
    prefix: str = ""
    directory: Path | None = None
    checkpoint: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def flights_topic(self) -> str:
        """Topic with the flights."""
        return f"{self.prefix}flights"

    @property
    def statistics_topic(self) -> str:
        """Topic with the statistics."""
        return f"{self.prefix}flight-statistics"

    @property
    def group(self) -> str:
        """Consumer group that collects the statistics."""
        return f"{self.prefix}flight-report"
