"""Fixtures for tests against Apache Kafka.

kafka         the running Apache Kafka, the newest version or those of KCLIENT_KAFKA_VERSIONS
local_kafka   the same, or one of our own where `kafka` is elsewhere: its files can be read
topic         topic(partitions=1, configs={}) -> the name of a new topic
tools         Kafka's own tools of that version, pointed at `kafka`
foreign       kafka-python, aiokafka and confluent-kafka in turn, pointed at `kafka`
start_cluster start_cluster(ClusterOptions(nodes=3), version="4.3.1") -> a cluster of one test
tools_for     tools_for(bootstrap, client_properties, version, jvm_options) -> tools for any cluster
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from integration.harness.discovery import NEWEST, chosen_versions, find_runtime, given_bootstrap
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignClient
from tests.support.processes.heeded_interrupts import heed_interrupts

GIVEN = "given"
_CLUSTERS = pytest.StashKey[list[KafkaCluster]]()


class StartCluster(Protocol):
    """Starts a cluster that ends with the test."""

    def __call__(
        self, options: ClusterOptions | None = None, version: str = ...
    ) -> KafkaCluster: ...


class ToolsFor(Protocol):
    """Points Kafka's tools at any cluster."""

    def __call__(
        self,
        bootstrap: str,
        client_properties: Mapping[str, str] | None = None,
        version: str = ...,
        jvm_options: Sequence[str] = ...,
    ) -> KafkaTools: ...


def pytest_configure() -> None:
    heed_interrupts()


def _is_of_spark(path: Path) -> bool:
    """Spark takes its time, and what depends on Kafka's version is shown without it."""
    return path.relative_to(Path(__file__).parent).parts[0].startswith("spark")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kafka" in metafunc.fixturenames:
        versions = (GIVEN,) if given_bootstrap() else chosen_versions()
        if _is_of_spark(metafunc.definition.path):
            versions = versions[:1]
        metafunc.parametrize("kafka", versions, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the servers wrote."""
    report = yield
    if report.failed:
        for cluster in item.session.stash.get(_CLUSTERS, []):
            report.sections.append(("Apache Kafka", cluster.report()))
    return report


@pytest.fixture(scope="session")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], KafkaRuntime]:
    directory = tmp_path_factory.getbasetemp()

    @cache
    def runtime(version: str) -> KafkaRuntime:
        return find_runtime(version, directory)

    return runtime


@pytest.fixture(scope="session")
def kafka(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningKafka]:
    version: str = request.param
    bootstrap = given_bootstrap()
    if bootstrap is not None:
        yield RunningKafka(GIVEN, bootstrap, None)
        return
    directory = tmp_path_factory.mktemp(f"kafka-{version}-")
    with _shown(request, KafkaCluster(runtimes(version), directory)) as cluster:
        yield RunningKafka(version, cluster.bootstrap(), cluster)


@pytest.fixture(scope="session")
def local_kafka(
    request: pytest.FixtureRequest,
    kafka: RunningKafka,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningKafka]:
    if kafka.cluster is not None:
        yield kafka
        return
    directory = tmp_path_factory.mktemp("kafka-local-")
    with _shown(request, KafkaCluster(runtimes(NEWEST), directory)) as cluster:
        yield RunningKafka(NEWEST, cluster.bootstrap(), cluster)


@pytest.fixture
def topic(kafka: RunningKafka) -> Callable[..., str]:
    return kafka.create_topic


@pytest.fixture
def tools(kafka: RunningKafka, tools_for: ToolsFor) -> KafkaTools:
    return tools_for(kafka.bootstrap, None, NEWEST if kafka.version == GIVEN else kafka.version)


@pytest.fixture(params=sorted(FOREIGN_CLIENTS))
def foreign(request: pytest.FixtureRequest, kafka: RunningKafka) -> ForeignClient:
    return FOREIGN_CLIENTS[request.param](kafka.bootstrap)


@pytest.fixture
def tools_for(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToolsFor]:
    with ExitStack() as ending:

        def tools(
            bootstrap: str,
            client_properties: Mapping[str, str] | None = None,
            version: str = NEWEST,
            jvm_options: Sequence[str] = (),
        ) -> KafkaTools:
            directory = tmp_path_factory.mktemp("tools-")
            runtime = runtimes(version)
            made = KafkaTools(runtime, directory, bootstrap, client_properties, jvm_options)
            ending.callback(made.close)
            return made

        yield tools


@pytest.fixture
def start_cluster(
    request: pytest.FixtureRequest, runtimes: Callable[[str], KafkaRuntime], tmp_path: Path
) -> Iterator[StartCluster]:
    with ExitStack() as ending:

        def start(options: ClusterOptions | None = None, version: str = NEWEST) -> KafkaCluster:
            directory = tmp_path / f"cluster-{version}"
            cluster = KafkaCluster(runtimes(version), directory, options)
            return ending.enter_context(_shown(request, cluster))

        yield start


@contextmanager
def _shown(request: pytest.FixtureRequest, cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    """Runs a cluster and lets failure reports know of it while it runs."""
    shown = request.session.stash.setdefault(_CLUSTERS, [])
    with cluster:
        shown.append(cluster)
        try:
            yield cluster
        finally:
            shown.remove(cluster)
