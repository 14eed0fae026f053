"""Our clients on the companion broker, over real sockets."""

from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"group.min.session.timeout.ms": 500}) as cluster:
        yield cluster


@pytest.fixture
def clients(shared_cluster: EmbeddedCluster) -> Iterator[Clients]:
    with Clients(shared_cluster.bootstrap_servers) as made:
        yield made
