"""The Spark session that all tests of this folder share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from kclient.spark.common.installed_spark import REGISTRATION, supports
from kclient.spark.environment.local_session import plan_local_session
from kclient.spark.environment.machine import LocalMachine
from kclient.testing import EmbeddedCluster

# The commits need what an older Spark does not pass to a source.
collect_ignore = [] if supports("admission-control") else ["test_group_commits.py"]
_ROOT = Path(__file__).parents[3]
# Before 4.3 PySpark's own driver side leaves sockets of RDD jobs to the garbage collector.
_LEAVES_SOCKETS = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore resource warnings of older versions of PySpark."""
    for item in items if _LEAVES_SOCKETS else ():
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:.*unclosed <socket"))


@pytest.fixture(scope="session")
def spark_environment() -> Iterator[pytest.MonkeyPatch]:
    """Environment that Spark's processes inherit: interpreter, path, address."""
    with pytest.MonkeyPatch.context() as patch:
        present = os.environ.get("PYTHONPATH", "")
        path = [str(_ROOT), str(REGISTRATION), *filter(None, [present])]
        for name, value in plan_local_session(LocalMachine()).settings.items():
            patch.setenv(name, value)  # JAVA_HOME, if needed
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        patch.syspath_prepend(str(REGISTRATION))  # as with an installed wheel
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield patch


@pytest.fixture(scope="session")
def spark(
    spark_environment: pytest.MonkeyPatch,
    spark_cluster: EmbeddedCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    """A session with 2 slots and 3 attempts per task.

    It ends before the cluster, so that the workers' clients never try to reconnect.
    """
    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("kclient-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        # Short jobs on little data: compile less, in the JVM and in Spark.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("FATAL")
    yield session
    session.stop()
