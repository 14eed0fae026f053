"""What is shown while the pipeline runs: a line for each thing done, with its time."""

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
    """Writes lines with the seconds since it was made; threads may use it at the same time."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._began = time.monotonic()
        self._turn = threading.Lock()

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return time.monotonic() - self._began

    def say(self, step: str, text: str) -> None:
        """Write what a step has done."""
        first, *more = text.splitlines()
        self.write(f"{self.seconds:7.1f} s  {step:<9} {first}")
        for line in more:
            self.write(f"{'':20} {line}")

    def write(self, line: str) -> None:
        """Write a line as it is."""
        with self._turn:
            print(line, file=self._out, flush=True)


class BatchLines(StreamingQueryListener):
    """Says what each micro-batch of a query did; Spark calls it from a thread of its own."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._ended = threading.Event()

    def await_end(self) -> None:
        """Wait until all has been said of a query that was stopped."""
        self._ended.wait(timeout=10)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """The query's start is told by who starts it."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Say what a micro-batch did."""
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
        """There is no more to say; a failure is raised where the query is waited for."""
        self._ended.set()
