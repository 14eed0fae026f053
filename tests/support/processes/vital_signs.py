"""Memory, files and threads of processes over time, and whether they grow."""

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MIB = 1 << 20
_KIB = 1 << 10


@dataclass(frozen=True, slots=True)
class Signs:
    """What a process used at a moment.

    Attributes:
        at: When, by the monotonic clock, in seconds.
        rss: Resident memory in bytes.
    """

    at: float
    rss: int
    files: int
    threads: int


def signs_of(pid: int) -> Signs:
    """Return what a process uses now, by /proc.

    Raises:
        OSError: It is gone.
    """
    home = Path("/proc") / str(pid)
    status = dict(
        line.split(":", 1) for line in (home / "status").read_text().splitlines() if ":" in line
    )
    rss = int(status.get("VmRSS", "0 kB").split()[0]) * _KIB
    files = sum(1 for _ in (home / "fd").iterdir())
    return Signs(time.monotonic(), rss, files, int(status["Threads"]))


class VitalSigns:
    """The course of the signs of several processes by their names."""

    def __init__(self) -> None:
        self._courses: dict[str, list[Signs]] = defaultdict(list)

    def sample(self, name: str, pid: int) -> None:
        """Add what the process uses now."""
        self.add(name, [signs_of(pid)])

    def add(self, name: str, signs: Iterable[Signs]) -> None:
        """Add what a process used, in order of time."""
        self._courses[name] += signs

    def names(self) -> list[str]:
        return sorted(self._courses)

    def course(self, name: str, after: float = 0.0) -> list[Signs]:
        """Return the samples later than `after`, by the monotonic clock."""
        return [one for one in self._courses[name] if one.at > after]

    def growth(self, name: str, after: float) -> str:
        """Return the growth of the process after warm-up, as text."""
        course = self.course(name, after)
        if len(course) < 2:
            return f"{name}: too few samples"
        files = [one.files for one in course]
        threads = [one.threads for one in course]
        # By quarters: a step, as at the first long outage, is no slope.
        marks = [course[round(part * (len(course) - 1) / 4)] for part in range(5)]
        return (
            f"{name}: RSS {', '.join(f'{one.rss / _MIB:.1f}' for one in marks)} MiB, "
            f"{slope([(one.at, one.rss) for one in course]) * 3600 / _MIB:+.2f} MiB/h; "
            f"files {min(files)} to {max(files)}; threads {min(threads)} to {max(threads)}"
        )


def slope(points: list[tuple[float, float]]) -> float:
    """Return how much y grows with x: the line of the least squares."""
    count = len(points)
    middle_x = sum(x for x, _ in points) / count
    middle_y = sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
