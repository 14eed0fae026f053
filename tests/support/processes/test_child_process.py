"""The harness for processes captures output, waits with deadlines, and leaves no process."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.support.checks.waiting import HarnessError, wait_until
from tests.support.processes.child_process import ChildProcess
from tests.support.processes.process_table import SystemProcess, descendants

# Like PySpark's daemons, the child has a process group of its own.
FAMILY = """
import subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("has a child", flush=True)
child.wait()
"""


def python(code: str, directory: Path, *arguments: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code, *arguments], directory, name="program")


def shell(code: str, directory: Path) -> ChildProcess:
    return ChildProcess(["/bin/sh", "-c", code], directory, name="program")


def child_of(pid: int) -> SystemProcess:
    (child,) = wait_until(lambda: descendants(pid), "there is a child", 10)
    return child


def test_process_is_killed_with_its_descendants(tmp_path: Path) -> None:
    with python(FAMILY, tmp_path) as process:
        assert process.wait_for(re.compile(r"has a (\w+)"))[1] == "child"
        child = child_of(process.pid)
        assert child.runs()
    assert not process.is_running
    assert not child.runs()


def test_exit_before_expected_output_is_reported_with_output(tmp_path: Path) -> None:
    with shell("echo no more; echo memory >&2; exit 3", tmp_path) as process:
        expected = r"(?s)program exited with 3 before it wrote 'ready':\nno more.*memory"
        with pytest.raises(HarnessError, match=expected):
            process.wait_for("ready")


def test_timeout_is_reported_with_output(tmp_path: Path) -> None:
    with shell("echo starting; exec sleep 600", tmp_path) as process:
        process.wait_for("starting")
        with pytest.raises(HarnessError, match=r"writes 'ready': not true after 0\.1 s") as caught:
            process.wait_for("ready", 0.1)
        assert "starting" in caught.value.__notes__[0]
        with pytest.raises(HarnessError, match=r"(?s)still ran after 0\.1 s:\nstarting"):
            process.wait(0.1)


def test_wrong_exit_status_is_reported_with_output(tmp_path: Path) -> None:
    with shell("echo first; exit 4", tmp_path) as process:
        with pytest.raises(HarnessError, match=r"program exited with 4:\nfirst"):
            process.finish()
        assert process.finish(4) == "first\n"


def test_input_signals_and_environment_reach_the_process(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['NAME'], sys.stdin.readline(), flush=True); input()"
    with ChildProcess([sys.executable, "-c", code], tmp_path, environment={"NAME": "x"}) as process:
        process.enter(b"line\n")
        process.wait_for("x line")
        process.suspend()
        process.resume()
        process.terminate()
        assert process.wait() == -signal.SIGTERM


DIES = """
import os, sys
from pathlib import Path
from tests.support.processes.child_process import ChildProcess
command = ["/bin/sh", "-c", "while :; do sleep 60; done"]
child = ChildProcess(command, Path(sys.argv[1]), name="child", is_guarded=True)
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_guarded_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    with python(DIES, tmp_path, str(tmp_path)) as parent:
        child = int(parent.finish(-signal.SIGKILL))
        wait_until(lambda: not group_exists(child), "the child of a killed parent has ended", 10)


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
