"""Selector: non-blocking input and output of many connections in one thread."""

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kclient.common.errors import (
    AuthenticationError,
    DisconnectedError,
    IllegalStateError,
    KafkaError,
    SslAuthenticationError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import READABLE, WRITABLE, Address, Clock, Net, StreamSocket
from kclient.network.channel_builder import ChannelBuilder, PlaintextChannelBuilder
from kclient.network.kafka_channel import ChannelMuteState, ChannelState, KafkaChannel, State
from kclient.network.memory_pool import MemoryPool, UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend

DEFAULT_MAX_RECEIVE_SIZE = 100 * 1024 * 1024


class IdleExpiryManager:
    """Connections in the order of their last use (Kafka: Selector.IdleExpiryManager).

    Attributes:
        max_idle_ms: Longest idle time of a connection; negative for no limit.
        next_check_ms: Time until which none is idle for too long.
    """

    def __init__(self, max_idle_ms: float) -> None:
        self.max_idle_ms = max_idle_ms
        self.next_check_ms = -math.inf if max_idle_ms >= 0 else math.inf
        self._last_used: dict[str, float] = {}  # the least recently used first

    def touch(self, channel_id: str, now_ms: float) -> None:
        """Record that a connection is in use."""
        self._last_used.pop(channel_id, None)
        self._last_used[channel_id] = now_ms

    def remove(self, channel_id: str) -> None:
        """Remove a connection that ended."""
        self._last_used.pop(channel_id, None)

    def overdue(self, now_ms: float) -> list[str]:
        """Return the connections that were idle for too long."""
        found: list[str] = []
        if now_ms <= self.next_check_ms:
            return found
        self.next_check_ms = now_ms + self.max_idle_ms
        for channel_id, used_ms in self._last_used.items():
            if now_ms - used_ms <= self.max_idle_ms:
                self.next_check_ms = used_ms + self.max_idle_ms
                break
            found.append(channel_id)
        return found


class _FailedAuthentication(NamedTuple):
    """Channel that is closed later, after its response (KIP-306)."""

    channel: KafkaChannel
    reason: AuthenticationError
    close_at_ms: float


class Selector:
    """Opens, accepts and serves connections for one network thread (Kafka: Selector).

    Each `poll` does the input and output that is possible now. Its results are in the lists below
    until the next `poll`. At most one frame per channel is received in a `poll`. Only `wakeup` may
    be called from another thread.

    Attributes:
        completed_sends: Frames that were written completely, but those that await their response.
        completed_receives: Frames that were received, in order of arrival on each channel.
        connected: Channels whose connection was established.
        disconnected: Channels that ended without `close_channel`, each with its reason.
        failed_sends: Frames that were not written completely when their channel ended.
        wakeup: Makes the present or the next `poll` return at once; callable from any thread.
    """

    def __init__(
        self,
        net: Net,
        clock: Clock,
        *,
        max_receive_size: int = DEFAULT_MAX_RECEIVE_SIZE,
        connections_max_idle_ms: float = -1,
        authentication_timeout_ms: float = math.inf,
        max_unauthenticated: float = math.inf,
        memory_pool: MemoryPool | None = None,
        channel_builder: ChannelBuilder | None = None,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create a selector.

        Args:
            net: Network of the connections.
            clock: Clock of the time limits.
            max_receive_size: Largest frame.
            connections_max_idle_ms: Longest idle time of a connection; negative for no limit.
            authentication_timeout_ms: Longest time until an accepted connection is authenticated.
            max_unauthenticated: Most accepted connections that are not authenticated; beyond it
                the oldest of them is closed.
            memory_pool: Memory of the received frames.
            channel_builder: Builds the channels; of PLAINTEXT if None.
            log_context: Prefix of the log lines.
        """
        self._log = log_context.logger(__name__)
        self.completed_sends: list[NetworkSend] = []
        self.completed_receives: list[NetworkReceive] = []
        self.connected: list[str] = []
        self.disconnected: dict[str, ChannelState] = {}
        self.failed_sends: list[NetworkSend] = []
        self._net = net
        self._clock = clock
        self._max_receive_size = max_receive_size
        self._pool = memory_pool if memory_pool is not None else UnlimitedMemoryPool()
        self._builder = (
            channel_builder if channel_builder is not None else PlaintextChannelBuilder()
        )
        self._poller = net.poller()
        self.wakeup = self._poller.wakeup
        self._interests: dict[str, int] = {}  # as registered with the poller
        self._surplus: dict[str, KafkaChannel] = {}  # may be registered for too many events
        self._idle = IdleExpiryManager(connections_max_idle_ms)
        self._channels: dict[str, KafkaChannel] = {}
        self._to_serve: dict[str, KafkaChannel] = {}  # accepted, or given a frame, since last poll
        self._buffered: dict[str, KafkaChannel] = {}  # hold bytes that the poller cannot see
        self._out_of_memory: dict[str, KafkaChannel] = {}  # wait for memory to read a frame into
        self._failed: dict[str, _FailedAuthentication] = {}  # closed later, in order of the time
        # Accepted channels that are not ready, in order of the time when each is closed.
        self._authenticating: dict[str, float] = {}
        self._authentication_timeout_ms = authentication_timeout_ms
        self._max_unauthenticated = max_unauthenticated
        self._wrote_ahead = False  # the results have those of frames written since the last poll
        self._closed = False

    def connect(
        self,
        channel_id: str,
        address: Address,
        send_buffer: int = -1,
        receive_buffer: int = -1,
        *,
        host: str = "",
    ) -> None:
        """Start connecting; a later `poll` adds the channel to `connected` or `disconnected`.

        Args:
            channel_id: Name of the new channel.
            address: IP address and port.
            send_buffer: Bytes of the kernel's send buffer, -1 for its default.
            receive_buffer: Bytes of the kernel's receive buffer, -1 for its default.
            host: Host name of the address, for the verification of the peer.

        Raises:
            OSError: The attempt failed at once.
            IllegalStateError: A channel of this name exists.
        """
        _check_new(channel_id, self._channels)
        stream = self._net.connect(address, send_buffer, receive_buffer)
        try:
            self._add(channel_id, stream, address, host)
        except BaseException:
            self._channels.pop(channel_id, None)
            stream.close()
            raise

    def register(self, channel_id: str, stream: StreamSocket) -> None:
        """Add an accepted connection.

        Raises:
            OSError: The peer has closed the connection; the socket was closed.
            IllegalStateError: A channel of this name exists.
        """
        _check_new(channel_id, self._channels)
        try:
            address = stream.peer_address()
        except OSError:
            stream.close()
            raise
        channel = self._add(channel_id, stream, address, host="")
        channel.state = State.AUTHENTICATE
        self._to_serve[channel_id] = channel
        self._limit_authentication(channel_id)

    def send(self, send: NetworkSend) -> None:
        """Queue a frame, to be written by `write_ahead` or the next `poll`.

        Raises:
            IllegalStateError: There is no such channel, or it is still writing another frame.
        """
        channel_id = send.channel_id
        channel = self._channels.get(channel_id) or self._channel_or_fail(channel_id)
        channel.set_send(send)
        self._to_serve[channel_id] = channel

    def poll(self, timeout_ms: float, now_ms: float) -> float:
        """Do the input and output that is possible; wait at most `timeout_ms` for the first.

        Args:
            timeout_ms: Longest wait; 0 does not wait.
            now_ms: Present time, for the idle time of connections.

        Returns:
            The time at the end of the wait.
        """
        self._discard_results()
        self._wrote_ahead = False
        if len(self._authenticating) > self._max_unauthenticated:
            # Before any of them is read: many may have been accepted since the last poll.
            self._close_unauthenticated(now_ms)
        if self._to_serve:
            self.write_queued(now_ms)
        if self._out_of_memory:
            self._resume_reads()
        if self._buffered or self.disconnected or self.completed_sends:
            timeout_ms = 0
        elif self._surplus or self._failed:
            timeout_ms = self._prepare_wait(timeout_ms, now_ms)
        ready: list[tuple[Any, int]] = []
        if not self._buffered:  # else others wait for a few small frames at most
            ready = self._poller.poll(max(0.0, timeout_ms))
        now_ms = self._clock.monotonic_ms()
        buffered, self._buffered = self._buffered, {}
        for channel, events in ready:
            self._idle.touch(channel.id, now_ms)
            unseen = buffered.pop(channel.id, None)
            self._serve(channel, events if unseen is None else events | READABLE)
        for channel in buffered.values():
            self._serve(channel, READABLE)
        if self._failed or self._authenticating or now_ms > self._idle.next_check_ms:
            self._close_failed(now_ms)
            self._close_unauthenticated(now_ms)
            self._close_idle(now_ms)
        return now_ms

    def _discard_results(self) -> None:
        """Discard the results of the last `poll`, but not those of `write_ahead` after it."""
        if self._wrote_ahead:
            return
        self.completed_sends.clear()
        self.completed_receives.clear()
        self.failed_sends.clear()
        self.connected.clear()
        self.disconnected.clear()

    def close(self) -> None:
        """Close every channel and the selector itself; idempotent."""
        if self._closed:
            return
        for channel_id in list(self._channels):
            self.close_channel(channel_id)
        self._poller.close()
        self._closed = True

    def close_channel(self, channel_id: str) -> None:
        """Close one channel, without an entry in `disconnected`; unknown names are ignored."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            channel.state = State.LOCAL_CLOSE
            self._remove(channel)

    def mute(self, channel_id: str) -> KafkaChannel:
        """Stop reading from a channel, and return it."""
        channel = self._channel_or_fail(channel_id)
        channel.mute()
        self._buffered.pop(channel_id, None)
        self._surplus[channel_id] = channel
        return channel

    def unmute(self, channel_id: str) -> bool:
        """Resume reading unless a response or a throttle is pending; return whether it resumed."""
        channel = self._channel_or_fail(channel_id)
        unmuted = channel.maybe_unmute()
        if unmuted:
            self._surplus.pop(channel_id, None)
            self._update_interest(channel)
        return unmuted

    def is_channel_ready(self, channel_id: str) -> bool:
        """Return whether the channel exists and can carry requests."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.ready()

    def channel(self, channel_id: str) -> KafkaChannel | None:
        """Return a channel by name, or None if it has ended."""
        return self._channels.get(channel_id)

    def channels(self) -> Iterable[KafkaChannel]:
        """Return the open channels."""
        return list(self._channels.values())

    @property
    def has_buffered(self) -> bool:
        """Whether received bytes wait for the next `poll`, which does not wait then."""
        return bool(self._buffered)

    def _channel_or_fail(self, channel_id: str) -> KafkaChannel:
        channel = self._channels.get(channel_id)
        if channel is None:
            raise IllegalStateError(f"channel {channel_id}: no channel of this name")
        return channel

    def _add(
        self, channel_id: str, stream: StreamSocket, address: Address, host: str
    ) -> KafkaChannel:
        channel = self._builder.build_channel(
            channel_id, stream, self._max_receive_size, self._pool, host
        )
        channel.address = format_address(address)
        self._channels[channel_id] = channel
        interest = channel.interest()
        self._interests[channel_id] = interest
        self._poller.register(stream, interest, channel)
        self._idle.touch(channel_id, self._clock.monotonic_ms())
        return channel

    def write_ahead(self, now_ms: float) -> None:
        """Write the queued frames before the next `poll`, which has the results.

        The results of the last `poll` are discarded.
        """
        self._discard_results()
        self._wrote_ahead = True
        self.write_queued(now_ms)

    def write_queued(self, now_ms: float) -> None:
        """Write the queued frames, as `poll` does first: most sockets take one without waiting.

        Complete ones are added to `completed_sends`.
        """
        queued, self._to_serve = self._to_serve, {}
        for channel in queued.values():
            if channel.state is not State.NOT_CONNECTED:
                self._idle.touch(channel.id, now_ms)
                if channel.pending_send is not None:
                    channel.pending_send.write_began_ms = now_ms
                self._serve(channel, WRITABLE)

    def _resume_reads(self) -> None:
        """Resume the reads that waited for memory, if the pool has some."""
        if self._pool.available() > 0:
            self._buffered.update(self._out_of_memory)
            self._out_of_memory = {}

    def _serve(self, channel: KafkaChannel, events: int) -> None:
        """Serve a channel; on an error, close it and record the reason."""
        try:
            if channel.state is State.READY or self._prepare(channel):
                if events & READABLE:
                    receive = channel.read()
                    if receive is not None:
                        self.completed_receives.append(receive)
                if channel.pending_send is not None or events & WRITABLE:
                    send = channel.write()
                    if send is not None and not send.awaits_reply:
                        self.completed_sends.append(send)
        except (KafkaError, EOFError, OSError) as error:
            self._fail(channel, _reason(channel, error))
        else:
            if (
                channel.pending_send is not None
                or channel.receiving is not None
                or channel.state is not State.READY
                or channel.mute_state is not ChannelMuteState.NOT_MUTED
                or channel.transport.wants_write
                or self._interests[channel.id] != READABLE
            ):
                self._update_interest(channel)
            elif channel.received or channel.transport.has_buffered:
                self._buffered[channel.id] = channel

    def reauthenticate(self, receive: NetworkReceive) -> bool:
        """Start another authentication of a client with a SaslHandshake request (KIP-368).

        Returns:
            Whether it was started; if not, the request is handled as any other.
        """
        channel = self._channel_or_fail(receive.source)
        try:
            if not channel.begin_server_reauthentication(receive.payload):
                return False
        except KafkaError as error:
            self._drop(channel, error)  # at once, as in Kafka
            return True
        self._to_serve[channel.id] = channel
        self._limit_authentication(channel.id)
        return True

    def _limit_authentication(self, channel_id: str) -> None:
        self._authenticating[channel_id] = (
            self._clock.monotonic_ms() + self._authentication_timeout_ms
        )

    def _close_unauthenticated(self, now_ms: float) -> None:
        """Close the channels that were not authenticated in time, and the oldest beyond the limit.

        A client that sends nothing, or sends it slowly, must not keep others from connecting.
        """
        while self._authenticating:
            channel_id, close_at_ms = next(iter(self._authenticating.items()))
            if close_at_ms <= now_ms:
                limit = f"in {self._authentication_timeout_ms:.0f} ms"
            elif len(self._authenticating) > self._max_unauthenticated:
                limit = f"and more than {self._max_unauthenticated} others are not, either"
            else:
                return
            reason = AuthenticationError(f"the client was not authenticated {limit}")
            self._drop(self._channels[channel_id], reason)

    def _first_failed(self) -> _FailedAuthentication:
        return next(iter(self._failed.values()))

    def _prepare_wait(self, timeout_ms: float, now_ms: float) -> float:
        """Register the smaller interests; return how long the poller may wait."""
        self._remove_surplus_interest()
        if self._failed:
            timeout_ms = min(timeout_ms, self._first_failed().close_at_ms - now_ms)
        return timeout_ms

    def _fail(self, channel: KafkaChannel, reason: KafkaError) -> None:
        """Close a channel after an error: later, if the peer gets a response to it (KIP-306)."""
        if (
            isinstance(reason, SslAuthenticationError)
            or not isinstance(reason, AuthenticationError)
            or channel.authenticator.failure_delay_ms <= 0
        ):
            self._drop(channel, reason)
            return
        channel.state = State.AUTHENTICATION_FAILED
        close_at_ms = self._clock.monotonic_ms() + channel.authenticator.failure_delay_ms
        self._failed[channel.id] = _FailedAuthentication(channel, reason, close_at_ms)
        self._authenticating.pop(channel.id, None)
        self._surplus[channel.id] = channel

    def _close_failed(self, now_ms: float) -> None:
        """Write the response to each failed authentication whose delay is over; close it."""
        while self._failed and (failed := self._first_failed()).close_at_ms <= now_ms:
            with contextlib.suppress(KafkaError, EOFError, OSError):
                failed.channel.authenticator.write()
            self._drop(failed.channel, failed.reason)

    def _prepare(self, channel: KafkaChannel) -> bool:
        """Run the next step of connection and authentication; return whether it was the last."""
        if channel.state is State.AUTHENTICATION_FAILED:
            return False
        if channel.state is State.NOT_CONNECTED:
            channel.finish_connect()
            self.connected.append(channel.id)
        channel.prepare()
        if not channel.ready():
            return False
        self._authenticating.pop(channel.id, None)
        return True

    def _update_interest(self, channel: KafkaChannel) -> None:
        """Register what the channel waits for next: memory, buffered bytes or its socket."""
        interest = channel.interest()
        if interest & READABLE:
            if channel.received or channel.transport.has_buffered:
                self._buffered[channel.id] = channel
        elif channel.waits_for_memory():
            self._out_of_memory[channel.id] = channel
        # Each change costs a system call. A smaller interest is registered by a `poll` without
        # results only: a broker has unmuted most channels before that.
        registered = self._interests[channel.id]
        if interest & ~registered:
            self._register_interest(channel, interest)
        elif interest != registered:
            self._surplus[channel.id] = channel

    def _remove_surplus_interest(self) -> None:
        """Register the smaller interests, before the poller waits."""
        surplus, self._surplus = self._surplus, {}
        for channel in surplus.values():
            interest = channel.interest()
            if interest != self._interests[channel.id]:
                self._register_interest(channel, interest)

    def _register_interest(self, channel: KafkaChannel, interest: int) -> None:
        self._interests[channel.id] = interest
        self._poller.modify(channel.transport.socket, interest)

    def _close_idle(self, now_ms: float) -> None:
        if now_ms <= self._idle.next_check_ms:
            return
        for channel_id in self._idle.overdue(now_ms):
            channel = self._channels[channel_id]
            channel.state = State.EXPIRED
            limit = f"{self._idle.max_idle_ms:.0f} ms"
            self._drop(channel, DisconnectedError(f"nothing was sent or received for {limit}"))

    def _drop(self, channel: KafkaChannel, reason: KafkaError) -> None:
        self._log.debug("channel %s (%s) ended: %s", channel.id, channel.address, reason)
        if channel.pending_send is not None:
            self.failed_sends.append(channel.pending_send)
        if isinstance(reason, AuthenticationError):
            channel.state = State.AUTHENTICATION_FAILED
        self.disconnected[channel.id] = ChannelState(channel.state, reason)
        self._remove(channel)

    def _remove(self, channel: KafkaChannel) -> None:
        for waiting in (self._to_serve, self._buffered, self._out_of_memory, self._surplus):
            waiting.pop(channel.id, None)
        self._failed.pop(channel.id, None)
        self._authenticating.pop(channel.id, None)
        self._idle.remove(channel.id)
        try:
            if self._interests.pop(channel.id, None) is not None:
                self._poller.unregister(channel.transport.socket)
        finally:
            channel.close()
            self._channels.pop(channel.id, None)


def _check_new(channel_id: str, channels: Mapping[str, KafkaChannel]) -> None:
    if channel_id in channels:
        raise IllegalStateError(f"channel {channel_id}: a channel of this name exists")


def format_address(address: Address) -> str:
    """Return ``host:port``, with brackets around an IPv6 address."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(channel: KafkaChannel, error: Exception) -> KafkaError:
    """Return the reason of a disconnection, from what reading or writing raised."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, EOFError):
        return _ended(channel, "the peer closed the connection")
    strerror = error.strerror if isinstance(error, OSError) else None
    reason = _ended(channel, strerror or str(error))
    reason.__cause__ = error
    return reason


def _ended(channel: KafkaChannel, what: str) -> DisconnectedError:
    """Return the reason, with the progress of the connection attempt or of the frame."""
    if channel.state is State.NOT_CONNECTED:
        return DisconnectedError(f"could not connect: {what}")
    progress = channel.progress()
    return DisconnectedError(f"{what} {progress}" if progress else what)
