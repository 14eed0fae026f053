from collections.abc import Iterator

import pytest

from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """One broker for the tests of a module; each test uses topics of its own."""
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def wire(cluster: EmbeddedCluster) -> Iterator[Wire]:
    """A bare connection to the module's broker."""
    with Wire(cluster.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def other(cluster: EmbeddedCluster) -> Iterator[Wire]:
    """Another connection to the same broker."""
    with Wire(cluster.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def topic(request: pytest.FixtureRequest, wire: Wire) -> str:
    """A topic with two partitions, named after the test."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in request.node.name)[:200]
    wire.create_topic(name, partitions=2)
    return name
