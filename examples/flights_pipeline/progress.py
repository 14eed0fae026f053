"""Progress output of the pipeline: a line with its time for each completed step."""

import sys
import threading
import time
from typing import TextIO

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class Progress:
    """Writes lines with the seconds since its creation. Thread-safe.

    Attributes:
        started_at: When it was created, in seconds since the epoch.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._started = time.monotonic()
        self.started_at = time.time()
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the creation."""
        return time.monotonic() - self._started

    def say(self, step: str, text: str) -> None:
        """Write a line for a step."""
        first, *more = text.splitlines()
        self.write(f"{self.seconds:7.1f} s  {step:<9} {first}")
        for line in more:
            self.write(f"{'':20} {line}")

    def write(self, line: str) -> None:
        """Write a line without time and step."""
        with self._lock:
            print(line, file=self._out, flush=True)


class BatchLines(StreamingQueryListener):
    """Writes a line for each micro-batch of a query; Spark calls it from its own thread."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._ended = threading.Event()

    def await_end(self) -> None:
        """Wait for the last event of a stopped query."""
        self._ended.wait(timeout=10)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Ignore the start of the query, which the pipeline reports."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Write a line for a micro-batch."""
        batch = event.progress
        watermark = str(batch.eventTime.get("watermark", "1970"))[:10]
        final = "none yet" if watermark.startswith("1970") else f"before {watermark}"
        self._progress.say(
            "stream",
            f"batch {batch.batchId:<3} {batch.numInputRows:>6,} rows in"
            f" {batch.batchDuration / 1000:4.1f} s, {batch.processedRowsPerSecond:>7,.0f} rows/s,"
            f" final windows: {final}",
        )

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Record the last event; `processAllAvailable` raises the error of a failed query."""
        self._ended.set()
