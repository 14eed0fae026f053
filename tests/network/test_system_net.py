"""Sockets of the operating system on loopback."""

import errno
import gc
import os
import select
import socket
import subprocess
import sys
import threading
import time

import pytest

from kclient.common.runtime import READABLE, WRITABLE
from kclient.network.system_net import SystemNet, SystemPoller, SystemStreamSocket, _PipeBell
from tests.network.conftest import LOOPBACK, connected


def test_connected_sockets_exchange_bytes(net: SystemNet, poller: SystemPoller) -> None:
    near, far = connected(net, poller)
    buffer = bytearray(10)
    with pytest.raises(BlockingIOError):
        far.recv_into(memoryview(buffer))
    assert near.sendmsg([b"he", bytearray(b"ll"), memoryview(b"o")]) == 5
    poller.register(far, READABLE, "far")
    assert poller.poll(1000) == [("far", READABLE)]
    assert far.recv_into(memoryview(buffer)) == 5
    assert buffer[:5] == b"hello"
    near.close()
    near.close()
    assert poller.poll(1000) == [("far", READABLE)]
    assert far.recv_into(memoryview(buffer)) == 0
    poller.unregister(far)
    far.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is set on Linux only")
def test_socket_is_readable_at_low_water_mark_or_at_the_end(
    net: SystemNet, poller: SystemPoller
) -> None:
    near, far = connected(net, poller)
    poller.register(far, READABLE, "far")
    far.set_receive_low_water_mark(1000)
    near.sendmsg([bytes(999)])
    assert poller.poll(0) == []  # loopback delivers in the call
    near.sendmsg([b"x"])
    assert poller.poll(1000) == [("far", READABLE)]
    assert far.recv_into(memoryview(bytearray(1001))) == 1000
    near.sendmsg([b"x"])
    assert poller.poll(0) == []
    assert far.recv_into(memoryview(bytearray(10))) == 1
    near.close()
    assert poller.poll(1000) == [("far", READABLE)]
    poller.unregister(far)
    far.close()


def test_reset_is_seen_by_peer(net: SystemNet, poller: SystemPoller) -> None:
    near, far = connected(net, poller)
    near.reset()
    near.reset()
    poller.register(far, READABLE, "far")
    assert poller.poll(5000)
    poller.unregister(far)
    with pytest.raises(ConnectionResetError):
        far.recv_into(memoryview(bytearray(8)))
    far.close()
    far.reset()


def test_poller_interest_can_be_empty(net: SystemNet, poller: SystemPoller) -> None:
    near, far = connected(net, poller)
    poller.register(near, 0, "near")
    assert poller.poll(0) == []
    poller.modify(near, WRITABLE)
    assert poller.poll(0) == [("near", WRITABLE)]
    poller.modify(near, 0)
    poller.modify(near, 0)
    assert poller.poll(0) == []
    poller.modify(near, READABLE | WRITABLE)
    far.close()
    assert poller.poll(1000)[0][1] & READABLE
    poller.modify(near, 0)
    poller.unregister(near)
    near.close()


def test_closed_port_refuses_connection(net: SystemNet, poller: SystemPoller) -> None:
    listener = net.listen(LOOPBACK, 1)
    address = listener.local_address()
    listener.close()
    try:
        near = net.connect(address, -1, -1)
    except ConnectionRefusedError:
        return
    poller.register(near, WRITABLE, "near")
    poller.poll(1000)
    assert near.connect_error() == errno.ECONNREFUSED
    near.close()


def test_self_connection_counts_as_refused() -> None:
    with SystemStreamSocket(socket.AF_INET, socket.SOCK_STREAM) as stream:
        stream.bind(LOOPBACK)
        stream.connect(stream.getsockname())
        assert stream.getsockname() == stream.getpeername()
        assert stream.connect_error() == errno.ECONNREFUSED


def test_resolve_returns_distinct_addresses(net: SystemNet) -> None:
    addresses = net.resolve("localhost", 9092)
    assert ("127.0.0.1", 9092) in addresses or ("::1", 9092) in addresses
    assert len(set(addresses)) == len(addresses)
    with pytest.raises(OSError, match=r"."):
        net.resolve("no-such-host.invalid", 9092)
    with pytest.raises(OSError, match="is not a host name"):
        net.resolve("a" * 70 + ".example", 9092)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_address_needs_no_idna_codec(host: str) -> None:
    program = (
        "import sys\n"
        "from kclient.network.system_net import SystemNet\n"
        f"SystemNet().look_up({host!r}, 9092, bool)\n"
        "print('stringprep' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


@pytest.mark.parametrize("host", ["b\u00fccher.invalid", "a..b"])
def test_other_names_are_encoded_by_python(net: SystemNet, host: str) -> None:
    with pytest.raises(OSError, match=r"."):
        net.resolve(host, 9092)


@pytest.mark.parametrize("port", [-1, 65_536, 70_000, 2**31 - 1])
def test_port_out_of_range_is_refused(net: SystemNet, port: int) -> None:
    """A broker may advertise any number; the resolver would use its low 16 bits."""
    with pytest.raises(OSError, match=f"{port} is not a port"):
        net.resolve("127.0.0.1", port)


def test_port_in_use_is_refused(net: SystemNet) -> None:
    listener = net.listen(LOOPBACK, 1)
    with pytest.raises(OSError, match="in use"):
        net.listen(listener.local_address(), 1)
    listener.close()


def test_wakeup_ends_poll_of_another_thread(poller: SystemPoller) -> None:
    waiting = threading.Thread(target=lambda: poller.poll(600_000), daemon=True)
    waiting.start()
    poller.wakeup()
    waiting.join(60)
    assert not waiting.is_alive()


def test_descriptor_of_poller_is_readable_while_poll_would_return(poller: SystemPoller) -> None:
    def readable() -> bool:
        return bool(select.select([poller.fileno()], [], [], 0)[0])

    assert not readable()
    poller.wakeup()
    assert readable()
    poller.poll(0)
    assert not readable()


def test_many_wakeups_end_one_poll(poller: SystemPoller) -> None:
    for _ in range(100_000):
        poller.wakeup()
    began = time.monotonic()
    assert poller.poll(20_000) == []
    assert time.monotonic() - began < 10
    assert poller.poll(0) == []


def test_no_wakeup_is_lost_while_another_one_ends_a_poll(poller: SystemPoller) -> None:
    changes: list[int] = []

    def change() -> None:
        for number in range(20_000):
            changes.append(number)
            poller.wakeup()

    changing = threading.Thread(target=change, daemon=True)
    changing.start()
    while len(changes) < 20_000:
        began = time.monotonic()
        poller.poll(60_000)
        assert time.monotonic() - began < 30
    changing.join(60)


def test_wakeup_after_close_has_no_effect() -> None:
    poller = SystemPoller()
    poller.close()
    poller.close()
    path_descriptor = os.open("/dev/null", os.O_WRONLY)
    poller.wakeup()
    os.close(path_descriptor)


def test_unclosed_poller_leaks_no_descriptor() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        SystemPoller()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.fault("W19")
def test_forked_child_exits_although_wakeup_lock_was_held() -> None:
    poller = SystemPoller()
    bell = poller._bell
    assert isinstance(bell, _PipeBell)
    with bell._lock:  # as a ring in another thread holds it
        child = os.fork()
        if child == 0:
            threading.Timer(10, os._exit, (1,)).start()  # a hang fails the test
            del poller
            bell.__del__()  # as the interpreter does at exit
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    poller.wakeup()
    poller.close()
