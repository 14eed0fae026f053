"""Responses matched to requests, and connections whose state is uncertain."""

import errno
import struct

import pytest

from kclient.client.client_request import SimpleBuilder
from kclient.common.errors import (
    CorrelationIdMismatchError,
    DisconnectedError,
    ProtocolError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import NODE, ClientWorld, silence
from tests.support.clients.scripted_broker import ScriptedBroker


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


def socket_of(world: ClientWorld) -> VirtualSocket:
    channel = world.selector.channel("1")
    assert channel is not None
    socket = channel.transport.socket
    assert isinstance(socket, VirtualSocket)
    return socket


def test_request_is_written_ahead_of_the_poll(world: ClientWorld, broker: ScriptedBroker) -> None:
    asked = len(broker.asked)
    world.ask()
    world.client.write_ahead(world.now_ms)
    world.home.sleep(50)
    assert len(broker.asked) == asked + 1
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].has_response()


def test_requests_without_response_that_were_written_ahead_complete_in_the_next_poll(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    """Also if a request that has a response follows on the same connection."""
    requests = [
        world.client.new_client_request(
            "1", SimpleBuilder(MetadataRequest(topics=[])), world.now_ms, expect_response=expects
        )
        for expects in (False, False, True)
    ]
    broker.responses[ApiKey.METADATA] = silence
    for request in requests:
        assert world.client.ready(NODE, world.now_ms)
        world.client.send(request, world.now_ms)
        world.client.write_ahead(world.now_ms)
    world.poll(0)
    ids = [outcome.correlation_id for outcome in world.outcomes]
    assert ids == [request.correlation_id for request in requests[:2]]
    assert world.client.in_flight_request_count() == 1


def test_connection_that_breaks_in_a_write_ahead_fails_the_request_in_the_next_poll(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    socket_of(world).ended = errno.EPIPE
    world.ask()
    world.client.write_ahead(world.now_ms)
    assert not world.outcomes
    world.poll(0)
    (outcome,) = world.outcomes
    assert outcome.was_disconnected
    assert not outcome.timed_out
    assert world.client.connection_failed(NODE)


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
@pytest.mark.parametrize("pause_ms", [699.5, 40_000.0])
def test_request_timeout_runs_from_the_first_write(
    world: ClientWorld, broker: ScriptedBroker, pause_ms: float
) -> None:
    """An application that does not poll delays the write, not the broker its response."""
    connections = broker.connections
    world.ask(timeout_ms=700)
    world.home.sleep(pause_ms)
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].has_response()
    assert broker.connections == connections


@pytest.mark.fault("P11")
def test_request_without_response_times_out_after_a_pause(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    broker.responses[ApiKey.METADATA] = silence
    world.ask(timeout_ms=700)
    world.home.sleep(40_000)
    written_ms = world.now_ms
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].timed_out
    assert 699 <= world.now_ms - written_ms <= 702


@pytest.mark.fault("P11", "C5")
def test_request_to_a_peer_that_does_not_read_times_out(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    socket_of(world).capacity = 0  # as if the peer has not read the earlier bytes
    world.ask(timeout_ms=700)
    world.home.sleep(40_000)
    attempted_ms = world.now_ms
    while not world.outcomes:
        assert world.now_ms <= attempted_ms + 702
        world.poll(100)
    assert world.outcomes[0].timed_out
    assert world.now_ms >= attempted_ms + 699


@pytest.mark.fault("P11")
def test_responses_received_during_a_pause_are_no_timeouts(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    connections = broker.connections
    for _ in range(5):
        world.connect(NODE)
        world.ask(timeout_ms=700)
        world.poll(0)
    world.home.sleep(40_000)
    world.poll_until(lambda: len(world.outcomes) == 5)
    assert all(outcome.has_response() for outcome in world.outcomes)
    assert broker.connections == connections


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


@pytest.mark.fault("P3")
def test_response_to_request_without_acknowledgement_is_discarded(
    world: ClientWorld, broker: ScriptedBroker
) -> None:
    for _ in range(3):
        request = world.client.new_client_request(
            "1", SimpleBuilder(MetadataRequest(topics=[])), world.now_ms, expect_response=False
        )
        world.client.send(request, world.now_ms)
        world.connect(NODE)
        world.ask()
        world.poll(0)
        world.connect(NODE)
    world.poll_for(1000)
    assert broker.connections == 2  # the first was the bootstrap connection
    assert [outcome.has_response() for outcome in world.outcomes].count(True) == 3
    assert not any(outcome.error for outcome in world.outcomes)


@pytest.mark.fault("P3")
def test_response_before_its_request_is_written_closes_connection(
    world: ClientWorld, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary, early = broker.received, list[bytes]()

    def received(socket: VirtualSocket, data: bytes) -> None:
        if len(data) < 50_000:
            ordinary(socket, data)
        elif not early:
            early.append(data)
            # Its correlation id, and a valid response without topics.
            response = MetadataResponse().encode_bytes(13)
            frame = data[8:12] + b"\x00" + response
            socket.deliver(struct.pack(">i", len(frame)) + frame)

    monkeypatch.setattr(broker, "received", received)
    names = [MetadataRequestTopic(name="t" * 200) for _ in range(5_000)]
    world.ask(request=MetadataRequest(topics=names))
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert early
    (outcome,) = world.outcomes
    assert isinstance(outcome.error, CorrelationIdMismatchError)
    assert outcome.error.retriable
    assert "early response: the METADATA request was not written" in str(outcome.error)
    assert world.selector.channel("1") is None


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
