"""Producers in processes of their own, and what they were told of their records."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_END_S = 150.0
_SAID = 2_000


class WriterProcess:
    """A process of tests.support.writer; leaving the block kills it if it still runs.

    Attributes:
        name: The beginning of its records' keys.
        sent: How many records it has sent, as of the last `look`.
        acknowledged: How many of them the broker has taken.
        failures: How many of them failed.
        told: How many were acknowledged each time it told, and the longest time in seconds that
            nothing was, since it had told before.
        seals: Once it has ended: for each partition the sum of the seals of what it was told of.
    """

    def __init__(self, bootstrap: str, topic: str, name: str, rate: int, directory: Path) -> None:
        self.name = name
        self.sent = self.acknowledged = self.failures = 0
        self.told: list[tuple[int, float]] = []
        self.seals: Counter[int] = Counter()
        self._done = False
        self._rest = b""
        self._output = directory / f"{name}.told"
        self._log = directory / f"{name}.log"
        command = [sys.executable, "-m", "tests.support.writer", "--bootstrap", bootstrap]
        command += ["--topic", topic, "--name", name, "--rate", str(rate)]
        with self._output.open("wb") as told, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=told,
                stderr=log,
                cwd=Path(__file__).parents[2],
            )
        self._reading = self._output.open("rb")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def look(self) -> None:
        """Read what it told; fail if records failed or it ended."""
        *lines, self._rest = (self._rest + self._reading.read()).split(b"\n")
        for line in lines:
            self._note(json.loads(line))
        code = self._process.poll()
        assert code in {None, 0}, f"{self.name} ended with {code}: {self._said()}"

    def finish(self) -> None:
        """Let it deliver what it has and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_END_S)
        assert code == 0, f"{self.name} ended with {code}: {self._said()}"
        self.look()
        assert self._done, f"{self.name} said nothing at its end"

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
        assert not self.failures, f"{self.name}: {self.failures} failed: {state['first_failures']}"
        self.told.append((self.acknowledged, state["pause"]))
        if state["done"]:
            self._done = True
            self.seals = Counter({int(key): value for key, value in state["seals"].items()})

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-_SAID:]
