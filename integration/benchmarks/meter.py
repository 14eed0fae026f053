"""Wall time and CPU time of a part of a process."""

import os
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration.benchmarks.workload import Consumed, Measurement

_SETTLING, _BETWEEN = 10.0, 0.1


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


def _settled_bytes() -> int:
    """Returns the resident size once it is the same twice, as the client's threads may be busy."""
    deadline = time.monotonic() + _SETTLING
    last, now = -1, _resident_bytes()
    while now != last and time.monotonic() < deadline:
        time.sleep(_BETWEEN)
        last, now = now, _resident_bytes()
    return now


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[int(len(ordered) * part)] if ordered else 0.0


class Meter:
    """Started by a driver when its client is warm, stopped when the last record is safe."""

    def __init__(self) -> None:
        self._skipped = 0
        self._started = self._started_cpu = 0.0
        self._seconds = self._cpu = 0.0
        self._latencies: list[float] = []
        self._buffered_bytes = 0.0

    def start(self, skipped: int = 0) -> None:
        """Begins the timed part; `skipped` records were moved before it, to warm up."""
        self._skipped = skipped
        self._started_cpu = _cpu_seconds()
        self._started = time.perf_counter()

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._started
        self._cpu = _cpu_seconds() - self._started_cpu

    def note_process(self, skipped: int, seconds: float, cpu_seconds: float) -> None:
        """Takes what another process has measured, where the client is in that process."""
        self._skipped, self._seconds, self._cpu = skipped, seconds, cpu_seconds

    def note_latencies(self, seconds: list[float]) -> None:
        """Takes the time of each record until its acknowledgement."""
        self._latencies = sorted(seconds)

    @contextmanager
    def buffering(self, broker_pid: int, records: int, size: int) -> Iterator[None]:
        """Stops the broker while the block buffers records, and measures what they occupy.

        The bytes of the values themselves do not count.
        """
        os.kill(broker_pid, signal.SIGSTOP)
        try:
            before = _settled_bytes()
            yield
            self._buffered_bytes = (_settled_bytes() - before) / records - size
        finally:
            os.kill(broker_pid, signal.SIGCONT)

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
            p50=_quantile(self._latencies, 0.5),
            p99=_quantile(self._latencies, 0.99),
            buffered_bytes=self._buffered_bytes,
        )
