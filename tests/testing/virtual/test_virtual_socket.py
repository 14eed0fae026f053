"""Virtual sockets: reads, writes, ends of connections, and listeners."""

import errno

import pytest

from kclient.common.runtime import READABLE, WRITABLE
from tests.support.virtual.world_parts import PAYLOAD, SERVER, Line, Net, fails


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


def test_socket_is_readable_at_low_water_mark_or_at_the_end(net: Net) -> None:
    near, far = net.pair()
    far.stream.set_receive_low_water_mark(1000)
    near.stream.sendmsg([bytes(999)])
    assert not far.wait(READABLE, 1000)
    near.stream.sendmsg([b"x"])
    assert far.wait(READABLE, 1000)
    assert far.read(1000) == bytes(999) + b"x"
    near.stream.sendmsg([b"x"])
    assert not far.wait(READABLE, 1000)
    near.stream.close()
    assert far.wait(READABLE, 1000)
    assert far.read(1) == b"x"


def test_low_water_mark_beyond_the_buffers_does_not_block_the_writer(net: Net) -> None:
    near, far = net.pair()
    far.stream.set_receive_low_water_mark(1 << 20)

    def write() -> None:
        near.write(PAYLOAD * 20)
        near.stream.close()

    net.run(write, lambda: far.read(len(PAYLOAD) * 20))
    assert bytes(far.taken) == PAYLOAD * 20


def test_read_without_data_raises_blocking_io_error(net: Net) -> None:
    near, _ = net.pair()
    with pytest.raises(BlockingIOError):
        near.stream.recv_into(memoryview(bytearray(1)))


def test_closed_listener_resets_connections_in_its_backlog(net: Net) -> None:
    listener = net.listen()
    near = net.connect()
    assert near.connected() == 0
    listener.close()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))


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
