"""A cluster, a fault proxy before it, and a raw connection to the proxy."""

from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster, FaultProxy
from tests.support.clients.wire import Wire


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
