"""`Selector` on an in-memory network in virtual time."""

import threading

import pytest

from kclient.common.errors import DisconnectedError, IllegalStateError
from kclient.common.runtime import READABLE, Address, Listener, StreamSocket
from kclient.network.channel_builder import READ_AHEAD, PlaintextChannelBuilder
from kclient.network.kafka_channel import State
from kclient.network.memory_pool import SimpleMemoryPool
from kclient.network.network_send import NetworkSend
from kclient.network.selector import Selector
from kclient.testing.virtual.virtual_poller import VirtualPoller
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.support.virtual.virtual_home import IP, VirtualHome

HERE: Address = ("10.0.0.1", 9092)


class Echo:
    """Peer that sends every byte back."""

    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        socket.deliver(data)


class Replying:
    """Peer that replies to the first bytes and then ends the stream if `end` is set."""

    def __init__(self, reply: bytes, end: int | None = None) -> None:
        self._reply = reply
        self._end = end

    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        if self._reply:
            socket.deliver(self._reply)
        if self._end is not None:
            socket.end(self._end)


class World:
    """Selector with its network."""

    def __init__(self, **settings: float) -> None:
        self.home = VirtualHome()
        self.runtime, self.net = self.home.runtime, self.home.net
        self.selector = Selector(
            self.runtime.net,
            self.runtime.clock,
            connections_max_idle_ms=settings.get("idle_ms", -1),
            memory_pool=SimpleMemoryPool(int(settings.get("memory", 1 << 40)), threading.RLock()),
        )
        self.received: list[bytes] = []
        self.sent = 0

    def poll(self, timeout_ms: float = 100, times: int = 1) -> None:
        for _ in range(times):
            self.selector.poll(timeout_ms, self.net.clock.now_ms)
            self.received += [bytes(item.payload) for item in self.selector.completed_receives]
            self.sent += len(self.selector.completed_sends)

    def connect(self, name: str = "1", address: Address = HERE) -> None:
        self.selector.connect(name, address)
        self.poll()

    def ask(self, body: bytes, name: str = "1") -> None:
        self.selector.send(NetworkSend(name, [body]))


def test_frame_is_sent_and_received() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    assert world.selector.connected == ["1"]
    assert world.selector.is_channel_ready("1")
    world.ask(b"hello")
    world.poll()
    assert [send.channel_id for send in world.selector.completed_sends] == ["1"]
    world.poll()
    assert world.received == [b"hello"]


def test_poll_waits_for_response_of_completed_send() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    send = NetworkSend("1", [b"hello"], awaits_reply=True)
    world.selector.send(send)
    world.poll()
    assert world.received == [b"hello"]
    assert send.completed
    assert world.sent == 0


@pytest.mark.fault("C8")
def test_frame_is_received_byte_by_byte() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.net.rechunk(IP, HERE[0])
    world.connect()
    world.ask(b"hello, broker")
    world.poll(times=60)
    assert world.received == [b"hello, broker"]


def test_poll_receives_one_frame_per_channel() -> None:
    world = World()
    world.net.peers[HERE] = lambda: Replying(b"\x00\x00\x00\x01a\x00\x00\x00\x01b\x00\x00\x00\x01c")
    world.connect()
    world.ask(b"speak")
    world.poll(times=2)
    assert world.received == [b"a"]
    world.poll(times=2)
    assert world.received == [b"a", b"b", b"c"]


def test_muted_channel_is_not_read() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    world.selector.mute("1")
    world.ask(b"hello")
    world.poll(times=3)
    assert world.sent == 1
    assert world.received == []
    assert world.selector.unmute("1")
    world.poll()
    assert world.received == [b"hello"]


def test_send_waits_while_socket_buffer_is_full() -> None:
    world = World()

    class Quiet(Echo):
        def connected(self, socket: VirtualSocket) -> None:
            assert socket.other is not None
            socket.other.capacity = 3

    world.net.peers[HERE] = Quiet
    world.connect()
    world.net.partition(HERE[0], IP, one_way=True)  # acknowledgements of the bytes are lost
    world.ask(b"hello")
    world.poll()
    assert world.sent == 0
    world.net.heal()
    world.poll(2000, times=3)
    assert world.sent == 1
    assert world.received == [b"hello"]


@pytest.mark.fault("C6")
@pytest.mark.parametrize(
    ("reply", "end", "reason"),
    [
        (b"", 0, "the peer closed the connection"),
        (b"\x00\x00\x00\x64abc", 0, "the peer closed the connection after 3 of a frame's 100"),
        (b"\x00\x00", 0, "the peer closed the connection after 2 of the 4 bytes"),
        (b"", 104, "Connection reset by peer"),
        (b"HTTP/1.1 400 Bad Request", None, "the peer sent HTTP"),
        (b"\xff\xff\xff\xff", None, "frame size: got -1"),
    ],
)
def test_disconnected_channel_has_reason(reply: bytes, end: int | None, reason: str) -> None:
    world = World()
    world.net.peers[HERE] = lambda: Replying(reply, end)
    world.connect()
    world.ask(b"hello")
    world.poll()
    while not world.selector.disconnected:
        world.poll()
    state = world.selector.disconnected["1"]
    assert str(state.reason).startswith(reason)
    assert state.state is State.READY
    assert world.selector.channel("1") is None
    world.poll()
    assert world.selector.disconnected == {}
    assert world.net.open_sockets <= 1  # only the peer's socket may still be open


def test_refused_connection_has_reason() -> None:
    world = World()
    world.connect()
    state = world.selector.disconnected["1"]
    assert state.state is State.NOT_CONNECTED
    assert str(state.reason) == "could not connect: Connection refused"
    assert isinstance(state.reason.__cause__, ConnectionRefusedError)


def test_unfinished_send_of_closed_channel_is_reported() -> None:
    world = World()

    class Slamming(Echo):
        def connected(self, socket: VirtualSocket) -> None:
            assert socket.other is not None
            socket.other.capacity = 2
            socket.end(104)

    world.net.peers[HERE] = Slamming
    world.connect()
    world.ask(b"hello")
    world.poll()
    assert [send.channel_id for send in world.selector.failed_sends] == ["1"]
    assert list(world.selector.disconnected) == ["1"]


def test_only_idle_connection_is_closed() -> None:
    world = World(idle_ms=1000)
    world.net.peers[HERE] = Echo
    world.connect("a")
    world.connect("b")
    world.poll(600)
    world.ask(b"x", "a")
    world.poll()
    world.home.sleep(500)
    world.poll(0)
    assert list(world.selector.disconnected) == ["b"]
    assert world.selector.disconnected["b"].state is State.EXPIRED
    assert world.selector.is_channel_ready("a")


def test_poll_does_not_spin_while_pool_is_empty() -> None:
    world = World(memory=4)
    world.net.peers[HERE] = Echo
    world.connect("a")
    world.connect("b")
    world.ask(b"first", "a")
    world.poll(times=2)
    assert world.received == [b"first"]
    holding = world.selector.completed_receives[0]
    world.ask(b"second", "b")
    before = world.net.clock.now_ms
    world.poll(50, times=4)
    assert world.received == [b"first"]
    assert world.net.clock.now_ms - before >= 100  # it waited instead of spinning
    holding.release()
    world.poll()
    assert world.received == [b"first", b"second"]


def test_wakeup_ends_poll() -> None:
    world = World()
    before = world.net.clock.now_ms
    world.selector.wakeup()
    world.poll(10_000)
    assert world.net.clock.now_ms == before


def test_illegal_calls_are_refused() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    with pytest.raises(IllegalStateError, match="a channel of this name exists"):
        world.selector.connect("1", HERE)
    with pytest.raises(IllegalStateError, match="no channel of this name"):
        world.ask(b"", "2")
    world.ask(b"x")
    with pytest.raises(IllegalStateError, match="still being written"):
        world.ask(b"y")


def test_local_close_is_not_reported() -> None:
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    world.selector.close_channel("1")
    world.selector.close_channel("1")
    world.poll()
    assert world.selector.disconnected == {}
    world.connect()
    world.selector.close()
    world.selector.close()
    world.home.sleep(10)
    assert world.net.open_sockets == 0


def test_accepted_connection_serves_requests() -> None:
    world = World()
    address = (IP, 9092)
    listener = world.runtime.net.listen(address, 10)
    client = Selector(world.runtime.net, world.runtime.clock)
    client.connect("0", address)
    client.poll(10, world.net.clock.now_ms)
    world.selector.register("c-1", listener.accept())
    client.send(NetworkSend("0", [b"ping"]))
    client.poll(0, world.net.clock.now_ms)
    world.poll()
    assert world.received == [b"ping"]
    assert world.selector.completed_receives[0].source == "c-1"
    world.selector.mute("c-1")
    world.ask(b"pong", "c-1")
    world.poll()
    world.selector.unmute("c-1")
    client.poll(10, world.net.clock.now_ms)
    assert [bytes(item.payload) for item in client.completed_receives] == [b"pong"]
    client.close()
    world.poll()
    assert isinstance(world.selector.disconnected["c-1"].reason, DisconnectedError)


def test_frames_that_were_read_ahead_are_received_without_waiting() -> None:
    world = World()
    listener = world.runtime.net.listen((IP, 9092), 10)
    client = Selector(world.runtime.net, world.runtime.clock)
    client.connect("0", (IP, 9092))
    client.poll(10, world.net.clock.now_ms)
    builder = PlaintextChannelBuilder(READ_AHEAD)
    server = Selector(world.runtime.net, world.runtime.clock, channel_builder=builder)
    server.register("c", listener.accept())
    for body in (b"one", b"two", b"three"):
        client.send(NetworkSend("0", [body]))
        client.poll(0, world.net.clock.now_ms)
    received = []
    server.poll(10, world.net.clock.now_ms)
    received += [bytes(each.payload) for each in server.completed_receives]
    buffered = [server.has_buffered]
    server.mute("c")
    buffered.append(server.has_buffered)
    server.unmute("c")
    assert buffered == [True, False]
    now_ms = world.net.clock.now_ms
    for _ in range(2):
        server.poll(60_000, now_ms)
        received += [bytes(each.payload) for each in server.completed_receives]
    assert received == [b"one", b"two", b"three"]
    assert world.net.clock.now_ms == now_ms
    client.close()
    server.close()


def test_muted_channel_that_has_read_ahead_does_not_delay_others() -> None:
    world = World()
    clock, net = world.net.clock, world.runtime.net
    listener = net.listen((IP, 9092), 10)
    server = Selector(net, clock, channel_builder=PlaintextChannelBuilder(READ_AHEAD))
    clients = {name: Selector(net, clock) for name in "ab"}
    for name, client in clients.items():
        client.connect("0", (IP, 9092))
        client.poll(10, clock.now_ms)
        server.register(name, listener.accept())
    for _ in range(3):  # more than is read ahead
        clients["a"].send(NetworkSend("0", [bytes(700)]))
        clients["a"].poll(0, clock.now_ms)
    server.poll(10, clock.now_ms)
    server.mute("a")
    server.send(NetworkSend("b", [b"response"]))
    server.poll(10, clock.now_ms)
    assert not server.has_buffered
    clients["b"].send(NetworkSend("0", [b"request"]))
    clients["b"].poll(0, clock.now_ms)
    server.poll(10, clock.now_ms)
    assert [bytes(each.payload) for each in server.completed_receives] == [b"request"]
    for each in (*clients.values(), server):
        each.close()


def test_request_handled_at_once_changes_no_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = _registrations(monkeypatch)
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    world.poll(0)
    changes.clear()
    world.selector.mute("1")
    world.ask(b"hello")
    world.poll()
    assert world.sent == 1
    assert world.selector.unmute("1")
    world.poll()
    assert world.received == [b"hello"]
    assert not changes


def test_poll_does_not_return_for_bytes_of_muted_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = _registrations(monkeypatch)
    world = World()
    world.net.peers[HERE] = Echo
    world.connect()
    world.poll(0)
    changes.clear()
    world.ask(b"hello")
    world.selector.mute("1")
    world.poll()
    began_ms = world.net.clock.now_ms
    world.poll(100)
    assert world.net.clock.now_ms == began_ms + 100
    assert changes == [0]
    assert world.selector.unmute("1")
    assert changes == [0, READABLE]


def _registrations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the interests that are registered from now on for connections that had another."""
    changes: list[int] = []
    modify = VirtualPoller.modify

    def record(poller: VirtualPoller, source: StreamSocket | Listener, events: int) -> None:
        changes.append(events)
        modify(poller, source, events)

    monkeypatch.setattr(VirtualPoller, "modify", record)
    return changes
