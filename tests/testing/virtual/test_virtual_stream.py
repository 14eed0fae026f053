"""Streams over virtual links: latency, bandwidth and lost segments."""

import errno
from functools import partial

import pytest

from kclient.common.runtime import READABLE
from kclient.testing.virtual import VirtualWorld
from tests.support.virtual.world_parts import PAYLOAD, SERVER, Net, fails


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
