"""What runs Spark for tests ends all that it started, whatever came of it; shown without Spark."""

import json
import sys
from pathlib import Path

import pytest

from integration.harness.errors import HarnessError
from integration.harness.process_table import SystemProcess, descendants
from integration.harness.spark_daemon import SparkDaemon
from integration.harness.spark_driver import SparkDriver
from integration.harness.spark_standalone import StandaloneCluster
from integration.harness.waiting import wait_until

PYTHON = Path(sys.executable)
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
# As Spark's daemons of Python do, the child makes a process group of its own.
FAMILY = """
import subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("has a child", flush=True)
child.wait()
"""


def child_of(pid: int) -> SystemProcess:
    (child,) = wait_until(lambda: descendants(pid), "there is a child", 10)
    return child


def daemon(directory: Path, *command: str) -> SparkDaemon:
    return SparkDaemon("worker", command, directory, ENVIRONMENT)


def test_a_daemon_ends_with_what_it_started(tmp_path: Path) -> None:
    started = daemon(tmp_path, str(PYTHON), "-c", FAMILY)
    started.launch()
    assert started.await_log(r"has a (\w+)", 30)[1] == "child"
    (child,) = started.children()
    assert child.runs()
    started.kill()
    assert not started.running
    assert not child.runs()


def test_a_daemon_that_ends_too_early_is_told_with_its_words(tmp_path: Path) -> None:
    started = daemon(tmp_path, "/bin/sh", "-c", "echo no more memory; exit 3")
    started.launch()
    with pytest.raises(HarnessError, match="worker ended while it started:\nno more memory"):
        started.await_log("ready", 30)
    started.kill()


def test_a_daemon_that_does_not_get_ready_is_told_with_its_words(tmp_path: Path) -> None:
    started = daemon(tmp_path, "/bin/sh", "-c", "echo thinks; exec sleep 600")
    started.launch()
    started.await_log("thinks", 30)
    with pytest.raises(HarnessError, match=r"writes 'ready': not so after 0\.2 s") as caught:
        started.await_log("ready", 0.2)
    assert caught.value.__notes__ == ["thinks\n"]
    started.kill()
    assert not started.running


def test_a_driver_has_no_variable_of_spark_that_it_was_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"):
        monkeypatch.setenv(name, "of the tests")
    monkeypatch.setenv("KCLIENT_KEPT", "yes")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    with SparkDriver(PYTHON, ["-c", program], tmp_path, {"SPARK_HOME": "given"}) as driver:
        told = json.loads(driver.finish(30))
    assert not {"PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"} & set(told)
    assert (told["KCLIENT_KEPT"], told["SPARK_HOME"]) == ("yes", "given")


def test_a_driver_ends_with_what_it_started(tmp_path: Path) -> None:
    with SparkDriver(PYTHON, ["-c", FAMILY], tmp_path) as driver:
        driver.await_output("has a child", 30)
        child = child_of(driver.pid)
    assert not driver.running
    assert not child.runs()


def test_a_driver_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    program = "import sys; print('began'); sys.exit('and failed')"
    with SparkDriver(PYTHON, ["-c", program], tmp_path) as driver:
        with pytest.raises(HarnessError, match=r"(?s)driver ended with 1:.*began.*and failed"):
            driver.finish(30)
        with pytest.raises(HarnessError, match="driver ended before it wrote 'more'"):
            driver.await_output("more", 30)


def test_a_cluster_needs_an_interpreter_with_spark(tmp_path: Path) -> None:
    nowhere = StandaloneCluster(tmp_path / "none", tmp_path / "first")
    with pytest.raises(HarnessError, match=r"interpreter: got .*none, expected a program"):
        nowhere.start()
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    with pytest.raises(HarnessError, match=r"(?s)has no pyspark:.*No module named 'pyspark'"):
        StandaloneCluster(bare, tmp_path / "second").start()


def test_a_cluster_whose_java_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho of another processor >&2; exit 126\n")
    java.chmod(0o755)
    cluster = StandaloneCluster(PYTHON, tmp_path / "cluster", java_home=java.parents[1])
    with pytest.raises(HarnessError, match=r"(?s)master ended while it started:.*another proc"):
        cluster.start()
    assert cluster.executors() == []
    assert "of another processor" in cluster.report()
