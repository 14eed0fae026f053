"""Channels: authentication in several steps, and the transitions of the mute states."""

import itertools

import pytest

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import IllegalStateError, KafkaError, ProtocolError
from kclient.common.runtime import READABLE, WRITABLE, StreamSocket
from kclient.network.authenticator import KafkaPrincipal
from kclient.network.kafka_channel import (
    MUTE_TRANSITIONS,
    ChannelMuteEvent,
    ChannelMuteState,
    KafkaChannel,
    State,
)
from kclient.network.memory_pool import MemoryPool
from kclient.network.selector import Selector
from kclient.network.transport_layer import PlaintextTransportLayer
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.support.virtual.virtual_home import VirtualHome

HERE = ("10.0.0.1", 9092)
ALICE = KafkaPrincipal("User", "alice")

E = ChannelMuteEvent
S = ChannelMuteState


class TwoSteps:
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
