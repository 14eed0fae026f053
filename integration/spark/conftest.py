"""A Spark cluster whose workers share no variables with the driver, and one session on it.

standalone    one master and two workers, for all tests
spark         the session of the test process: an executor on each worker, one task at a time each
foreign       confluent-kafka on `kafka`, to read and write independently of kclient
"""

import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pyspark
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from integration.harness.running_kafka import RunningKafka
from integration.harness.spark_standalone import WORKERS, StandaloneCluster
from integration.spark.sessions import built
from kclient.spark.environment.local_session import find_java, plan_local_session
from kclient.spark.environment.machine import LocalMachine
from tests.support.clients.foreign_confluent import ConfluentClient

_HERE = Path(__file__).parent
# The first test starts seven JVMs, which takes a minute and a half on a busy machine.
_TIMEOUT = pytest.mark.timeout(300)
_STANDALONE = pytest.StashKey[StandaloneCluster]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(_TIMEOUT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of Spark's processes to the report of a failed test."""
    report = yield
    cluster = item.session.stash.get(_STANDALONE, None)
    if report.failed and cluster is not None:
        report.sections.append(("Apache Spark", cluster.report()))
    return report


@pytest.fixture(scope="session")
def standalone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    java = find_java(LocalMachine(), pyspark.__version__)
    directory = tmp_path_factory.mktemp("standalone") / "cluster"
    # Two concurrent tasks each: one for the session, one for drivers in other processes.
    cluster = StandaloneCluster(Path(sys.executable), directory, cores=2, java_home=java.home)
    with cluster:
        request.session.stash[_STANDALONE] = cluster
        yield cluster


@pytest.fixture(scope="session")
def spark(
    standalone: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        chosen = plan_local_session(LocalMachine())
        for name, value in chosen.settings.items():
            patch.setenv(name, value)
        for directory in chosen.path:
            patch.syspath_prepend(directory)
        session = built(standalone.master_url, tmp_path_factory.mktemp("spark"))
        session.sparkContext.setLogLevel("FATAL")
        try:
            standalone.await_executors(WORKERS, session.sparkContext.applicationId)
            yield session
        finally:
            session.stop()


@pytest.fixture
def foreign(kafka: RunningKafka) -> ConfluentClient:
    return ConfluentClient(kafka.bootstrap)


@pytest.fixture
def foreign_admin(kafka: RunningKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap})
