"""`NetworkClient` with scripted brokers, in virtual time."""

import struct

import pytest

from kclient.client.client_request import ClientRequest, ClientResponse, SimpleBuilder
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import (
    ClosedError,
    CorrelationIdMismatchError,
    DisconnectedError,
    IllegalStateError,
    InvalidArgumentError,
    ProtocolError,
)
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import ClientWorld
from tests.support.clients.scripted_broker import ScriptedBroker

NODE = Node(1, "10.0.0.1", 9092)


@pytest.fixture
def broker(world: ClientWorld) -> ScriptedBroker:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    return broker


def silence(header: RequestHeader, request: Request) -> None:
    return None


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


def test_responses_complete_in_request_order(world: ClientWorld, broker: ScriptedBroker) -> None:
    for _ in range(5):
        world.connect(NODE)
        world.ask()
        world.poll(0)
    assert world.client.in_flight_request_count() == 5
    assert not world.client.ready(NODE, world.now_ms)
    world.poll_until(lambda: len(world.outcomes) == 5)
    ids = [outcome.correlation_id for outcome in world.outcomes]
    assert ids == sorted(ids)


def test_request_without_response_completes_when_written(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    broker.responses[ApiKey.METADATA] = silence
    request = world.client.new_client_request(
        "1", SimpleBuilder(MetadataRequest(topics=[])), world.now_ms, expect_response=False
    )
    world.client.send(request, world.now_ms)
    world.poll()
    assert len(world.outcomes) == 1
    assert world.outcomes[0].response is None
    assert world.outcomes[0].error is None


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


@pytest.mark.fault("P11", "C5")
def test_request_timeout_closes_connection(world: ClientWorld, broker: ScriptedBroker) -> None:
    broker.responses[ApiKey.METADATA] = silence
    world.ask(timeout_ms=700)
    world.poll(0)
    world.connect(NODE)
    world.ask()
    requested_ms = world.now_ms
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert 699 <= world.now_ms - requested_ms <= 702
    first, second = world.outcomes
    assert first.timed_out
    assert not second.timed_out
    for outcome in world.outcomes:
        assert outcome.was_disconnected
        assert isinstance(outcome.error, DisconnectedError)
        assert outcome.error.retriable
        assert str(outcome.error) == (
            "METADATA to broker 1 at 10.0.0.1:9092 got no response:"
            " no response to METADATA within 700 ms"
        )
    assert world.client.connection_failed(NODE)
    assert "no response to METADATA" in str(world.client.connection_error(NODE))


@pytest.mark.fault("P11")
def test_response_after_timeout_is_discarded(world: ClientWorld, broker: ScriptedBroker) -> None:
    world.net.latency_ms = (400, 400)
    world.ask(timeout_ms=500)
    world.poll_until(lambda: len(world.outcomes) == 1)
    world.net.latency_ms = (1, 1)
    world.connect(NODE)
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert world.outcomes[0].timed_out
    assert world.outcomes[1].has_response()


@pytest.mark.fault("P3")
@pytest.mark.parametrize("shift", [1, -1, 2**20])
def test_wrong_correlation_id_closes_connection(
    world: ClientWorld, broker: ScriptedBroker, shift: int
) -> None:
    def lie(header: RequestHeader, request: Request) -> bytes:
        return struct.pack(">i", header.correlation_id + shift) + bytes(50)

    broker.responses[ApiKey.METADATA] = lie
    for _ in range(3):
        world.connect(NODE)
        world.ask()
        world.poll(0)
    world.poll_until(lambda: len(world.outcomes) == 3)
    for outcome in world.outcomes:
        assert isinstance(outcome.error, CorrelationIdMismatchError)
        assert outcome.error.retriable
    assert world.client.connection_failed(NODE)
    assert world.selector.channel("1") is None


@pytest.mark.fault("P3")
def test_unsolicited_response_closes_connection(
    world: ClientWorld, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = broker.received

    def received(socket: VirtualSocket, data: bytes) -> None:
        ordinary(socket, data)
        socket.deliver(b"\x00\x00\x00\x04\x00\x00\x00\x63")

    monkeypatch.setattr(broker, "received", received)
    world.ask()
    world.poll_until(lambda: world.client.connection_failed(NODE))
    assert world.outcomes[0].has_response()
    assert "unsolicited response" in str(world.client.connection_error(NODE))


@pytest.mark.fault("P5")
@pytest.mark.parametrize("body", [b"", b"\x00" * 5, b"\xff" * 40])
def test_malformed_response_closes_connection(
    world: ClientWorld, broker: ScriptedBroker, body: bytes
) -> None:
    broker.responses[ApiKey.METADATA] = lambda header, _: (
        struct.pack(">i", header.correlation_id) + body
    )
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].was_disconnected
    assert isinstance(world.outcomes[0].error, DisconnectedError)
    assert isinstance(world.outcomes[0].error.__cause__, ProtocolError)


def test_frame_without_correlation_id_closes_connection(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    broker.responses[ApiKey.METADATA] = lambda *_: b""
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].was_disconnected


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


@pytest.mark.fault("P9")
def test_throttle_time_delays_next_request(world: ClientWorld, broker: ScriptedBroker) -> None:
    broker.throttle_ms = 5000
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    broker.throttle_ms = -7
    throttled_ms = world.now_ms
    assert not world.client.ready(NODE, world.now_ms)
    assert world.client.poll_delay_ms(NODE, world.now_ms) == pytest.approx(5000)
    world.connect(NODE)
    assert world.now_ms - throttled_ms >= 5000
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert world.client.ready(NODE, world.now_ms)


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


@pytest.mark.fault("C9")
def test_dripping_response_does_not_extend_request_timeout() -> None:
    world = ClientWorld(request_timeout_ms=3000)
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)

    def drip(header: RequestHeader, request: Request) -> None:
        near = next(iter(world.selector.channels())).transport.socket
        assert isinstance(near, VirtualSocket)
        assert near.other is not None
        for index, byte in enumerate(b"\x00\x00\x10\x00" + bytes(100)):
            near.other.deliver(bytes([byte]), 1000.0 * (index + 1))

    broker.responses[ApiKey.METADATA] = drip
    world.ask()
    started_ms = world.now_ms
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.now_ms - started_ms <= 3002
    assert world.outcomes[0].timed_out
