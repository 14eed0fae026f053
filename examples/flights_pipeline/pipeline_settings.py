"""The settings of a run of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """Settings of a run of the pipeline.

    Attributes:
        bootstrap: Kafka's address; None starts the companion broker for the run.
        security: Security protocol of the companion broker: ``plaintext``, ``ssl``,
            ``sasl_plaintext`` or ``sasl_ssl``.
        master: Spark's master: ``local[2]`` or ``spark://host:port``.
        flights: Number of flights, spread evenly over the year; None for all.
        report: File for the report; None for one in `directory`.
        prefix: Prefix of the names of topics and consumer group.
        directory: Directory for results, checkpoint and report; None creates a temporary one.
        checkpoint: Checkpoint of the query, new for each run; None for one in `directory`. The
            hosts of a cluster must share it.
        conf: Spark settings.
    """

    bootstrap: str | None = None
    security: str = "plaintext"
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

    @property
    def query_group(self) -> str:
        """Consumer group to which the query commits its progress, for monitoring."""
        return f"{self.prefix}flight-query"
