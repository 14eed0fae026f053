"""Guard that kills a process group when this process ends."""

import contextlib
import os
import signal
import subprocess

# `read` returns when the pipe closes, which the kernel sees to even after a kill -9 of its owner.
_SCRIPT = 'read -r _; kill -9 "-$1" 2>/dev/null'


class OrphanGuard:
    """A small shell that waits for the end of this process and then kills `process_group`."""

    def __init__(self, process_group: int) -> None:
        self._process_group = process_group
        self._shell: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "orphan-guard", str(self._process_group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Stops guarding a group that has ended, because its id may be reused."""
        if self._shell is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell = None
