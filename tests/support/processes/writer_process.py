"""Producers in processes of their own, and the outcomes of their records."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.clients.writer import Writing
from tests.support.processes.child_process import ChildProcess

_END_S = 150.0


class WriterProcess(ChildProcess):
    """A process of `Writer`; the end of the block kills it if it still runs.

    Attributes:
        name: Prefix of its records' keys.
        journal: File of the outcome of each record; None if no record may fail.
        sent: Number of records sent, as of the last `look`.
        acknowledged: Number of records acknowledged.
        failures: Number of records that failed.
        reports: For each report, the number of acknowledged records and the longest time in
            seconds without an acknowledgement since the previous report.
        seals: After its end, for each partition the sum of the seals of acknowledged records.
    """

    def __init__(self, writing: Writing, directory: Path, *, journal: bool = False) -> None:
        """Start a writer.

        Args:
            writing: Its records and options.
            directory: Directory of its output.
            journal: Whether it continues when records fail, and writes each outcome.
        """
        self.journal = directory / f"{writing.name}.journal" if journal else None
        self.sent = self.acknowledged = self.failures = 0
        self.reports: list[tuple[int, float]] = []
        self.seals: Counter[int] = Counter()
        self._done = False
        self._rest = b""
        command = [sys.executable, "-m", "tests.support.clients.writer", *writing.arguments()]
        if self.journal is not None:
            command += ["--journal", str(self.journal)]
        super().__init__(command, directory, name=writing.name)
        self._reading = self._out.open("rb")

    def look(self) -> None:
        """Read its state; fail if it ended, or if records failed and it has no journal."""
        *lines, self._rest = (self._rest + self._reading.read()).split(b"\n")
        for line in lines:
            self._note(json.loads(line))
        code = self.exit_code()
        assert code in {None, 0}, f"{self.name} ended with {code}: {self.report()}"

    def close(self) -> None:
        """Make it deliver its records and exit; wait for the exit."""
        self.close_input()
        self.finish(timeout=_END_S)
        self.look()
        assert self._done, f"{self.name} did not report at its end"

    def __exit__(self, *error: object) -> None:
        super().__exit__(None, None, None)
        self._reading.close()

    def _note(self, state: dict[str, Any]) -> None:
        self.sent, self.acknowledged = state["sent"], state["acknowledged"]
        self.failures = state["failures"]
        failed = self.failures and self.journal is None
        assert not failed, f"{self.name}: {self.failures} failed: {state['first_failures']}"
        self.reports.append((self.acknowledged, state["pause"]))
        if state["done"]:
            self._done = True
            self.seals = Counter({int(key): value for key, value in state["seals"].items()})
