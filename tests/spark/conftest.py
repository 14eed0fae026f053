"""One Spark session and one embedded cluster for all tests of kclient.spark."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kclient.testing import EmbeddedCluster
from tests.support.desk import Desk

_ROOT = Path(__file__).parents[2]
_REGISTRATION = _ROOT / "kclient" / "spark" / "registration"


@pytest.fixture(scope="session")
def spark_environment() -> Iterator[pytest.MonkeyPatch]:
    """What Spark's processes inherit: interpreter, path, address."""
    with pytest.MonkeyPatch.context() as patch:
        present = os.environ.get("PYTHONPATH", "")
        path = [str(_ROOT), str(_REGISTRATION), *filter(None, [present])]
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield patch


@pytest.fixture(scope="session")
def spark(
    spark_environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A session whose tasks may fail twice: 2 slots, 3 attempts."""
    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("kclient-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("FATAL")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[EmbeddedCluster]:
    """The one cluster that Spark's workers write to and read from."""
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def desk(spark_cluster: EmbeddedCluster) -> Iterator[Desk]:
    with Desk(spark_cluster.bootstrap_servers) as made:
        yield made
