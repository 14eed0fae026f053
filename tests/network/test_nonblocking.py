"""Compiled non-blocking system calls, compared with those of the standard library."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from kclient.common.interrupts import deferred_signals
from kclient.common.runtime import READABLE, WRITABLE
from kclient.common.waiting import impatient_threads
from kclient.network import system_net
from kclient.network.system_net import SystemPoller, SystemStreamSocket, _discard, _read_all

IMPLEMENTATIONS = [socket.socket]
if system_net._nonblocking is not None:
    IMPLEMENTATIONS.append(system_net._nonblocking)
Pair = tuple[SystemStreamSocket, SystemStreamSocket]


@pytest.fixture(params=IMPLEMENTATIONS, ids=str)
def calls(request: pytest.FixtureRequest) -> type[socket.socket] | ModuleType:
    found: type[socket.socket] | ModuleType = request.param
    return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = (SystemStreamSocket(fileno=end.detach()) for end in socket.socketpair())
    near.setblocking(False)
    far.setblocking(False)
    yield near, far
    near.close()
    far.close()


@pytest.fixture(params=[False, True], ids=["selectors", ""])
def poller(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SystemPoller]:
    if not request.param:
        monkeypatch.setattr(system_net, "_nonblocking", None)
    poller = SystemPoller()
    yield poller
    poller.close()


def test_parts_are_written_in_order(calls: ModuleType, pair: Pair) -> None:
    near, far = pair
    parts = [b"", b"one", bytearray(b"two"), memoryview(b"three")[1:]]
    assert calls.sendmsg(near, parts) == 10
    buffer = bytearray(20)
    assert calls.recv_into(far, memoryview(buffer)[5:]) == 10
    assert buffer[5:15] == b"onetwohree"


def sum_until_blocked(transfer: Callable[[], int]) -> int:
    total = 0
    try:
        while True:
            total += transfer()
    except BlockingIOError:
        return total


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_full_socket_accepts_a_part(calls: ModuleType, pair: Pair, size: int) -> None:
    near, far = pair
    sent = sum_until_blocked(lambda: calls.sendmsg(near, [bytes(size)]))
    received = sum_until_blocked(lambda: calls.recv_into(far, bytearray(size)))
    assert received == sent


def test_parts_beyond_the_limit_of_a_call_remain(calls: ModuleType, pair: Pair) -> None:
    near, far = pair
    sent = calls.sendmsg(near, [b"x"] * 100)
    assert sent in {64, 100}
    assert far.recv_into(memoryview(bytearray(200))) == sent


@pytest.mark.parametrize("size", [9, 1_000_000])
def test_end_of_connection_and_errors(calls: ModuleType, pair: Pair, size: int) -> None:
    near, far = pair
    far.close()
    assert calls.recv_into(near, bytearray(size)) == 0
    with pytest.raises(BrokenPipeError):
        calls.sendmsg(near, [bytes(size)])
    near.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.recv_into(near, bytearray(size))
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.sendmsg(near, [bytes(size)])


def test_refused_buffers_are_released(calls: ModuleType, pair: Pair) -> None:
    """A buffer that is still exported cannot be resized."""
    near, _ = pair
    accepted = bytearray(b"accepted")
    for refused in (5, memoryview(bytes(8))[::2]):
        with pytest.raises((TypeError, BufferError)):
            calls.sendmsg(near, [accepted, refused])
        accepted.append(0)
    with pytest.raises((TypeError, BufferError)):
        calls.recv_into(near, b"read-only")


def test_discarded_bytes_are_not_readable() -> None:
    for discard in (_read_all, _discard):
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.write(writer, bytes(5000))
        discard(reader)
        with pytest.raises(BlockingIOError):
            discard(reader)
        os.write(writer, bytes(4096))
        with pytest.raises(BlockingIOError):  # more could have followed
            discard(reader)
        os.close(writer)
        discard(reader)
        os.close(reader)
        with pytest.raises(OSError, match="Bad file descriptor"):
            discard(reader)


def test_poller_reports_events_that_are_watched(pair: Pair, poller: SystemPoller) -> None:
    near, far = pair
    poller.register(far, READABLE | WRITABLE, "far")
    assert poller.poll(0) == [("far", WRITABLE)]
    near.send(b"x")
    assert poller.poll(0) == [("far", READABLE | WRITABLE)]
    poller.modify(far, READABLE)
    assert poller.poll(0) == poller.poll(None) == [("far", READABLE)]
    near.close()  # an error and the end of a connection are readable and writable
    assert poller.poll(0) == [("far", READABLE)]
    poller.modify(far, WRITABLE)
    assert poller.poll(0) == [("far", WRITABLE)]
    poller.unregister(far)
    assert poller.poll(0) == []


def test_signal_takes_effect_in_poll_that_need_not_wait(poller: SystemPoller) -> None:
    poller.wakeup()
    with deferred_signals():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            poller.poll(None)
    poller.poll(0)


@pytest.fixture
def impatient(poller: SystemPoller, monkeypatch: pytest.MonkeyPatch) -> Iterator[SystemPoller]:
    """A poller whose last wait was short, in a thread that waits for a response."""
    poller.wakeup()
    poller.poll(None)
    monkeypatch.setattr(system_net, "_SPIN_NS", 300_000_000)
    impatient_threads.add(threading.get_ident())
    yield poller
    impatient_threads.discard(threading.get_ident())


def test_impatient_thread_lets_other_threads_run(pair: Pair, impatient: SystemPoller) -> None:
    near, far = pair
    impatient.register(far, READABLE, "far")
    began = time.monotonic()
    other = threading.Timer(0.02, near.send, args=(b"x",))
    other.start()
    assert impatient.poll(60_000) == [("far", READABLE)]
    assert time.monotonic() - began < 0.2
    other.join()


def test_impatient_thread_waits_until_the_timeout(impatient: SystemPoller) -> None:
    began = time.monotonic()
    assert impatient.poll(350) == []
    assert 0.35 <= time.monotonic() - began < 5


def test_signal_takes_effect_in_wait_of_impatient_thread(impatient: SystemPoller) -> None:
    def raise_error(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, raise_error)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            impatient.poll(5_000)
        assert time.monotonic() - began < 2
    finally:
        signal.signal(signal.SIGALRM, before)
