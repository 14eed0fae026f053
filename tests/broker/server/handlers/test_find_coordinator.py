"""FindCoordinator requests."""

from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire


def test_find_coordinator_creates_offsets_topic() -> None:
    with EmbeddedCluster() as fresh, Wire(fresh.bootstrap_servers) as wire:
        request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
        first = wire.ask(request, 4, FindCoordinatorResponse)
        assert [found.error_code for found in first.coordinators] == [15, 15]
        second = wire.ask(request, 6, FindCoordinatorResponse)
        assert [found.error_code for found in second.coordinators] == [0, 0]
        offsets = wire.metadata("__consumer_offsets").topics[0]
        assert offsets.is_internal
