"""Many connections, one thread: moves frames in and out as sockets allow."""

from collections.abc import Iterable, Mapping

from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import READABLE, WRITABLE, Address, Clock, Net, StreamSocket
from kclient.network.channel_builder import ChannelBuilder, PlaintextChannelBuilder
from kclient.network.channel_state import ChannelState, State
from kclient.network.channel_watch import ChannelWatch
from kclient.network.idle_expiry_manager import IdleExpiryManager
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool, UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend

DEFAULT_MAX_RECEIVE_SIZE = 100 * 1024 * 1024


class Selector:
    """Opens, accepts and serves connections for one network thread (Kafka: Selector).

    Each `poll` does what input and output is possible now and leaves the results in the lists
    below, which hold until the next `poll`. At most one frame per channel is received in a `poll`.
    Only `wakeup` may be called from another thread.

    Attributes:
        completed_sends: Frames written to their end.
        completed_receives: Frames received, in the order of their arrival on each channel.
        connected: Channels whose connection was established.
        disconnected: Channels that ended without `close_channel`, each with its reason.
        failed_sends: Frames whose channel ended before they were written completely.
        waiting: Whether a `poll` waits, or the exception of a signal handler ended it there.
    """

    def __init__(
        self,
        net: Net,
        clock: Clock,
        *,
        max_receive_size: int = DEFAULT_MAX_RECEIVE_SIZE,
        connections_max_idle_ms: float = -1,
        memory_pool: MemoryPool | None = None,
        channel_builder: ChannelBuilder | None = None,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self.completed_sends: list[NetworkSend] = []
        self.completed_receives: list[NetworkReceive] = []
        self.connected: list[str] = []
        self.disconnected: dict[str, ChannelState] = {}
        self.failed_sends: list[NetworkSend] = []
        self.waiting = False
        self._net = net
        self._clock = clock
        self._max_receive_size = max_receive_size
        self._pool = memory_pool if memory_pool is not None else UnlimitedMemoryPool()
        self._builder = (
            channel_builder if channel_builder is not None else PlaintextChannelBuilder()
        )
        self._watch = ChannelWatch(net.poller())
        self._idle = IdleExpiryManager(connections_max_idle_ms)
        self._channels: dict[str, KafkaChannel] = {}
        self._given: dict[str, KafkaChannel] = {}  # new, or got a frame, since the last poll
        self._buffered: dict[str, KafkaChannel] = {}  # hold bytes that the poller cannot see
        self._starved: dict[str, KafkaChannel] = {}  # wait for memory to read a frame into
        self._closed = False

    def connect(
        self, channel_id: str, address: Address, send_buffer: int = -1, receive_buffer: int = -1
    ) -> None:
        """Start connecting; `connected` or `disconnected` tells the outcome after a later `poll`.

        Args:
            channel_id: Name of the new channel.
            address: IP address and port.
            send_buffer: Bytes of the kernel's send buffer, -1 for its default.
            receive_buffer: Bytes of the kernel's receive buffer, -1 for its default.

        Raises:
            OSError: The attempt failed at once.
            IllegalStateError: A channel of this name exists.
        """
        _check_new(channel_id, self._channels)
        stream = self._net.connect(address, send_buffer, receive_buffer)
        try:
            self._add(channel_id, stream, address)
        except BaseException:
            self._channels.pop(channel_id, None)
            stream.close()
            raise

    def register(self, channel_id: str, stream: StreamSocket) -> None:
        """Serve a connection that was accepted.

        Raises:
            OSError: The peer is gone already; the socket was closed.
            IllegalStateError: A channel of this name exists.
        """
        _check_new(channel_id, self._channels)
        try:
            address = stream.peer_address()
        except OSError:
            stream.close()
            raise
        channel = self._add(channel_id, stream, address)
        channel.state = State.AUTHENTICATE
        self._given[channel_id] = channel

    def send(self, send: NetworkSend) -> None:
        """Give a frame to its channel, to be written by the next `poll`.

        Raises:
            IllegalStateError: There is no such channel, or it is still writing another frame.
        """
        channel = self._channel_or_fail(send.channel_id)
        channel.set_send(send)
        self._given[channel.id] = channel

    def poll(self, timeout_ms: float, now_ms: float) -> None:
        """Do what input and output is possible, waiting at most `timeout_ms` for the first.

        Args:
            timeout_ms: Longest wait; 0 does not wait.
            now_ms: The caller's time; connections count their idleness from it.
        """
        for results in (self.completed_sends, self.completed_receives, self.failed_sends):
            results.clear()
        self.connected.clear()
        self.disconnected.clear()
        self._write_given(now_ms)
        self._feed_starved()
        if self._buffered or self.disconnected or _awaited(self.completed_sends):
            timeout_ms = 0
        self.waiting = True
        ready = self._watch.poll(timeout_ms)
        self.waiting = False
        if timeout_ms > 0:
            now_ms = self._clock.monotonic_ms()
        buffered, self._buffered = self._buffered, {}
        for channel, events in ready:
            self._idle.touch(channel.id, now_ms)
            unseen = buffered.pop(channel.id, None)
            self._guarded(channel, events if unseen is None else events | READABLE)
        for channel in buffered.values():
            self._guarded(channel, READABLE)
        self._close_idle(now_ms)

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once; callable from any thread."""
        self._watch.wakeup()

    def close(self) -> None:
        """Close every channel and the selector itself; idempotent."""
        if self._closed:
            return
        for channel_id in list(self._channels):
            try:
                self.close_channel(channel_id)
            except (LookupError, OSError, ValueError) as error:
                # Ctrl-C struck while it was being watched or closed; the others are closed as well.
                self._log.info("channel %s: %s", channel_id, error)
        self._watch.close()
        self._closed = True  # at last, so that one that was interrupted may be called again

    def close_channel(self, channel_id: str) -> None:
        """Close one channel; it will not appear in `disconnected`. Unknown names are no error."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            channel.state = State.LOCAL_CLOSE
            self._remove(channel)

    def mute(self, channel_id: str) -> None:
        """Stop reading from a channel."""
        channel = self._channel_or_fail(channel_id)
        channel.mute()
        self._buffered.pop(channel_id, None)
        self._watch.refresh(channel)

    def unmute(self, channel_id: str) -> bool:
        """Read again, unless a response or a throttle is pending; return whether it is unmuted."""
        channel = self._channel_or_fail(channel_id)
        unmuted = channel.maybe_unmute()
        if unmuted:
            self._settle(channel)
        return unmuted

    def is_channel_ready(self, channel_id: str) -> bool:
        """Return whether the channel exists and requests may flow."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.ready()

    def channel(self, channel_id: str) -> KafkaChannel | None:
        """Return a channel by name, or None if it has ended."""
        return self._channels.get(channel_id)

    def channels(self) -> Iterable[KafkaChannel]:
        """Return the open channels."""
        return list(self._channels.values())

    def _channel_or_fail(self, channel_id: str) -> KafkaChannel:
        channel = self._channels.get(channel_id)
        if channel is None:
            raise IllegalStateError(f"channel {channel_id}: there is none of this name")
        return channel

    def _add(self, channel_id: str, stream: StreamSocket, address: Address) -> KafkaChannel:
        channel = self._builder.build_channel(
            channel_id, stream, self._max_receive_size, self._pool
        )
        channel.address = _in_words(address)
        self._channels[channel_id] = channel
        self._watch.add(channel)
        self._idle.touch(channel_id, self._clock.monotonic_ms())
        return channel

    def _write_given(self, now_ms: float) -> None:
        """Write at once what was given since the last poll: mostly that needs no waiting."""
        given, self._given = self._given, {}
        for channel in given.values():
            if channel.state is not State.NOT_CONNECTED:
                self._idle.touch(channel.id, now_ms)
                self._guarded(channel, WRITABLE)

    def _feed_starved(self) -> None:
        """Let channels read on that waited for memory, once there is some."""
        if self._starved and self._pool.available() > 0:
            self._buffered.update(self._starved)
            self._starved = {}

    def _guarded(self, channel: KafkaChannel, events: int) -> None:
        """Serve a channel, and end it with its reason where that fails."""
        try:
            self._serve(channel, events)
        except KafkaError as error:
            self._drop(channel, error)
        except EOFError:
            self._drop(channel, _ended(channel, "the peer closed the connection"))
        except OSError as error:
            reason = _ended(channel, error.strerror or str(error))
            reason.__cause__ = error
            self._drop(channel, reason)
        else:
            self._settle(channel)

    def _serve(self, channel: KafkaChannel, events: int) -> None:
        if channel.state is State.NOT_CONNECTED:
            channel.finish_connect()
            self.connected.append(channel.id)
        if not channel.ready():
            channel.prepare()
            if not channel.ready():
                return
        if events & READABLE and not channel.is_muted():
            channel.read()
            receive = channel.take_completed_receive()
            if receive is not None:
                self.completed_receives.append(receive)
        if channel.pending_send() is not None:
            channel.write()
            send = channel.take_completed_send()
            if send is not None:
                self.completed_sends.append(send)

    def _settle(self, channel: KafkaChannel) -> None:
        """Arrange for whatever the channel waits for next."""
        if channel.waits_for_memory():
            self._starved[channel.id] = channel
        elif channel.transport.has_buffered() and not channel.is_muted():
            self._buffered[channel.id] = channel
        self._watch.refresh(channel)

    def _close_idle(self, now_ms: float) -> None:
        for channel_id in self._idle.overdue(now_ms):
            channel = self._channels[channel_id]
            channel.state = State.EXPIRED
            limit = f"{self._idle.max_idle_ms:.0f} ms"
            self._drop(channel, DisconnectedError(f"nothing was sent or received for {limit}"))

    def _drop(self, channel: KafkaChannel, reason: KafkaError) -> None:
        self._log.debug("channel %s (%s) ended: %s", channel.id, channel.address, reason)
        send = channel.pending_send()
        if send is not None:
            self.failed_sends.append(send)
        self.disconnected[channel.id] = ChannelState(channel.state, reason)
        self._remove(channel)

    def _remove(self, channel: KafkaChannel) -> None:
        for place in (self._given, self._buffered, self._starved):
            place.pop(channel.id, None)
        self._idle.remove(channel.id)
        try:
            self._watch.remove(channel)
        finally:
            channel.close()
            self._channels.pop(channel.id, None)


def _check_new(channel_id: str, channels: Mapping[str, KafkaChannel]) -> None:
    if channel_id in channels:
        raise IllegalStateError(f"channel {channel_id}: there is one of this name already")


def _awaited(sends: Iterable[NetworkSend]) -> bool:
    """Return whether somebody waits to hear that one of these frames was written."""
    return any(not send.awaits_reply for send in sends)


def _in_words(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ended(channel: KafkaChannel, what: str) -> DisconnectedError:
    """Return the reason in words, with how far the connection or the frame had got."""
    if channel.state is State.NOT_CONNECTED:
        return DisconnectedError(f"could not connect: {what}")
    progress = channel.progress()
    return DisconnectedError(f"{what} {progress}" if progress else what)
