"""The harness for Spark kills all processes that it started; tested without Spark."""

import json
import sys
from pathlib import Path

import pytest

from integration.harness.spark_driver import SparkDriver
from integration.harness.spark_standalone import StandaloneCluster
from tests.support.checks.waiting import HarnessError, wait_until
from tests.support.processes.process_table import SystemProcess, descendants

PYTHON = Path(sys.executable)
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


def test_driver_does_not_inherit_variables_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"):
        monkeypatch.setenv(name, "inherited")
    monkeypatch.setenv("KCLIENT_KEPT", "yes")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    with SparkDriver(PYTHON, ["-c", program], tmp_path, {"SPARK_HOME": "given"}) as driver:
        variables = json.loads(driver.finish())
    assert not {"PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"} & set(variables)
    assert (variables["KCLIENT_KEPT"], variables["SPARK_HOME"]) == ("yes", "given")


def test_driver_is_killed_with_its_descendants(tmp_path: Path) -> None:
    with SparkDriver(PYTHON, ["-c", FAMILY], tmp_path) as driver:
        driver.wait_for("has a child")
        child = child_of(driver.pid)
    assert not driver.is_running
    assert not child.runs()


def test_failed_driver_is_reported_with_its_output(tmp_path: Path) -> None:
    program = "import sys; print('started'); sys.exit('and failed')"
    with SparkDriver(PYTHON, ["-c", program], tmp_path) as driver:
        with pytest.raises(HarnessError, match=r"(?s)driver exited with 1:.*started.*and failed"):
            driver.finish()
        with pytest.raises(HarnessError, match="driver exited with 1 before it wrote 'more'"):
            driver.wait_for("more")


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
    with pytest.raises(HarnessError, match=r"(?s)master exited with 1 before .*another proc"):
        cluster.start()
    assert cluster.executors() == []
    assert "of another processor" in cluster.report()
