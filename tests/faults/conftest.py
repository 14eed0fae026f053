"""Our clients on the companion broker, with the fault proxy between them."""

from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster, FaultProxy
from tests.support.clients.clients import Clients
from tests.support.virtual.virtual_cluster import VirtualCluster


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"group.min.session.timeout.ms": 500}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    shared_cluster.faults.requests.clear()
    yield shared_cluster
    shared_cluster.faults.heal()


@pytest.fixture
def proxy(cluster: EmbeddedCluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap_servers, seed=11) as proxy:
        yield proxy
        proxy.heal()


@pytest.fixture
def clients(proxy: FaultProxy) -> Iterator[Clients]:
    """Clients behind the proxy."""
    with Clients(proxy.bootstrap_servers) as made:
        yield made


@pytest.fixture
def straight(cluster: EmbeddedCluster) -> Iterator[Clients]:
    """Clients that see no faults of the network."""
    with Clients(cluster.bootstrap_servers) as made:
        yield made


@pytest.fixture
def simulation() -> Iterator[VirtualCluster]:
    """Broker, proxy and clients in virtual time."""
    with VirtualCluster() as made:
        yield made
