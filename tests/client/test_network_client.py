"""`NetworkClient` with scripted brokers, in virtual time: connections, requests, closing."""

import pytest

from kclient.client.client_config import ClientConfig
from kclient.client.client_request import ClientRequest, ClientResponse, SimpleBuilder
from kclient.client.manual_metadata_updater import ManualMetadataUpdater
from kclient.client.network_client import NetworkClient
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import (
    ClosedError,
    IllegalStateError,
    InvalidArgumentError,
)
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from tests.client.conftest import NODE, ClientWorld, silence
from tests.support.clients.scripted_broker import ScriptedBroker


def test_bootstrap_connects_to_advertised_brokers(world: ClientWorld) -> None:
    broker = world.broker()
    broker.topics["orders"] = [1, 1]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(world.bootstrapped)
    cluster = world.metadata.cluster()
    assert list(cluster.nodes.values()) == [NODE]
    assert cluster.partition_count("orders") == 2
    assert [header.api_key for header in broker.asked] == [ApiKey.API_VERSIONS, ApiKey.METADATA]
    assert broker.asked[0].client_id == "kclient"
    assert world.client.bootstrap_error() is None


def test_request_completes_with_response(world: ClientWorld, broker: ScriptedBroker) -> None:
    reported: list[ClientResponse] = []
    request = world.client.new_client_request(
        "1", SimpleBuilder(MetadataRequest(topics=[])), world.now_ms, callback=reported.append
    )
    world.client.send(request, world.now_ms)
    assert world.client.in_flight_request_count("1") == 1
    assert world.client.has_in_flight_requests()
    world.poll_until(lambda: bool(reported))
    assert reported == world.outcomes
    outcome = reported[0]
    assert outcome.body(MetadataResponse).cluster_id == "cluster"
    assert (outcome.destination, outcome.api_version, outcome.error) == ("1", 13, None)
    assert outcome.latency_ms >= 2
    assert world.client.in_flight_request_count() == 0


def test_request_is_sent_by_one_write(world: ClientWorld, broker: ScriptedBroker) -> None:
    before = world.net.sendmsg_calls
    world.ask()
    world.poll()
    assert world.net.sendmsg_calls == before + 1
    assert len(world.outcomes) == 1


def test_request_to_unready_node_is_refused(world: ClientWorld) -> None:
    with pytest.raises(IllegalStateError, match="not ready"):
        world.ask()
    with pytest.raises(InvalidArgumentError, match="with an address"):
        world.client.ready(Node(3, "", -1), world.now_ms)


@pytest.mark.fault("P7")
def test_unsupported_version_fails_request_only(world: ClientWorld, broker: ScriptedBroker) -> None:
    world.client.send(
        world.client.new_client_request(
            "1", SimpleBuilder(MetadataRequest(topics=[]), oldest=14, latest=15), world.now_ms
        ),
        world.now_ms,
    )
    world.poll()
    mismatch = world.outcomes[0].version_mismatch
    assert isinstance(mismatch, UnsupportedVersionError)
    assert str(mismatch) == (
        "broker 1 at 10.0.0.1:9092 offers METADATA in versions 0-13, this request needs 14-15"
    )
    world.ask()
    world.poll()
    assert world.outcomes[1].has_response()


def test_field_missing_in_version_fails_request_only(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    world.ask(request=request)
    world.poll()
    assert world.outcomes[0].version_mismatch is not None
    assert world.client.ready(NODE, world.now_ms)


def test_disconnection_fails_requests_in_flight_and_client_reconnects(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    broker.hang_up_on = {ApiKey.METADATA}
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].was_disconnected
    assert "the peer closed the connection" in str(world.outcomes[0].error)
    broker.hang_up_on = set()
    world.connect(NODE)
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert world.outcomes[1].has_response()


def test_failing_callback_does_not_prevent_others(
    world: ClientWorld, broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[ClientResponse] = []

    def bad(_: ClientResponse) -> None:
        raise ValueError("mine")

    for callback in (bad, reported.append):
        world.connect(NODE)
        request: ClientRequest = world.client.new_client_request(
            "1", SimpleBuilder(MetadataRequest(topics=[])), world.now_ms, callback=callback
        )
        world.client.send(request, world.now_ms)
        world.poll(0)
    world.poll_until(lambda: bool(reported))
    assert "the callback of a METADATA request failed" in caplog.text


def test_disconnect_fails_requests_in_flight(world: ClientWorld, broker: ScriptedBroker) -> None:
    world.ask()
    world.client.disconnect("1")
    world.client.disconnect("1")
    world.client.disconnect("99")
    world.poll(0)
    assert "this client closed the connection" in str(world.outcomes[0].error)


def test_close_discards_requests_in_flight(world: ClientWorld, broker: ScriptedBroker) -> None:
    """The gauge returns to zero, and the requests are freed."""
    broker.responses[ApiKey.METADATA] = silence
    world.ask()
    assert world.client.in_flight_request_count("1") == 1
    world.client.close()
    assert world.client.in_flight_request_count() == 0
    assert world.client.in_flight_request_count("1") == 0
    assert not world.client.has_in_flight_requests()


def test_closed_client_refuses_calls(world: ClientWorld, broker: ScriptedBroker) -> None:
    world.client.initiate_close()
    assert not world.client.active()
    with pytest.raises(ClosedError):
        world.poll()
    world.client.close()
    world.client.close()
    with pytest.raises(ClosedError):
        world.ask()
    world.home.sleep(10)
    assert world.net.open_sockets == 0


def test_client_without_metadata_sends_only_requests_of_its_caller() -> None:
    world = ClientWorld(metadata_max_age_ms=100)
    broker = world.broker()
    client = NetworkClient(world.selector, None, world.runtime, ClientConfig(bootstrap_servers=()))
    world.client = client
    assert isinstance(client._metadata_updater, ManualMetadataUpdater)
    assert client.least_loaded_node(world.now_ms) is None
    world.connect(NODE)
    world.ask()
    world.poll_for(10_000)
    assert [header.api_key for header in broker.asked] == [ApiKey.API_VERSIONS, ApiKey.METADATA]
    assert [type(each.response) for each in world.outcomes] == [MetadataResponse]
