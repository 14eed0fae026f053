"""One connection: its transport, its authentication, and the frames on their way."""

import contextlib
import os

from kclient.common.errors import IllegalStateError, KafkaError, ProtocolError, RetriableError
from kclient.common.runtime import READABLE, WRITABLE
from kclient.network.authenticator import Authenticator
from kclient.network.channel_mute_state import (
    ChannelMuteEvent,
    ChannelMuteState,
    next_mute_state,
)
from kclient.network.channel_state import State
from kclient.network.memory_pool import MemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.transport_layer import TransportLayer


class KafkaChannel:
    """A connection as a `Selector` sees it, on clients and servers alike (Kafka: KafkaChannel).

    At most one frame is being written and one being read at a time.

    Attributes:
        id: Name given by whoever opened it: a node id on a client, a connection id on a server.
        transport: Where bytes go and come from.
        authenticator: The exchange before the first request.
        state: How far the connection got.
        address: The peer, in words, for messages.
        mute_state: Why it is not read from, if it is not.
    """

    def __init__(
        self,
        channel_id: str,
        transport: TransportLayer,
        authenticator: Authenticator,
        memory_pool: MemoryPool,
        max_receive_size: int,
    ) -> None:
        self.id = channel_id
        self.transport = transport
        self.authenticator = authenticator
        self.state = State.NOT_CONNECTED
        self.address = ""
        self.mute_state = ChannelMuteState.NOT_MUTED
        self._memory_pool = memory_pool
        self._max_receive_size = max_receive_size
        self._send: NetworkSend | None = None
        self._receive: NetworkReceive | None = None

    def ready(self) -> bool:
        """Return whether requests may flow."""
        return self.state is State.READY

    def finish_connect(self) -> None:
        """Take note of the end of a connect attempt.

        Raises:
            OSError: It failed.
        """
        failure = self.transport.socket.connect_error()
        if failure:
            raise OSError(failure, os.strerror(failure))
        self.state = State.AUTHENTICATE

    def prepare(self) -> None:
        """Take the next step of handshake and authentication.

        Raises:
            KafkaError: Either failed for good.
            EOFError: The peer closed the connection.
            OSError: The connection broke.
        """
        if not self.transport.ready():
            self.transport.handshake()
        if self.transport.ready() and not self.authenticator.complete():
            self._authenticate()
        if self.transport.ready() and self.authenticator.complete():
            self.state = State.READY

    def _authenticate(self) -> None:
        self.state = State.AUTHENTICATE
        try:
            self.authenticator.authenticate()
        except KafkaError as error:
            if not isinstance(error, RetriableError | ProtocolError):
                self.state = State.AUTHENTICATION_FAILED
            raise

    def interest(self) -> int:
        """Return the events worth waiting for: READABLE, WRITABLE, their sum, or 0."""
        if self.state is State.NOT_CONNECTED:
            return WRITABLE
        waits = 0 if self.is_muted() or self.waits_for_memory() else READABLE
        wants_write = self._send if self.ready() else self.authenticator.wants_write()
        if wants_write or self.transport.wants_write():
            waits |= WRITABLE
        return waits

    def set_send(self, send: NetworkSend) -> None:
        """Take a frame to write.

        Raises:
            IllegalStateError: Another frame is still being written.
        """
        if self._send is not None:
            raise IllegalStateError(f"channel {self.id}: a frame is still being written")
        self._send = send

    def pending_send(self) -> NetworkSend | None:
        """Return the frame being written, if any."""
        return self._send

    def write(self) -> int:
        """Write what the socket takes now; return the number of bytes."""
        return self._send.write_to(self.transport) if self._send is not None else 0

    def take_completed_send(self) -> NetworkSend | None:
        """Return the frame just written to its end, once."""
        send = self._send
        if send is None or not send.completed():
            return None
        self._send = None
        return send

    def read(self) -> int:
        """Read what is there, up to the end of one frame; return the number of bytes."""
        if self._receive is None:
            self._receive = NetworkReceive(self.id, self._max_receive_size, self._memory_pool)
        return self._receive.read_from(self.transport)

    def take_completed_receive(self) -> NetworkReceive | None:
        """Return the frame just read to its end, once."""
        receive = self._receive
        if receive is None or not receive.completed():
            return None
        self._receive = None
        return receive

    def waits_for_memory(self) -> bool:
        """Return whether reading waits until the pool has memory again."""
        return self._receive is not None and self._receive.waits_for_memory()

    def progress(self) -> str:
        """Say how far the present frame was read, or nothing between two frames."""
        receive = self._receive
        return receive.progress() if receive is not None and receive.started() else ""

    def is_muted(self) -> bool:
        """Return whether the channel is not read from at present."""
        return self.mute_state is not ChannelMuteState.NOT_MUTED

    def mute(self) -> None:
        """Stop reading; no effect if it is muted already. Call `Selector.mute` instead."""
        if self.mute_state is ChannelMuteState.NOT_MUTED:
            self.mute_state = ChannelMuteState.MUTED

    def maybe_unmute(self) -> bool:
        """Read again unless a response or a throttle is pending; return whether it is unmuted."""
        if self.mute_state is ChannelMuteState.MUTED:
            self.mute_state = ChannelMuteState.NOT_MUTED
        return self.mute_state is ChannelMuteState.NOT_MUTED

    def handle_mute_event(self, event: ChannelMuteEvent) -> None:
        """Follow the table of `kclient.network.channel_mute_state`.

        Raises:
            IllegalStateError: The event cannot happen in the present state.
        """
        self.mute_state = next_mute_state(self.mute_state, event)

    def close(self) -> None:
        """Close the connection and give back the memory of a half-read frame; idempotent."""
        if self._receive is not None:
            self._receive.release()
            self._receive = None
        self.authenticator.close()
        with contextlib.suppress(OSError):  # closing a broken connection may complain; it is closed
            self.transport.close()
