"""The figures of several rounds in one."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])

    def range_text(self, form: str) -> str:
        return f"{self.lowest:{form}}..{self.highest:{form}}"
