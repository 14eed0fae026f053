"""The embedded cluster that the tests of kclient.spark share."""

from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[EmbeddedCluster]:
    """The cluster that Spark's workers write to and read from."""
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def clients(spark_cluster: EmbeddedCluster) -> Iterator[Clients]:
    with Clients(spark_cluster.bootstrap_servers) as made:
        yield made
