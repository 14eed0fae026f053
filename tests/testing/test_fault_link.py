"""A proxied connection: pipes that pace bytes, and the ends of both sides."""

import errno
import math
import struct
from collections.abc import Sequence

import pytest

from kclient.common.runtime import READABLE
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_link import FaultLink, FaultPipe, Side
from kclient.testing.fault_rule import Delivery, Ending
from tests.support.virtual.world_parts import SERVER, Net, fails

BROKER_PORT = 9093
FRAME = Frame(1, Direction.TO_CLIENT, None, -1, -1, 10)


class Target:
    """A socket that accepts a limited number of bytes."""

    def __init__(self, space: int = 1_000) -> None:
        self.space = space
        self.written = b""

    def sendmsg(self, buffers: Sequence[memoryview]) -> int:
        if not self.space:
            raise BlockingIOError
        data = b"".join(buffers)[: self.space]
        self.space -= len(data)
        self.written += data
        return len(data)


def delivery(data: bytes, **shape: object) -> Delivery:
    made = Delivery(FRAME, data)
    for name, value in shape.items():
        setattr(made, name, value)
    return made


def write(pipe: FaultPipe, target: Target, now_ms: float) -> Ending | None:
    return pipe.write(target, now_ms)  # type: ignore[arg-type]  # it only sends


def test_frames_are_written_in_order_when_due() -> None:
    pipe, target = FaultPipe(), Target()
    pipe.put(delivery(b"first", delay_ms=50.0), 0.0)
    pipe.put(delivery(b"second"), 0.0)
    assert pipe.backlog == 11
    assert write(pipe, target, 0.0) is None
    assert (target.written, pipe.wait_ms(0.0)) == (b"", 50.0)
    write(pipe, target, 50.0)
    assert (target.written, pipe.backlog, pipe.wait_ms(50.0)) == (b"firstsecond", 0, math.inf)


def test_full_buffer_blocks_until_the_next_write() -> None:
    pipe, target = FaultPipe(), Target(space=3)
    pipe.put(delivery(b"abcdef"), 0.0)
    write(pipe, target, 0.0)
    assert (target.written, pipe.is_blocked, pipe.backlog) == (b"abc", True, 3)
    assert pipe.wait_ms(0.0) == math.inf
    target.space = 10
    write(pipe, target, 0.0)
    assert (target.written, pipe.is_blocked) == (b"abcdef", False)


def test_chunks_are_paced_and_delay_later_frames() -> None:
    pipe, target = FaultPipe(), Target()
    pipe.put(delivery(b"abcd", chunk=2, gap_ms=10.0), 0.0)
    pipe.put(delivery(b"later"), 0.0)
    seen = []
    for now_ms in (0.0, 5.0, 10.0, 15.0, 20.0, 30.0):
        write(pipe, target, now_ms)
        seen.append(target.written)
    assert seen[:4] == [b"ab", b"ab", b"abcd", b"abcd"]
    assert seen[-1] == b"abcdlater"


@pytest.mark.parametrize("ending", list(Ending))
def test_end_follows_the_bytes_that_wait(ending: Ending) -> None:
    pipe, target = FaultPipe(), Target()
    pipe.put(delivery(b"last", delay_ms=5.0), 0.0)
    pipe.put_end(ending, 0.0)
    assert write(pipe, target, 0.0) is None
    assert write(pipe, target, 5.0) is ending
    assert target.written == b"last"


def test_frame_with_an_ending_ends_the_connection_after_its_bytes() -> None:
    pipe, target = FaultPipe(), Target()
    pipe.put(delivery(b"cut", ending=Ending.RESET), 0.0)
    pipe.put(delivery(b"never"), 0.0)
    assert write(pipe, target, 0.0) is Ending.RESET
    assert target.written == b"cut"


# -- links


class Proxied:
    """A client's connection to a proxy, and the link from there to a broker."""

    def __init__(self, net: Net) -> None:
        self.near, far = net.pair()
        self._clock = net.world.clock
        runtime = net.server.runtime
        self._poller = runtime.net.poller()
        self.link = FaultLink(1, far.stream, self._poller, lambda _: None)
        broker = net.server.runtime.net.listen((SERVER[0], BROKER_PORT), 10)
        self.link.connect(runtime.net, (SERVER[0], BROKER_PORT))
        self.broker = net.accept(broker)

    def pump(self, duration_ms: float = 100.0) -> None:
        """Move bytes for some time."""
        end_ms = self._clock.now_ms + duration_ms
        while (now_ms := self._clock.now_ms) < end_ms:
            wait_ms = min(self.link.step(now_ms, math.inf), end_ms - now_ms)
            for side, events in self._poller.poll(max(wait_ms, 1.0)):
                assert isinstance(side, Side)
                self.link.ready(side, events, self._clock.now_ms)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def test_frames_pass_in_both_directions(net: Net) -> None:
    proxied = Proxied(net)
    proxied.near.write(framed(b"request!"))
    proxied.pump()
    assert proxied.broker.read(12) == framed(b"request!")
    proxied.broker.write(framed(b"response"))
    proxied.pump()
    assert proxied.near.read(12) == framed(b"response")


def test_held_link_passes_nothing_until_it_is_released(net: Net) -> None:
    proxied = Proxied(net)
    proxied.pump()
    proxied.link.is_held = True
    proxied.near.write(framed(b"held"))
    proxied.pump()
    assert not proxied.broker.wait(READABLE, 0)
    proxied.link.is_held = False
    proxied.pump()
    assert proxied.broker.read(8) == framed(b"held")


def test_half_open_link_closes_only_the_broker_side(net: Net) -> None:
    proxied = Proxied(net)
    proxied.pump()
    proxied.link.end(Ending.SILENCE)
    assert not proxied.link.is_over
    proxied.near.write(framed(b"into the void"))
    proxied.pump()
    assert proxied.broker.read(1) == b""
    assert not proxied.near.wait(READABLE, 0)


def test_orderly_end_of_one_side_follows_its_last_bytes(net: Net) -> None:
    proxied = Proxied(net)
    proxied.pump()
    proxied.broker.write(framed(b"last")[:-1])
    proxied.broker.stream.close()
    proxied.pump()
    assert proxied.near.read(100) == framed(b"last")[:-1]
    assert proxied.link.is_over


def test_reset_of_one_side_resets_the_other(net: Net) -> None:
    proxied = Proxied(net)
    proxied.pump()
    proxied.broker.stream.reset()
    proxied.pump()
    fails(errno.ECONNRESET, lambda: proxied.near.read(1))
    assert proxied.link.is_over


def test_link_ends_at_the_end_of_its_lifetime(net: Net) -> None:
    proxied = Proxied(net)
    proxied.link.dies_at_ms = net.world.clock.now_ms + 200
    proxied.pump(150)
    assert not proxied.link.is_over
    proxied.pump(100)
    assert proxied.link.is_over


def test_broker_that_refuses_resets_the_client(net: Net) -> None:
    near, far = net.pair()
    poller = net.server.runtime.net.poller()
    link = FaultLink(1, far.stream, poller, lambda _: None)
    link.connect(net.server.runtime.net, ("no-such-host", 1))
    assert link.is_over
    fails(errno.ECONNRESET, lambda: near.read(1))
