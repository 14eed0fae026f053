"""Producers in processes of their own, and the outcomes of their records."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.clients.writer import Writing

_END_S = 150.0
_SHOWN_CHARACTERS = 2_000


class WriterProcess:
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
        self.name = name = writing.name
        self.journal = directory / f"{name}.journal" if journal else None
        self.sent = self.acknowledged = self.failures = 0
        self.reports: list[tuple[int, float]] = []
        self.seals: Counter[int] = Counter()
        self._done = False
        self._rest = b""
        self._output = directory / f"{name}.reported"
        self._log = directory / f"{name}.log"
        command = [sys.executable, "-m", "tests.support.clients.writer", *writing.arguments()]
        if self.journal is not None:
            command += ["--journal", str(self.journal)]
        with self._output.open("wb") as reported, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=reported,
                stderr=log,
                cwd=Path(__file__).parents[3],
            )
        self._reading = self._output.open("rb")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def look(self) -> None:
        """Read its state; fail if it ended, or if records failed and it has no journal."""
        *lines, self._rest = (self._rest + self._reading.read()).split(b"\n")
        for line in lines:
            self._note(json.loads(line))
        code = self._process.poll()
        assert code in {None, 0}, f"{self.name} ended with {code}: {self._errors()}"

    def finish(self) -> None:
        """Make it deliver its records and exit."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_END_S)
        assert code == 0, f"{self.name} ended with {code}: {self._errors()}"
        self.look()
        assert self._done, f"{self.name} did not report at its end"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(_END_S)
        self._reading.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _note(self, state: dict[str, Any]) -> None:
        self.sent, self.acknowledged = state["sent"], state["acknowledged"]
        self.failures = state["failures"]
        failed = self.failures and self.journal is None
        assert not failed, f"{self.name}: {self.failures} failed: {state['first_failures']}"
        self.reports.append((self.acknowledged, state["pause"]))
        if state["done"]:
            self._done = True
            self.seals = Counter({int(key): value for key, value in state["seals"].items()})

    def _errors(self) -> str:
        return self._log.read_text(errors="replace")[-_SHOWN_CHARACTERS:]
