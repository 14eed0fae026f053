"""Connection with its transport layer, its authenticator and the frames in transfer."""

import contextlib
import enum
import os
from typing import NamedTuple

from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import READABLE, WRITABLE
from kclient.network.authenticator import (
    FIRST_RESERVED_CORRELATION_ID,
    Authenticator,
    KafkaPrincipal,
)
from kclient.network.memory_pool import MemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.transport_layer import TransportLayer

_CORRELATION_ID_SIZE = 4


class State(enum.Enum):
    """State of a connection (Kafka: ChannelState.State)."""

    NOT_CONNECTED = "not connected"
    AUTHENTICATE = "authenticating"
    READY = "ready"
    EXPIRED = "closed after being idle"
    AUTHENTICATION_FAILED = "authentication failed"
    LOCAL_CLOSE = "closed by this side"


class ChannelState(NamedTuple):
    """End of a connection (Kafka: ChannelState).

    Attributes:
        state: Last state; EXPIRED and LOCAL_CLOSE mean that this side closed the connection.
        reason: Error that ended the connection; the original exception is its cause.
    """

    state: State
    reason: KafkaError


class ChannelMuteState(enum.Enum):
    """Whether a channel is read, and why not (Kafka: KafkaChannel.ChannelMuteState).

    A server processes one request of a connection at a time, so that responses keep the order of
    the requests, and reads nothing while the client is throttled. Both may hold at once; the
    channel is unmuted when neither does.
    """

    NOT_MUTED = enum.auto()
    MUTED = enum.auto()
    MUTED_AND_RESPONSE_PENDING = enum.auto()
    MUTED_AND_THROTTLED = enum.auto()
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = enum.auto()


class ChannelMuteEvent(enum.Enum):
    """Event of a muted channel (Kafka: KafkaChannel.ChannelMuteEvent)."""

    REQUEST_RECEIVED = enum.auto()
    RESPONSE_SENT = enum.auto()
    THROTTLE_STARTED = enum.auto()
    THROTTLE_ENDED = enum.auto()


_S = ChannelMuteState
_E = ChannelMuteEvent

MUTE_TRANSITIONS: dict[tuple[ChannelMuteState, ChannelMuteEvent], ChannelMuteState] = {
    (_S.MUTED, _E.REQUEST_RECEIVED): _S.MUTED_AND_RESPONSE_PENDING,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.THROTTLE_STARTED): (
        _S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    ),
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED_AND_THROTTLED,
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.THROTTLE_ENDED): (
        _S.MUTED_AND_RESPONSE_PENDING
    ),
    (_S.MUTED_AND_THROTTLED, _E.THROTTLE_ENDED): _S.MUTED,
}


def _is_of_authenticator(receive: NetworkReceive) -> bool:
    """Return whether a frame is a response to a request of the authenticator.

    Responses to requests that were written before the re-authentication come first.
    """
    correlation_id = int.from_bytes(receive.payload[:_CORRELATION_ID_SIZE], "big", signed=True)
    return correlation_id >= FIRST_RESERVED_CORRELATION_ID


class KafkaChannel:
    """Connection that a `Selector` serves, of a client or a server (Kafka: KafkaChannel).

    At most one frame is being written and one being read at a time.

    Attributes:
        id: Name of the channel: a node id on a client, a connection id on a server.
        transport: Transport layer that reads and writes the bytes.
        authenticator: Authentication that precedes the first request.
        state: State of the connection.
        address: Address of the peer as text, for messages.
        mute_state: Whether it is muted, and why.
        pending_send: Frame that is being written, if any.
        receiving: Frame that is being read, if any.
        received: Bytes that were received after the last frame and belong to the next ones.
    """

    def __init__(
        self,
        channel_id: str,
        transport: TransportLayer,
        authenticator: Authenticator,
        memory_pool: MemoryPool,
        max_receive_size: int,
        read_ahead: int = 0,
    ) -> None:
        """Create a channel.

        Args:
            channel_id: Name of the channel.
            transport: Transport layer.
            authenticator: Authentication that precedes the first request.
            memory_pool: Memory of the received frames.
            max_receive_size: Largest frame.
            read_ahead: Most bytes that are read together with the size of a frame, which spares
                a system call for small frames. Only the selector sees that some are left.
        """
        self.id = channel_id
        self.transport = transport
        self.authenticator = authenticator
        self.state = State.NOT_CONNECTED
        self.address = ""
        self.mute_state = ChannelMuteState.NOT_MUTED
        self._memory_pool = memory_pool
        self._max_receive_size = max_receive_size
        self.pending_send: NetworkSend | None = None
        self.received = memoryview(b"")
        self._read_ahead = memoryview(bytearray(read_ahead))
        self.receiving: NetworkReceive | None = None

    def ready(self) -> bool:
        """Return whether the channel can carry requests."""
        return self.state is State.READY

    def principal(self) -> KafkaPrincipal:
        """Return the principal of the peer of a ready channel."""
        return self.authenticator.principal()

    def begin_server_reauthentication(self, handshake: memoryview) -> bool:
        """Start another authentication of the client, if its session is limited (KIP-368).

        Args:
            handshake: SaslHandshake request that the channel has received.

        Returns:
            Whether it was started; if not, the request is handled as any other.
        """
        if not self.authenticator.begin_server_reauthentication(handshake):
            return False
        self.state = State.AUTHENTICATE
        return True

    def finish_connect(self) -> None:
        """Record the end of a connection attempt.

        Raises:
            OSError: The attempt failed.
        """
        failure = self.transport.socket.connect_error()
        if failure:
            raise OSError(failure, os.strerror(failure))
        self.state = State.AUTHENTICATE

    def prepare(self) -> None:
        """Run the next step of handshake and authentication.

        Raises:
            KafkaError: One of them failed; a retry fails as well.
            EOFError: The peer closed the connection.
            OSError: The connection broke.
        """
        if not self.transport.ready():
            self.transport.handshake()
        if self.transport.ready() and not self.authenticator.complete():
            self.authenticator.authenticate()
        if self.transport.ready() and self.authenticator.complete():
            self.state = State.READY

    def interest(self) -> int:
        """Return the events worth waiting for: READABLE, WRITABLE, their sum, or 0."""
        state = self.state
        if state is State.NOT_CONNECTED:
            return WRITABLE
        if state is State.AUTHENTICATION_FAILED:
            return 0
        interest = 0
        if self.mute_state is ChannelMuteState.NOT_MUTED and not (
            self.receiving is not None and self.receiving.waits_for_memory()
        ):
            interest = READABLE
        writes_requests = state is State.READY and not self.authenticator.reauthenticating
        wants_write = self.pending_send if writes_requests else self.authenticator.wants_write()
        if wants_write or self.transport.wants_write:
            interest |= WRITABLE
        return interest

    def set_send(self, send: NetworkSend) -> None:
        """Set the frame to write.

        Raises:
            IllegalStateError: Another frame is still being written.
        """
        if self.pending_send is not None:
            raise IllegalStateError(f"channel {self.id}: a frame is still being written")
        self.pending_send = send

    def write(self) -> NetworkSend | None:
        """Write as much as the socket accepts now; return the frame when it is complete."""
        send = self.pending_send
        if self.authenticator.reauthenticating:
            self.authenticator.write()
            return None
        if send is None:
            if self.transport.wants_write:
                self.transport.flush()
            return None
        if not send.started and self.authenticator.must_reauthenticate():
            self.authenticator.start_reauthentication()
            self.authenticator.write()
            return None
        send.write_to(self.transport)
        if not send.completed:
            return None
        self.pending_send = None
        return send

    def read(self) -> NetworkReceive | None:
        """Read the available bytes of a frame, unless muted; return it when it is complete."""
        if self.mute_state is not ChannelMuteState.NOT_MUTED:
            return None
        receive = self.receiving
        if receive is None:
            receive = NetworkReceive(self.id, self._max_receive_size, self._memory_pool)
            self.receiving = receive
            if self._read_ahead and not self.received:
                count = self.transport.read_into(self._read_ahead)
                if not count:
                    return None
                self.received = self._read_ahead[:count]
        if self.received:
            self.received = self.received[receive.take(self.received) :]
        if not receive.completed:
            if self.received:
                return None  # there is no memory; more bytes would be read before these
            receive.read_from(self.transport)
            if not receive.completed:
                return None
        self.receiving = None
        if self.authenticator.reauthenticating and _is_of_authenticator(receive):
            try:
                self.authenticator.handle_response(receive.payload)
            finally:
                receive.release()
            return None
        return receive

    def waits_for_memory(self) -> bool:
        """Return whether reading waits for memory of the pool."""
        return self.receiving is not None and self.receiving.waits_for_memory()

    def progress(self) -> str:
        """Return how much of the present frame was read, for error texts; empty between frames."""
        receive = self.receiving
        return receive.progress() if receive is not None and receive.started() else ""

    def is_muted(self) -> bool:
        """Return whether the channel is not read at present."""
        return self.mute_state is not ChannelMuteState.NOT_MUTED

    def mute(self) -> None:
        """Stop reading; idempotent. For `Selector.mute` only, which updates the poller as well."""
        if self.mute_state is ChannelMuteState.NOT_MUTED:
            self.mute_state = ChannelMuteState.MUTED

    def maybe_unmute(self) -> bool:
        """Resume reading unless a response or a throttle is pending; return whether it resumed."""
        if self.mute_state is ChannelMuteState.MUTED:
            self.mute_state = ChannelMuteState.NOT_MUTED
        return self.mute_state is ChannelMuteState.NOT_MUTED

    def handle_mute_event(self, event: ChannelMuteEvent) -> None:
        """Apply an event; see `MUTE_TRANSITIONS`.

        Raises:
            IllegalStateError: The event is not allowed in the present state.
        """
        following = MUTE_TRANSITIONS.get((self.mute_state, event))
        if following is None:
            raise IllegalStateError(
                f"channel mute state: {event.name} is not allowed in {self.mute_state.name}"
            )
        self.mute_state = following

    def close(self) -> None:
        """Close the connection and release the memory of a partly read frame; idempotent."""
        if self.receiving is not None:
            self.receiving.release()
            self.receiving = None
        self.authenticator.close()
        with contextlib.suppress(OSError):  # closing a broken socket may fail; it is closed anyway
            self.transport.close()
