"""Wall time and CPU time of a part of a process."""

import resource
import time
from pathlib import Path

from integration.benchmarks.workload import Consumed, Measurement


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_bytes() -> int:
    # From /proc, because on Linux children inherit ru_maxrss of the parent.
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Meter:
    """Started by a driver when its client is warm, stopped when the last record is safe."""

    def __init__(self) -> None:
        self._skipped = 0
        self._started = self._started_cpu = 0.0
        self._seconds = self._cpu = 0.0

    def start(self, skipped: int = 0) -> None:
        """Begins the timed part; `skipped` records were moved before it, to warm up."""
        self._skipped = skipped
        self._started_cpu = _cpu_seconds()
        self._started = time.perf_counter()

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._started
        self._cpu = _cpu_seconds() - self._started_cpu

    def measurement(self, claimed: int, seen: Consumed | None = None) -> Measurement:
        """Returns what was measured; `claimed` counts the warm-up too."""
        return Measurement(
            timed_records=claimed - self._skipped,
            claimed=claimed,
            seconds=self._seconds,
            cpu_seconds=self._cpu,
            peak_bytes=_peak_bytes(),
            value_bytes=seen.value_bytes if seen else 0,
            offset_sum=seen.offset_sum if seen else 0,
        )
