"""The harness for Spark kills all processes that it started; tested without Spark."""

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
# Like PySpark's daemons, the child has its own process group.
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


def test_daemon_is_killed_with_its_descendants(tmp_path: Path) -> None:
    started = daemon(tmp_path, str(PYTHON), "-c", FAMILY)
    started.launch()
    assert started.await_log(r"has a (\w+)", 30)[1] == "child"
    (child,) = started.children()
    assert child.runs()
    started.kill()
    assert not started.running
    assert not child.runs()


def test_early_exit_of_a_daemon_is_reported_with_its_log(tmp_path: Path) -> None:
    started = daemon(tmp_path, "/bin/sh", "-c", "echo no more memory; exit 3")
    started.launch()
    with pytest.raises(HarnessError, match="worker exited while it started:\nno more memory"):
        started.await_log("ready", 30)
    started.kill()


def test_start_timeout_of_a_daemon_is_reported_with_its_log(tmp_path: Path) -> None:
    started = daemon(tmp_path, "/bin/sh", "-c", "echo starting; exec sleep 600")
    started.launch()
    started.await_log("starting", 30)
    with pytest.raises(HarnessError, match=r"writes 'ready': not true after 0\.2 s") as caught:
        started.await_log("ready", 0.2)
    assert caught.value.__notes__ == ["starting\n"]
    started.kill()
    assert not started.running


def test_driver_does_not_inherit_variables_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"):
        monkeypatch.setenv(name, "inherited")
    monkeypatch.setenv("KCLIENT_KEPT", "yes")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    with SparkDriver(PYTHON, ["-c", program], tmp_path, {"SPARK_HOME": "given"}) as driver:
        variables = json.loads(driver.finish(30))
    assert not {"PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"} & set(variables)
    assert (variables["KCLIENT_KEPT"], variables["SPARK_HOME"]) == ("yes", "given")


def test_driver_is_killed_with_its_descendants(tmp_path: Path) -> None:
    with SparkDriver(PYTHON, ["-c", FAMILY], tmp_path) as driver:
        driver.await_output("has a child", 30)
        child = child_of(driver.pid)
    assert not driver.running
    assert not child.runs()


def test_failed_driver_is_reported_with_its_output(tmp_path: Path) -> None:
    program = "import sys; print('started'); sys.exit('and failed')"
    with SparkDriver(PYTHON, ["-c", program], tmp_path) as driver:
        with pytest.raises(HarnessError, match=r"(?s)driver exited with 1:.*started.*and failed"):
            driver.finish(30)
        with pytest.raises(HarnessError, match="driver exited before it wrote 'more'"):
            driver.await_output("more", 30)


def test_cluster_needs_an_interpreter_with_pyspark(tmp_path: Path) -> None:
    missing = StandaloneCluster(tmp_path / "none", tmp_path / "first")
    with pytest.raises(
        HarnessError, match=r"interpreter: got .*none, expected an existing program"
    ):
        missing.start()
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    with pytest.raises(HarnessError, match=r"(?s)has no pyspark:.*No module named 'pyspark'"):
        StandaloneCluster(bare, tmp_path / "second").start()


def test_failed_start_of_a_cluster_leaves_no_process(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho of another processor >&2; exit 126\n")
    java.chmod(0o755)
    cluster = StandaloneCluster(PYTHON, tmp_path / "cluster", java_home=java.parents[1])
    with pytest.raises(HarnessError, match=r"(?s)master exited while it started:.*another proc"):
        cluster.start()
    assert cluster.executors() == []
    assert "of another processor" in cluster.report()
