"""Runs of one target in one process, with its inputs, checks and findings."""

from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.oracle import FindingError, Oracle, input_name
from tests.fuzz.targets import target

_MEASURE_EVERY = 16


class Session:
    """Runs inputs of a target.

    Args:
        name: The target.
        directory: Output directory: each finding once, with a description of the failure.

    Attributes:
        target: The target.
        runs: Number of inputs that were run.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.target = target(name)
        self.runs = 0
        self._name = name
        self._directory = directory
        self._oracle = Oracle(self.target)
        self._places: set[str] = set()

    def inputs(self) -> list[bytes]:
        """Return seeds and corpus."""
        return [*corpus.load(self._name), *self.target.seeds()]

    def check(self, data: bytes) -> None:
        """Run an input; measure memory for some of them only, which is slow."""
        self.runs += 1
        try:
            self._oracle.check(data, measure=self.runs % _MEASURE_EVERY == 0)
        except FindingError as finding:
            self._keep(data, finding)

    def close(self) -> None:
        """Finish the target."""
        self._oracle.close()
        self.target.finish()

    def _keep(self, data: bytes, finding: FindingError) -> None:
        if finding.place in self._places:
            return
        self._places.add(finding.place)
        path = self._directory / f"finding-{input_name(data)}"
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{finding.place}\n{finding}\n")
