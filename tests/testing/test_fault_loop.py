"""Loop of a fault proxy: its ports, its connections, and their faults."""

import errno
import logging
import struct
from collections.abc import Iterator
from functools import partial

import pytest

from kclient.common.runtime import READABLE, Address
from kclient.testing.fault_link import Shape
from kclient.testing.fault_loop import FaultLoop
from kclient.testing.fault_rule import Delivery, Ending
from tests.support.virtual.world_parts import SERVER, Line, Net, fails

BROKER: Address = (SERVER[0], 9093)


class Looped:
    """A loop on the server, a broker next to it, and clients of the loop."""

    def __init__(self, net: Net, shape: Shape = lambda _: None) -> None:
        self._net = net
        self.loop = FaultLoop(net.server.runtime, shape, SERVER[0])
        self._broker = net.server.runtime.net.listen(BROKER, 10)
        self.door = self.loop.open_door(BROKER)

    def turn(self, duration_ms: float = 100.0) -> None:
        """Run the loop for some time."""
        clock = self._net.world.clock
        end_ms = clock.now_ms + duration_ms
        while clock.now_ms < end_ms:
            self.loop.turn(max(1.0, end_ms - clock.now_ms))

    def connect(self) -> tuple[Line, Line]:
        """Return the ends of a connection: the client's, and the broker's."""
        near = self._net.connect(self.door.address)
        self.turn()
        assert near.connected() == 0
        return near, self._net.accept(self._broker)

    def passes(self, near: Line, far: Line) -> bool:
        """Send a frame; return whether it arrives."""
        near.write(struct.pack(">i", 4) + b"data")
        self.turn()
        return far.wait(READABLE, 0) and far.read(8) == struct.pack(">i", 4) + b"data"


@pytest.fixture
def looped(net: Net) -> Iterator[Looped]:
    made = Looped(net)
    yield made
    made.loop.close()


def test_each_connection_leads_to_the_broker_of_its_port(looped: Looped) -> None:
    first, second = looped.connect(), looped.connect()
    assert looped.passes(*first)
    assert looped.passes(*second)
    assert (looped.loop.accepted, len(looped.loop.links)) == (2, 2)


def test_each_broker_has_one_port(looped: Looped) -> None:
    loop, own = looped.loop, looped.door.address
    assert loop.address_for(BROKER) == own
    assert loop.address_for(own) == own  # the address of the proxy itself
    other = loop.address_for(("10.0.0.9", 9092))
    assert other != own
    assert loop.address_for(("10.0.0.9", 9092)) == other


def test_refused_connections_are_accepted_after_heal_at_the_same_port(
    net: Net, looped: Looped
) -> None:
    before = looped.connect()
    looped.loop.refuse()
    assert net.connect(looped.door.address).connected() == errno.ECONNREFUSED
    assert looped.passes(*before)
    looped.loop.heal()
    assert looped.passes(*looped.connect())


def test_swallowed_bytes_are_lost_and_heal_resets_the_connection(looped: Looped) -> None:
    near, far = looped.connect()
    looped.loop.swallow()
    assert not looped.passes(near, far)
    looped.loop.heal()
    looped.turn()
    fails(errno.ECONNRESET, lambda: near.read(1))
    assert looped.loop.links == []
    assert looped.passes(*looped.connect())


def test_held_bytes_are_passed_on_after_heal(looped: Looped) -> None:
    near, far = looped.connect()
    looped.loop.hold(held=True)
    assert not looped.passes(near, far)
    looped.loop.heal()
    looped.turn()
    assert far.read(8) == struct.pack(">i", 4) + b"data"


def test_every_connection_is_ended(looped: Looped) -> None:
    connections = [looped.connect() for _ in range(3)]
    looped.loop.end_all(Ending.CLOSE)
    assert looped.loop.links == []
    assert [near.read(1) for near, _ in connections] == [b""] * 3


def test_new_connections_have_a_lifetime(looped: Looped) -> None:
    looped.loop.lifetime_ms = lambda: 300.0
    looped.connect()
    looped.turn(50)
    assert len(looped.loop.links) == 1
    looped.turn(300)
    assert looped.loop.links == []


def test_fault_that_raises_resets_its_connection_and_is_kept(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    def shape(delivery: Delivery) -> None:
        if delivery.frame.connection == 2:
            raise ValueError("a defect")

    looped = Looped(net, shape)
    first, second = looped.connect(), looped.connect()
    second[0].write(struct.pack(">i", 4) + b"data")
    with caplog.at_level(logging.ERROR):
        looped.turn()
    for line in second:
        fails(errno.ECONNRESET, partial(line.read, 1))
    assert isinstance(looped.loop.failure, ValueError)
    assert "connection 2: a fault failed" in caplog.text
    assert looped.passes(*first)
    looped.loop.close()


def test_closed_loop_leaves_no_socket(net: Net) -> None:
    looped = Looped(net)
    looped.connect()
    looped.loop.close()
    assert net.connect(looped.door.address).connected() == errno.ECONNREFUSED
    assert looped.loop.links == []
