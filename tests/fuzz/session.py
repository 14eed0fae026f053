"""One target in one process: its inputs, what is checked of each run, and what was found."""

from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.oracle import FindingError, Oracle, input_name
from tests.fuzz.targets import target

_MEASURE_EVERY = 16


class Session:
    """Runs inputs of a target.

    Args:
        name: The target.
        directory: Where findings go, each once: the input, and beside it what happened.

    Attributes:
        target: The target itself.
        runs: How many inputs were run.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.target = target(name)
        self.runs = 0
        self._name = name
        self._directory = directory
        self._oracle = Oracle(self.target)
        self._places: set[str] = set()

    def inputs(self) -> list[bytes]:
        """Return what to begin with."""
        return [*corpus.load(self._name), *self.target.seeds()]

    def check(self, data: bytes) -> None:
        """Run an input; the memory is measured now and then, for that is slow."""
        self.runs += 1
        try:
            self._oracle.check(data, measure=self.runs % _MEASURE_EVERY == 0)
        except FindingError as finding:
            self._keep(data, finding)

    def close(self) -> None:
        """Bring the target to its end."""
        self._oracle.close()
        self.target.settle()

    def _keep(self, data: bytes, finding: FindingError) -> None:
        if finding.place in self._places:
            return
        self._places.add(finding.place)
        path = self._directory / f"finding-{input_name(data)}"
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{finding.place}\n{finding}\n")
