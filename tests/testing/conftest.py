"""A cluster, a fault proxy before it, a raw connection to the proxy, and a simulation."""

from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster, FaultProxy
from kclient.testing.virtual import VirtualWorld
from tests.support.clients.wire import Wire
from tests.support.virtual.world_parts import SERVER, Net


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
        yield cluster


@pytest.fixture
def proxy(cluster: EmbeddedCluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap_servers, seed=1) as proxy:
        yield proxy


@pytest.fixture
def wire(proxy: FaultProxy) -> Iterator[Wire]:
    with Wire(proxy.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def net() -> Iterator[Net]:
    with VirtualWorld(1, latency_ms=(10.0, 20.0)) as world:
        client, server = (world.machine(name).process(name) for name in ("client", "server"))
        assert SERVER[0] == server.machine.ip
        yield Net(world, client, server)
