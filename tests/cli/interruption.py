"""Interrupted commands: exit statuses, and what they print."""

from tests.support.processes.child_process import ChildProcess

INTERRUPTED = 130
TERMINATED = 143


def interrupted(process: ChildProcess) -> list[str]:
    """Interrupt; return the lines on standard error, log lines excluded."""
    process.interrupt()
    process.finish(INTERRUPTED)
    assert "Traceback" not in process.stderr
    assert "Error" not in process.stderr
    return [line for line in process.stderr.splitlines() if " WARNING " not in line]
