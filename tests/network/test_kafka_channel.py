"""Channels: authentication in several steps, and the transitions of the mute states."""

import itertools
import struct
from collections.abc import Sequence

import pytest

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import IllegalStateError, KafkaError, ProtocolError
from kclient.common.files import WireBytes
from kclient.common.runtime import READABLE, WRITABLE, StreamSocket
from kclient.network.authenticator import (
    FIRST_RESERVED_CORRELATION_ID,
    KafkaPrincipal,
    NoAuthenticator,
)
from kclient.network.kafka_channel import (
    MUTE_TRANSITIONS,
    ChannelMuteEvent,
    ChannelMuteState,
    KafkaChannel,
    State,
)
from kclient.network.memory_pool import MemoryPool, UnlimitedMemoryPool
from kclient.network.network_send import NetworkSend
from kclient.network.selector import Selector
from kclient.network.transport_layer import PlaintextTransportLayer
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.network.conftest import Sink
from tests.support.virtual.virtual_home import VirtualHome

HERE = ("10.0.0.1", 9092)
ALICE = KafkaPrincipal("User", "alice")

E = ChannelMuteEvent
S = ChannelMuteState


class TwoSteps(NoAuthenticator):
    """Authenticator with two steps, the second of which may fail."""

    def __init__(self, failure: KafkaError | None = None) -> None:
        self.steps = 0
        self.closed = False
        self._failure = failure

    def authenticate(self) -> None:
        self.steps += 1
        if self._failure is not None and self.steps == 2:
            raise self._failure

    def complete(self) -> bool:
        return self.steps >= 2

    def principal(self) -> KafkaPrincipal:
        return ALICE

    def wants_write(self) -> bool:
        return self.steps == 1

    def close(self) -> None:
        self.closed = True


class Builder:
    def __init__(self, authenticator: TwoSteps) -> None:
        self._authenticator = authenticator

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        transport = PlaintextTransportLayer(stream)
        return KafkaChannel(channel_id, transport, self._authenticator, pool, max_receive_size)


class MemorySocket(Sink):
    """Socket that has received given bytes."""

    def __init__(self, accepts: int = 1000) -> None:
        super().__init__(lambda: self.accepts)
        self.accepts = accepts
        self.received = b""

    @property
    def sent(self) -> bytes:
        return self.data

    def sendmsg(self, buffers: Sequence[WireBytes], /) -> int:
        count = super().sendmsg(buffers)
        self.accepts -= count
        return count

    def recv_into(self, buffer: memoryview, /) -> int:
        piece, self.received = self.received[: len(buffer)], self.received[len(buffer) :]
        if not piece:
            raise BlockingIOError
        buffer[: len(piece)] = piece
        return len(piece)


class Quiet:
    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None: ...


def connect(authenticator: TwoSteps) -> tuple[Selector, float]:
    home = VirtualHome()
    home.net.peers[HERE] = Quiet
    runtime, clock = home.runtime, home.clock
    selector = Selector(runtime.net, runtime.clock, channel_builder=Builder(authenticator))
    selector.connect("1", HERE)
    selector.poll(10, clock.now_ms)
    assert selector.connected == ["1"]
    assert not selector.is_channel_ready("1")
    channel = selector.channel("1")
    assert channel is not None
    assert channel.interest() == READABLE | WRITABLE
    selector.poll(10, clock.now_ms)
    return selector, clock.now_ms


def test_channel_is_ready_after_authentication() -> None:
    authenticator = TwoSteps()
    selector, _ = connect(authenticator)
    assert selector.is_channel_ready("1")
    channel = selector.channel("1")
    assert channel is not None
    assert channel.interest() == READABLE
    assert channel.principal() == ALICE
    selector.close()
    assert authenticator.closed


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (SaslAuthenticationError("wrong password"), State.AUTHENTICATION_FAILED),
        (ProtocolError("no such message"), State.AUTHENTICATE),
    ],
)
def test_authentication_failure_differs_from_protocol_error(
    failure: KafkaError, state: State
) -> None:
    authenticator = TwoSteps(failure)
    selector, _ = connect(authenticator)
    assert selector.disconnected["1"].state is state
    assert selector.disconnected["1"].reason is failure
    assert authenticator.closed


@pytest.fixture
def channel() -> KafkaChannel:
    selector, _ = connect(TwoSteps())
    connected = selector.channel("1")
    assert connected is not None
    return connected


@pytest.mark.parametrize(
    "events",
    [
        [E.REQUEST_RECEIVED, E.RESPONSE_SENT],
        [E.REQUEST_RECEIVED, E.THROTTLE_STARTED, E.RESPONSE_SENT, E.THROTTLE_ENDED],
        [E.REQUEST_RECEIVED, E.THROTTLE_STARTED, E.THROTTLE_ENDED, E.RESPONSE_SENT],
    ],
)
def test_mute_state_returns_to_muted_after_each_request(
    channel: KafkaChannel, events: list[ChannelMuteEvent]
) -> None:
    channel.mute()
    for event in events:
        channel.handle_mute_event(event)
        assert (channel.mute_state is S.MUTED) == (event is events[-1])
    assert channel.maybe_unmute()


@pytest.mark.parametrize(("state", "event"), list(itertools.product(S, E)))
def test_transition_without_row_is_refused(
    channel: KafkaChannel, state: ChannelMuteState, event: ChannelMuteEvent
) -> None:
    channel.mute_state = state
    following = MUTE_TRANSITIONS.get((state, event))
    if following is not None:
        channel.handle_mute_event(event)
        assert channel.mute_state is following
    else:
        with pytest.raises(IllegalStateError, match=event.name):
            channel.handle_mute_event(event)


class Renewing(NoAuthenticator):
    """Authenticator whose session must be renewed once, with one request of its own."""

    def __init__(self, transport: PlaintextTransportLayer) -> None:
        self.reauthenticating = False
        self.due = False
        self.responses: list[bytes] = []
        self._transport = transport
        self._sending = NetworkSend("1", [])

    def must_reauthenticate(self) -> bool:
        return self.due

    def start_reauthentication(self) -> None:
        self.due = False
        self.reauthenticating = True
        self._sending = NetworkSend("1", [b"renew"])

    def write(self) -> None:
        self._sending.write_to(self._transport)

    def wants_write(self) -> bool:
        return not self._sending.completed

    def handle_response(self, payload: memoryview) -> None:
        self.responses.append(bytes(payload))
        self.reauthenticating = False


def response(correlation_id: int, text: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(text), correlation_id) + text


def test_session_is_renewed_between_requests() -> None:
    """Responses to earlier requests come first, and the next request waits for the renewal."""
    pipe = MemorySocket()
    transport = PlaintextTransportLayer(pipe)
    authenticator = Renewing(transport)
    channel = KafkaChannel("1", transport, authenticator, UnlimitedMemoryPool(), 1000)
    channel.state = State.READY
    channel.set_send(NetworkSend("1", [b"first"]))
    assert channel.write() is not None
    authenticator.due = True
    following = NetworkSend("1", [b"next"])
    channel.set_send(following)
    assert channel.write() is None
    assert pipe.sent == b"\0\0\0\5first\0\0\0\5renew"
    assert channel.interest() == READABLE
    pipe.received = response(7, b"to the first")
    earlier = channel.read()
    assert earlier is not None
    assert bytes(earlier.payload)[4:] == b"to the first"
    assert channel.write() is None
    pipe.received = response(FIRST_RESERVED_CORRELATION_ID)
    assert channel.read() is None
    assert authenticator.responses == [response(FIRST_RESERVED_CORRELATION_ID)[4:]]
    assert channel.interest() == READABLE | WRITABLE
    assert channel.write() is following
    assert pipe.sent.endswith(b"renew\0\0\0\4next")


def test_request_that_was_begun_is_completed_before_a_renewal() -> None:
    pipe = MemorySocket(accepts=3)
    transport = PlaintextTransportLayer(pipe)
    authenticator = Renewing(transport)
    channel = KafkaChannel("1", transport, authenticator, UnlimitedMemoryPool(), 1000)
    channel.state = State.READY
    channel.set_send(NetworkSend("1", [b"first"]))
    assert channel.write() is None
    authenticator.due = True
    pipe.accepts = 100
    assert channel.write() is not None
    assert pipe.sent == b"\0\0\0\5first"
