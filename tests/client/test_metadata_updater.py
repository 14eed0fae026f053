"""Metadata requests of a client, and its return to the bootstrap servers."""

import pytest

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from tests.client.conftest import NODE, ClientWorld, silence
from tests.support.clients.scripted_broker import ScriptedBroker


def test_requests_are_sent_while_metadata_is_due(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    broker.responses[ApiKey.METADATA] = silence
    world.metadata.add_topic("new", world.now_ms)
    assert world.client.is_ready(NODE, world.now_ms)
    world.poll(0)  # the request for metadata is sent, and gets no response
    for _ in range(5):
        assert world.client.is_ready(NODE, world.now_ms)
        world.ask()
        world.poll(0)
    assert not world.client.is_ready(NODE, world.now_ms)


@pytest.mark.parametrize("limit", [1, 5])
def test_metadata_is_requested_from_busy_broker(limit: int) -> None:
    """The application sends its next request whenever the connection is ready for one."""
    world = ClientWorld(max_in_flight=limit)
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    broker.topics["new"] = [1]

    def fill() -> None:
        while world.client.ready(NODE, world.now_ms):
            world.ask()

    for _ in range(20):
        fill()
        world.poll()
    world.metadata.add_topic("new", world.now_ms)
    requested_ms = world.now_ms
    while "new" not in world.metadata.cluster().topics:
        assert world.now_ms < requested_ms + 50
        fill()
        world.poll()
    assert len(world.outcomes) > 20


def test_missing_topic_is_requested_with_backoff(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    world.metadata.add_topic("missing", world.now_ms)
    world.poll_for(1000)
    broker.asked.clear()
    world.poll_for(30_000)
    requests = [header for header in broker.asked if header.api_key is ApiKey.METADATA]
    assert 20 <= len(requests) <= 31


def test_changing_responses_do_not_shorten_backoff(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    """KRaft brokers return a random controller, and a cluster that starts changes continually."""
    world.metadata.add_topic("missing", world.now_ms)

    def changing(header: RequestHeader, request: Request) -> MetadataResponse:
        assert isinstance(request, MetadataRequest)
        response = broker.metadata(request)
        response.controller_id = header.correlation_id
        response.brokers += [
            MetadataResponseBroker(node_id=7, host=f"h{header.correlation_id}", port=1)
        ]
        return response

    broker.responses[ApiKey.METADATA] = changing
    world.poll_for(10_000)
    requests = [header for header in broker.asked if header.api_key is ApiKey.METADATA]
    assert 20 <= len(requests) <= 103


@pytest.mark.fault("P12")
def test_metadata_response_without_brokers_is_ignored(world: ClientWorld) -> None:
    broker = world.broker()
    broker.brokers = []
    world.poll_for(1000)
    assert world.metadata.cluster().is_bootstrap
    assert len([header for header in broker.asked if header.api_key is ApiKey.METADATA]) < 8
    broker.brokers = [broker.node]
    world.poll_until(world.bootstrapped)


@pytest.mark.fault("C14")
def test_client_rebootstraps_when_no_known_broker_is_left(world: ClientWorld) -> None:
    first = world.broker(1)
    moved = world.broker(2)
    first.brokers = [moved.node]
    first.topics["orders"] = moved.topics["orders"] = [2]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(world.bootstrapped)
    world.connect(moved.node)
    world.net.stop(("10.0.0.2", 9092))
    replaced = world.broker(3)
    first.brokers = [replaced.node]
    first.topics["orders"] = [3]
    world.poll_until(lambda: 3 in world.metadata.cluster().nodes)
    assert world.metadata.cluster().partition_count("orders") == 1


@pytest.mark.fault("C12", "P12")
def test_partitions_stay_known_while_cluster_is_down(world: ClientWorld) -> None:
    broker = world.broker()
    broker.topics["orders"] = [1, 1, 1]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(lambda: bool(world.metadata.cluster().topics))
    world.connect(broker.node)
    world.net.stop(("10.0.0.1", 9092))
    world.poll_for(30_000)
    cluster = world.metadata.cluster()
    assert cluster.is_bootstrap
    assert cluster.partition_count("orders") == 3
    assert cluster.available_partitions_for("orders") == []
    world.net.peers["10.0.0.1", 9092] = lambda: broker
    world.poll_until(world.bootstrapped, within_ms=3000)
    assert len(world.metadata.cluster().available_partitions_for("orders")) == 3


def test_rebootstrap_required_error_makes_client_rebootstrap(world: ClientWorld) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)

    def start_over(header: RequestHeader, request: Request) -> MetadataResponse:
        del broker.responses[ApiKey.METADATA]
        return MetadataResponse(error_code=129)

    broker.responses[ApiKey.METADATA] = start_over
    world.metadata.request_update()
    world.poll_until(lambda: not world.bootstrapped())
    assert world.client.connection_failed(broker.node)
    world.poll_until(world.bootstrapped)


def test_client_rebootstraps_after_trigger_time_without_metadata() -> None:
    world = ClientWorld(request_timeout_ms=1000, metadata_recovery_rebootstrap_trigger_ms=5000)
    stale = world.broker(2)
    good = world.broker(1, brokers=[stale.node])
    world.poll_until(world.bootstrapped)
    stale.responses[ApiKey.METADATA] = lambda *_: None
    good.brokers = [good.node]
    world.metadata.request_update()
    started_ms = world.now_ms
    world.poll_until(lambda: 1 in world.metadata.cluster().nodes)
    assert 5000 < world.now_ms - started_ms < 9000


def test_client_without_rebootstrap_waits_for_known_brokers() -> None:
    world = ClientWorld(metadata_recovery_strategy="none")
    broker: ScriptedBroker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    world.net.stop(("10.0.0.1", 9092))
    world.poll_for(10_000)
    assert list(world.metadata.cluster().nodes) == [1]
    world.net.peers["10.0.0.1", 9092] = lambda: broker
    world.poll_until(lambda: world.client.ready(broker.node, world.now_ms))
