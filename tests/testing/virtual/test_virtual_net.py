"""The virtual network behaves like TCP, with and without faults."""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from kclient.common.runtime import READABLE, WRITABLE, Address, Listener, StreamSocket
from kclient.testing.virtual import VirtualProcess, VirtualTask, VirtualWorld
from kclient.testing.virtual.virtual_clock import START_MS
from kclient.testing.virtual.virtual_net import ANY

PORT = 9092
SERVER: Address = ("10.0.0.3", PORT)  # the second machine that the fixture makes
PAYLOAD = bytes(range(256)) * 40


@dataclass
class Line:
    """Blocking reads and writes on one end of a connection."""

    process: VirtualProcess
    stream: StreamSocket
    taken: bytearray = field(default_factory=bytearray)

    def wait(self, events: int, timeout_ms: float | None = None) -> bool:
        poller = self.process.runtime.net.poller()
        poller.register(self.stream, events, self)
        ready = poller.poll(timeout_ms)
        poller.unregister(self.stream)
        return bool(ready)

    def connected(self) -> int:
        self.wait(WRITABLE)
        return self.stream.connect_error()

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.wait(WRITABLE)
            rest = rest[self.stream.sendmsg([rest[:7], rest[7:]]) :]

    def read(self, count: int) -> bytes:
        """Read exactly so much, or what comes before the end of the stream."""
        buffer = memoryview(bytearray(4096))
        taken = b""
        while len(taken) < count:
            self.wait(READABLE)
            got = self.stream.recv_into(buffer[: count - len(taken)])
            if not got:
                break
            taken += buffer[:got]
            self.taken += buffer[:got]
        return taken


@dataclass
class Net:
    """Two machines with a process each."""

    world: VirtualWorld
    client: VirtualProcess
    server: VirtualProcess

    def connect(self, address: Address = SERVER) -> Line:
        return Line(self.client, self.client.runtime.net.connect(address, -1, -1))

    def listen(self, backlog: int = 10) -> Listener:
        return self.server.runtime.net.listen((SERVER[0], PORT), backlog)

    def accept(self, listener: Listener) -> Line:
        poller = self.server.runtime.net.poller()
        poller.register(listener, READABLE, "it")
        assert poller.poll(None) == [("it", READABLE)]
        return Line(self.server, listener.accept())

    def pair(self) -> tuple[Line, Line]:
        near = self.connect()
        far = self.accept(self.listen())
        assert near.connected() == 0
        return near, far

    def run(self, *functions: Callable[[], object]) -> list[VirtualTask]:
        tasks = [self.client.spawn("talk", function) for function in functions]
        self.world.run(until=lambda: all(task.over for task in tasks), timeout_ms=3_600_000)
        return tasks


@pytest.fixture
def net() -> Iterator[Net]:
    with VirtualWorld(1, latency_ms=(10.0, 20.0)) as world:
        client, server = (world.machine(name).process(name) for name in ("client", "server"))
        assert SERVER[0] == server.machine.ip
        yield Net(world, client, server)


def fails(code: int, call: Callable[[], object]) -> None:
    with pytest.raises(OSError, match=r"\[Errno") as reported:
        call()
    assert reported.value.errno == code


# --- a good day


def test_bytes_arrive_in_order_after_the_latency(net: Net) -> None:
    near, far = net.pair()
    before_ms = net.world.clock.now_ms
    near.write(PAYLOAD)
    assert far.read(len(PAYLOAD)) == PAYLOAD
    assert 10.0 <= net.world.clock.now_ms - before_ms <= 20.0
    far.write(b"reply")
    far.stream.close()
    assert near.read(100) == b"reply"  # and then the end
    assert near.read(100) == b""


def test_later_segment_does_not_overtake(net: Net) -> None:
    near, far = net.pair()
    for number in range(200):
        near.write(b"%04d" % number)
    assert far.read(800) == b"".join(b"%04d" % number for number in range(200))


def test_sockets_have_both_addresses(net: Net) -> None:
    near, far = net.pair()
    assert near.stream.peer_address() == SERVER == far.stream.local_address()
    assert near.stream.local_address() == far.stream.peer_address()
    assert near.stream.local_address()[0] == net.client.machine.ip
    assert near.stream.fileno() == -1


def test_unread_bytes_block_the_writer(net: Net) -> None:
    near = Line(net.client, net.client.runtime.net.connect(SERVER, 4096, 4096))
    far = net.accept(net.listen())
    near.connected()
    assert near.stream.sendmsg([bytes(100_000)]) == 8192
    with pytest.raises(BlockingIOError):
        near.stream.sendmsg([b"x"])
    assert not near.wait(WRITABLE, 60_000)
    assert far.read(8192) == bytes(8192)
    assert near.wait(WRITABLE, 20.0)
    net.run(lambda: near.write(PAYLOAD * 3), lambda: far.read(len(PAYLOAD) * 3))
    assert bytes(far.taken[8192:]) == PAYLOAD * 3


def test_read_without_data_raises_blocking_io_error(net: Net) -> None:
    near, _ = net.pair()
    with pytest.raises(BlockingIOError):
        near.stream.recv_into(memoryview(bytearray(1)))


def test_wakeup_ends_poll_of_poller(net: Net) -> None:
    poller = net.client.runtime.net.poller()
    poller.wakeup()
    assert poller.poll(None) == []
    net.world.clock.after(500.0, poller.wakeup)
    assert poller.poll(None) == []
    assert net.world.clock.now_ms == START_MS + 500
    assert poller.poll(100.0) == []
    assert net.world.clock.now_ms == START_MS + 600


def test_poller_returns_requested_events(net: Net) -> None:
    near, far = net.pair()
    poller = net.client.runtime.net.poller()
    poller.register(near.stream, 0, "near")
    with pytest.raises(KeyError, match="already"):
        poller.register(near.stream, READABLE, "again")
    far.write(b"x")
    assert poller.poll(100.0) == []
    poller.modify(near.stream, READABLE | WRITABLE)
    assert poller.poll(100.0) == [("near", READABLE | WRITABLE)]
    poller.close()
    assert poller.poll(100.0) == []


def test_host_names_are_resolved(net: Net) -> None:
    resolve = net.client.runtime.net.resolve
    assert resolve("server", 1) == [(SERVER[0], 1)]
    assert resolve("1.2.3.4", 1) == [("1.2.3.4", 1)]
    assert resolve("localhost", 1) == [("127.0.0.1", 1)]
    net.world.net.names["both"] = ["1.2.3.4", "1.2.3.5"]
    assert resolve("both", 2) == [("1.2.3.4", 2), ("1.2.3.5", 2)]
    net.client.net.resolve_ms = 300.0
    with pytest.raises(OSError, match="not known"):
        resolve("unknown", 1)
    assert net.world.clock.now_ms == START_MS + 300


def test_localhost_resolves_to_the_same_machine(net: Net) -> None:
    listener = net.server.runtime.net.listen(("127.0.0.1", 0), 10)
    _, port = listener.local_address()
    assert net.connect(("127.0.0.1", port)).connected() == errno.ECONNREFUSED
    near = Line(net.server, net.server.runtime.net.connect(("127.0.0.1", port), -1, -1))
    assert near.connected() == 0
    assert net.accept(listener).stream.peer_address()[0] == "127.0.0.1"


# --- refusals


def test_connection_without_listener_is_refused(net: Net) -> None:
    near = net.connect()
    assert near.connected() == errno.ECONNREFUSED
    fails(errno.ENOTCONN, near.stream.peer_address)
    fails(errno.ECONNREFUSED, lambda: near.stream.sendmsg([b"x"]))
    near.stream.close()
    fails(errno.EBADF, lambda: near.stream.sendmsg([b"x"]))
    assert net.world.net.open_sockets == 0


def test_port_in_use_cannot_be_listened_on(net: Net) -> None:
    listener = net.listen()
    fails(errno.EADDRINUSE, net.listen)
    fails(errno.EADDRINUSE, lambda: net.server.runtime.net.listen((ANY, PORT), 1))
    fails(errno.EADDRNOTAVAIL, lambda: net.client.runtime.net.listen(SERVER, 1))
    listener.close()
    net.listen()


def test_closed_listener_resets_connections_in_its_backlog(net: Net) -> None:
    listener = net.listen()
    near = net.connect()
    assert near.connected() == 0
    listener.close()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))


def test_connect_is_repeated_while_the_backlog_is_full(net: Net) -> None:
    listener = net.listen(backlog=0)
    first, second = net.connect(), net.connect()
    assert first.connected() == 0

    def accept_late() -> None:
        net.server.sleep(2.5)
        listener.accept()

    net.server.spawn("late", accept_late)
    assert second.connected() == 0
    assert net.world.clock.now_ms - START_MS == pytest.approx(3000.0, abs=60.0)


def test_refuse_rejects_new_connections(net: Net) -> None:
    near, far = net.pair()
    net.world.net.refuse("client", "server")
    assert net.connect().connected() == errno.ECONNREFUSED
    near.write(b"still")
    assert far.read(5) == b"still"
    net.world.net.heal("client", "server")
    assert net.connect().connected() == 0


def test_socket_limit_is_applied(net: Net) -> None:
    net.client.net.socket_limit = 1
    listener = net.listen()
    near = net.connect()
    fails(errno.EMFILE, net.connect)
    near.stream.close()
    net.connect()
    net.server.net.socket_limit = 0
    net.world.run(timeout_ms=100)
    fails(errno.EMFILE, listener.accept)


# --- silence


@pytest.mark.parametrize("lost", ["black hole", "partition", "one way", "power"])
def test_connect_without_response_times_out_after_two_minutes(net: Net, lost: str) -> None:
    net.listen()
    if lost == "black hole":
        net.world.net.black_holes.add(SERVER)
    elif lost == "power":
        net.server.machine.power_cut()
    else:
        net.world.net.partition("server", "client", one_way=lost == "one way")
    assert net.connect().connected() == errno.ETIMEDOUT
    assert net.world.clock.now_ms - START_MS == pytest.approx(127_000.0, abs=150.0)


def test_long_partition_breaks_connections(net: Net) -> None:
    near, far = net.pair()
    net.world.net.partition(net.client.machine, net.server.machine)
    near.write(b"one")
    assert not far.wait(READABLE, 60_000)
    net.world.net.heal()
    near.write(b"two")
    assert far.read(6) == b"onetwo"
    net.world.net.partition("client", SERVER[0])
    near.write(b"three")
    near.wait(READABLE)
    assert near.stream.connect_error() == errno.ETIMEDOUT
    assert net.world.clock.now_ms > 15 * 60_000


def test_partition_can_be_one_way(net: Net) -> None:
    near, far = net.pair()
    net.world.net.partition("client", "server", one_way=True)
    far.write(b"down")
    assert near.read(4) == b"down"
    near.write(b"up")
    assert not far.wait(READABLE, 10_000)
    net.world.net.heal("server", "client")
    assert far.read(2) == b"up"


def test_half_open_connection_loses_all_segments(net: Net) -> None:
    near, far = net.pair()
    assert net.world.net.half_open("client", "server") == 1
    near.write(b"x")
    far.stream.close()
    net.world.net.heal()
    assert not near.wait(READABLE, 600_000)
    assert net.connect().connected() == 0  # the machine is there
    near.wait(READABLE)
    assert near.stream.connect_error() == errno.ETIMEDOUT


def test_held_connection_delivers_bytes_late(net: Net) -> None:
    """Held bytes arrive later, even if their sender has reconnected meanwhile."""
    listener = net.listen()
    near = net.connect()
    far = net.accept(listener)
    assert net.world.net.hold("client", "server") == 1
    near.write(b"late")
    assert not far.wait(READABLE, 60_000)
    near.stream.close()
    other = net.connect()
    assert other.connected() == 0  # a new one is not touched
    other.write(b"early")
    assert net.accept(listener).read(5) == b"early"
    net.world.net.heal("client", "server")
    assert far.read(5) == b"late"


# --- slowness and pieces


def test_slow_link_limits_bandwidth(net: Net) -> None:
    near, far = net.pair()
    net.world.net.slow("client", "server", bytes_per_second=1000.0)
    before_ms = net.world.clock.now_ms
    net.run(lambda: near.write(bytes(5000)), lambda: far.read(5000))
    assert net.world.clock.now_ms - before_ms == pytest.approx(5000.0, rel=0.2)
    far.write(b"x")
    assert not near.wait(READABLE, 5.0)
    net.world.net.heal()
    near.write(b"fast")
    before_ms = net.world.clock.now_ms
    far.read(4)
    assert net.world.clock.now_ms - before_ms < 50.0


def test_rechunk_limits_reads_and_writes(net: Net) -> None:
    near, far = net.pair()
    net.world.net.rechunk("client", "server")
    assert near.stream.sendmsg([b"ab", b"cd"]) == 1
    net.run(lambda: near.write(b"bcd"), lambda: far.read(4))
    assert far.taken == b"abcd"
    net.world.net.heal()
    near.write(b"efgh")
    far.wait(READABLE)
    net.world.net.rechunk("server", "client", 2, 3)
    assert 2 <= far.stream.recv_into(memoryview(bytearray(10))) <= 3


# --- connections that break


@pytest.mark.parametrize("reset", [True, False])
def test_cut_ends_connections_with_bytes_in_flight(reset: bool) -> None:
    arrived: set[int] = set()
    for seed in range(12):
        with VirtualWorld(seed) as world:
            client, server = (world.machine(name).process(name) for name in ("client", "server"))
            net = Net(world, client, server)
            near, far = net.pair()
            near.write(b"x" * 10)
            assert world.net.cut("client", "server", reset=reset) == 1
            world.run(timeout_ms=100)
            if reset:
                fails(errno.ECONNRESET, partial(far.read, 11))
                fails(errno.ECONNRESET, partial(near.read, 1))
            else:
                arrived.add(len(far.read(11)))
                assert near.read(1) == b""
    assert reset or len(arrived) > 3


def test_close_with_unread_bytes_sends_a_reset(net: Net) -> None:
    near, far = net.pair()
    near.write(b"unread bytes")
    far.wait(READABLE)
    far.stream.close()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))


def test_bytes_to_closed_socket_cause_reset(net: Net) -> None:
    near, far = net.pair()
    far.stream.close()
    assert near.read(1) == b""
    near.write(b"too late")
    net.world.run(timeout_ms=100)
    fails(errno.ECONNRESET, lambda: near.stream.sendmsg([b"x"]))


def test_socket_can_be_reset(net: Net) -> None:
    near, far = net.pair()
    near.stream.reset()
    near.stream.close()
    far.wait(READABLE)
    fails(errno.ECONNRESET, lambda: far.read(1))


# --- processes and machines


def test_killed_process_resets_its_connections(net: Net) -> None:
    near, _ = net.pair()
    net.server.kill()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))
    assert net.connect().connected() == errno.ECONNREFUSED


def test_power_cut_is_unnoticed_until_power_on(net: Net) -> None:
    near, _ = net.pair()
    net.server.machine.power_cut()
    assert not net.server.alive
    near.write(b"hello")
    assert not near.wait(READABLE, 60_000)
    net.server.machine.power_on()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))
    assert net.connect().connected() == errno.ECONNREFUSED


def test_new_process_can_listen_on_port_of_killed_one(net: Net) -> None:
    net.listen()
    net.server.kill()
    net.server = net.server.machine.process("server")
    near, far = net.pair()
    near.write(b"hello")
    assert far.read(5) == b"hello"


def test_scripted_peer_responds(net: Net) -> None:
    net.world.net.peers["192.0.2.1", 80] = Echo
    near = net.connect(("192.0.2.1", 80))
    assert near.connected() == 0
    near.write(b"abc")
    assert near.read(3) == b"cba"
    net.world.net.stop(("192.0.2.1", 80))
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))


class Echo:
    """Says everything backwards."""

    def connected(self, stream: object) -> None: ...

    def received(self, stream: object, data: bytes) -> None:
        stream.deliver(data[::-1])  # type: ignore[attr-defined]  # a VirtualSocket
