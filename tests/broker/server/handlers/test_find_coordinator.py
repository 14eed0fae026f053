"""FindCoordinator requests."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.broker.metadata.metadata_image import (
    CONSUMER_OFFSETS,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.server.auth_helper import AuthHelper
from kclient.broker.server.handlers import find_coordinator
from kclient.network.endpoint import Endpoint
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


def find(image: MetadataImage, group: str) -> tuple[int, int]:
    """Return node and error code of a coordinator."""
    services: Any = SimpleNamespace(
        metadata=SimpleNamespace(image=image), auth=AuthHelper(None, float)
    )
    header = SimpleNamespace(api_version=6)
    request: Any = SimpleNamespace(header=header, listener_name="PLAINTEXT")
    body = FindCoordinatorRequest(coordinator_keys=[group])
    response = cast("FindCoordinatorResponse", find_coordinator.handle(services, request, body))
    (found,) = response.coordinators
    return found.node_id, found.error_code


def broker(node_id: int, *, fenced: bool = False) -> BrokerRegistration:
    endpoints = (Endpoint("PLAINTEXT", "localhost", 9000 + node_id),)
    return BrokerRegistration(node_id, 0, bytes(16), endpoints, None, fenced)


@pytest.mark.parametrize(
    ("leader", "found"), [(1, (1, 0)), (2, (-1, 15)), (3, (-1, 15)), (-1, (-1, 15))]
)
def test_coordinator_is_the_leader_of_the_group_if_it_is_online(
    leader: int, found: tuple[int, int]
) -> None:
    led = PartitionRegistration((1, 2, 3), (1, 2, 3), leader, 4, 4)
    other = led._replace(leader=4)
    partitions = [other] * 5
    partitions[partition_for("g", 5)] = led
    topic = TopicImage(CONSUMER_OFFSETS, bytes(15) + b"a", tuple(partitions))
    brokers = {each.id: each for each in (broker(1), broker(2, fenced=True), broker(4))}
    image = MetadataImage(topics={CONSUMER_OFFSETS: topic}, brokers=brokers)
    assert find(image, "g") == found
