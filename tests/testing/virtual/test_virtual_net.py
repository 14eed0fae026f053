"""The network of a simulation: names, ports and attempts to connect."""

import errno

import pytest

from kclient.common.runtime import READABLE
from kclient.testing.virtual.virtual_clock import START_MS
from kclient.testing.virtual.virtual_net import ANY
from tests.support.virtual.world_parts import PORT, SERVER, Line, Net, fails


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
