"""Resources that a process uses, as the operating system counts them."""

import os
import resource
from pathlib import Path


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def peak_bytes(pid: int) -> int:
    """Return the peak resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024


def open_descriptors(pid: int) -> int:
    """Return the number of open descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeping_since(pid: int) -> int | None:
    """Return how often the main thread of a process has begun to sleep; None if it does not sleep.

    The same number a while later means that it waits, and not for Python's lock: that wait is
    repeated every 5 ms.
    """
    lines = Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines()
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return int(fields["voluntary_ctxt_switches"][0]) if fields["State"][0] == "S" else None
