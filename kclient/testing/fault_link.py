"""A proxied connection: a client's socket, a broker's socket, and the frames that wait between."""

import errno
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kclient.common.runtime import READABLE, WRITABLE, Address, Net, Poller, StreamSocket
from kclient.testing.fault_frames import Conversation, Direction, Frame, FrameSplitter
from kclient.testing.fault_rule import Delivery, Ending


@dataclass(slots=True)
class _Waiting:
    """Bytes that are written together, from `due_ms` on."""

    due_ms: float
    data: memoryview
    chunk: int
    gap_ms: float
    ending: Ending | None


class FaultPipe:
    """Writes frames in the order of arrival, each when it is due and at its rate.

    Attributes:
        backlog: Number of bytes that wait.
        is_blocked: Whether the socket's buffer is full.
    """

    def __init__(self) -> None:
        self.backlog = 0
        self.is_blocked = False
        self._queue: deque[_Waiting] = deque()

    def put(self, delivery: Delivery, now_ms: float) -> None:
        """Queue a frame that the rules have shaped."""
        data = memoryview(b"".join(delivery.pieces))
        due_ms = now_ms + delivery.delay_ms
        self._queue.append(_Waiting(due_ms, data, delivery.chunk, delivery.gap_ms, delivery.ending))
        self.backlog += len(data)

    def put_end(self, ending: Ending, now_ms: float) -> None:
        """End the connection after the bytes that wait."""
        self._queue.append(_Waiting(now_ms, memoryview(b""), 0, 0.0, ending))

    def write(self, target: StreamSocket, now_ms: float) -> Ending | None:
        """Write what is due.

        Returns:
            How to end the connection, once that is due; otherwise None.

        Raises:
            OSError: The connection broke.
        """
        self.is_blocked = False
        while self._queue and self._queue[0].due_ms <= now_ms and not self.is_blocked:
            waiting = self._queue[0]
            if waiting.data:
                self._write_some(waiting, target, now_ms)
            if not waiting.data:
                self._queue.popleft()
                if waiting.ending is not None:
                    return waiting.ending
            if waiting.chunk:
                self._keep_back(max(waiting.due_ms, now_ms))
                break
        return None

    def wait_ms(self, now_ms: float) -> float:
        """Return the milliseconds until something is due."""
        if not self._queue or self.is_blocked:
            return math.inf
        return max(0.0, self._queue[0].due_ms - now_ms)

    def _write_some(self, waiting: _Waiting, target: StreamSocket, now_ms: float) -> None:
        chunk = waiting.data[: waiting.chunk] if waiting.chunk else waiting.data
        try:
            taken = target.sendmsg([chunk])
        except BlockingIOError:
            self.is_blocked = True
            return
        waiting.data = waiting.data[taken:]
        waiting.due_ms = max(waiting.due_ms, now_ms) + waiting.gap_ms
        self.backlog -= taken

    def _keep_back(self, due_ms: float) -> None:
        """Delay later frames to the rate of those before."""
        if self._queue:
            self._queue[0].due_ms = max(self._queue[0].due_ms, due_ms)


_log = logging.getLogger(__name__)

_READ = 64 * 1024
_ENOUGH = 1024 * 1024
"""Bytes that may wait in one direction before reading pauses, like a kernel's buffer."""

Shape = Callable[[Delivery], None]
"""Applies the rules to a frame."""


class Side:
    """One end: a socket, the frames read from it and the bytes to be written to it.

    Attributes:
        link: Its connection.
        direction: Direction of the frames read from it.
        socket: The socket; None before it is open and after it is closed.
        is_connected: Whether bytes can flow.
        splitter: Splits the bytes read from it into frames.
        pipe: Bytes to be written to it.
    """

    def __init__(self, link: "FaultLink", direction: Direction, poller: Poller) -> None:
        self.link = link
        self.direction = direction
        self.socket: StreamSocket | None = None
        self.is_connected = False
        self.splitter = FrameSplitter()
        self.pipe = FaultPipe()
        self._poller = poller
        self._watched = -1

    def open(self, stream: StreamSocket, *, connected: bool) -> None:
        """Use a socket."""
        self.socket = stream
        self.is_connected = connected

    def watch(self, events: int) -> None:
        """Watch the socket for these events."""
        if self.socket is None or events == self._watched:
            return
        if self._watched < 0:
            self._poller.register(self.socket, events, self)
        else:
            self._poller.modify(self.socket, events)
        self._watched = events

    def end(self, ending: Ending) -> None:
        """Close the socket; idempotent."""
        stream, self.socket = self.socket, None
        if stream is None:
            return
        if self._watched >= 0:
            self._poller.unregister(stream)
            self._watched = -1
        self.is_connected = False
        if ending is Ending.RESET:
            stream.reset()
        else:
            stream.close()


class FaultLink:
    """Reads frames on one side, applies the rules to them, and writes them on the other.

    Attributes:
        number: Number of the connection, from 1.
        is_over: Whether both sides are closed.
        is_silent: Whether it swallows whatever comes.
        is_held: Whether nothing moves at present.
        dies_at_ms: When it ends by itself.
        active_ms: When it was opened, or bytes were last read.
    """

    def __init__(self, number: int, client: StreamSocket, poller: Poller, shape: Shape) -> None:
        self.number = number
        self.is_over = False
        self.is_silent = False
        self.is_held = False
        self.dies_at_ms = float("inf")
        self.active_ms = 0.0
        self._shape = shape
        self._conversation = Conversation(number)
        self._buffer = memoryview(bytearray(_READ))
        self._client = Side(self, Direction.TO_BROKER, poller)
        self._broker = Side(self, Direction.TO_CLIENT, poller)
        self._client.open(client, connected=True)

    def connect(self, net: Net, target: Address) -> None:
        """Start connecting to the broker; if that fails the client's side is reset."""
        host, port = target
        try:
            addresses = net.resolve(host, port)
            # "localhost" may resolve to ::1 first; brokers of tests mostly listen on IPv4.
            address = min(addresses, key=lambda found: ":" in found[0])
            self._broker.open(net.connect(address, -1, -1), connected=False)
        except OSError as error:
            _log.info("connection %d: no way to %s:%d: %s", self.number, host, port, error)
            self.end(Ending.RESET)

    def step(self, now_ms: float, idle_ms: float) -> float:
        """Write what is due; return in how many milliseconds to come again.

        Args:
            now_ms: Current time.
            idle_ms: Time without traffic after which the connection is left half-open.
        """
        if now_ms >= self.dies_at_ms:
            self.end(Ending.RESET)
        elif now_ms >= self.active_ms + idle_ms and not self.is_silent:
            self.end(Ending.SILENCE)
        for source, target in self._ways():
            if not self.is_held and not self.is_over:
                self._write(source, target, now_ms)
        if self.is_over:
            return 0.0
        for source, target in self._ways():
            source.watch(self._interest(source, target))
        waits = [self.dies_at_ms - now_ms]
        if not self.is_silent:
            waits.append(self.active_ms + idle_ms - now_ms)
        if not self.is_held:
            waits += [side.pipe.wait_ms(now_ms) for side in self._sides() if side.is_connected]
        return min(waits)

    def ready(self, side: Side, events: int, now_ms: float) -> None:
        """Take note of what the poller says of one side."""
        if side.socket is None:
            return
        if not side.is_connected:
            self._finish_connect(side, side.socket)
        elif events & READABLE:
            self._read(side, side.socket, now_ms)

    def end(self, ending: Ending) -> None:
        """End the connection; see `Ending`."""
        self._broker.end(ending)
        if ending is Ending.SILENCE:
            self.is_silent = True
        else:
            self._client.end(ending)
        self.is_over = self._client.socket is None

    def _sides(self) -> tuple[Side, Side]:
        return self._client, self._broker

    def _ways(self) -> tuple[tuple[Side, Side], tuple[Side, Side]]:
        return (self._client, self._broker), (self._broker, self._client)

    def _interest(self, source: Side, target: Side) -> int:
        if not source.is_connected:
            return WRITABLE
        if self.is_held:
            return 0
        events = WRITABLE if source.pipe.is_blocked else 0
        if self.is_silent or target.pipe.backlog < _ENOUGH:
            events |= READABLE
        return events

    def _finish_connect(self, side: Side, stream: StreamSocket) -> None:
        failure = stream.connect_error()
        if failure:
            name = errno.errorcode.get(failure, str(failure))
            _log.info("connection %d: could not connect to the broker: %s", self.number, name)
            self.end(Ending.RESET)
        else:
            side.is_connected = True

    def _read(self, side: Side, stream: StreamSocket, now_ms: float) -> None:
        try:
            count = stream.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            self._ended(side, Ending.RESET, now_ms)
            return
        if not count:
            self._ended(side, Ending.CLOSE, now_ms)
        elif not self.is_silent:
            self.active_ms = now_ms
            for data in side.splitter.feed(self._buffer[:count]):
                self._pass_on(side, data, now_ms)

    def _pass_on(self, side: Side, data: bytes, now_ms: float) -> None:
        delivery = Delivery(self._conversation.name(side.direction, data), data)
        self._put(side, delivery, now_ms)
        if delivery.sent_as is not None:
            self._conversation.sent_as(delivery.frame.correlation_id, *delivery.sent_as)

    def _put(self, side: Side, delivery: Delivery, now_ms: float) -> None:
        self._shape(delivery)
        self._other(side).pipe.put(delivery, now_ms)

    def _ended(self, side: Side, ending: Ending, now_ms: float) -> None:
        """Propagate the end of one side to the other, after the bytes that still wait."""
        rest = side.splitter.rest()
        side.end(ending)
        if side is self._client and (self.is_silent or self._broker.socket is None):
            self.end(ending)
        elif not self.is_silent:
            if rest:
                cut_off = Frame(self.number, side.direction, None, -1, -1, len(rest))
                self._put(side, Delivery(cut_off, rest), now_ms)
            self._other(side).pipe.put_end(ending, now_ms)

    def _write(self, source: Side, target: Side, now_ms: float) -> None:
        if self.is_silent or target.socket is None or not target.is_connected:
            return
        try:
            ending = target.pipe.write(target.socket, now_ms)
        except OSError:
            self._ended(target, Ending.RESET, now_ms)
        else:
            if ending is not None:
                self.end(ending)

    def _other(self, side: Side) -> Side:
        return self._broker if side is self._client else self._client
