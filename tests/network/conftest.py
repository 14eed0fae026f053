"""Sockets for the tests of network/."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from kclient.common.files import WireBytes
from kclient.common.runtime import READABLE, WRITABLE, Address, StreamSocket
from kclient.network.system_net import SystemNet, SystemPoller

LOOPBACK = ("127.0.0.1", 0)


class Sink:
    """Socket that accepts a given number of bytes per write."""

    def __init__(self, accepts: Callable[[], int]) -> None:
        self.data = b""
        self.calls = 0
        self._accepts = accepts

    def fileno(self) -> int:
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        raise BlockingIOError

    def sendmsg(self, buffers: Sequence[WireBytes], /) -> int:
        self.calls += 1
        joined = b"".join(bytes(part) for part in buffers)[: self._accepts()]
        if not joined:
            raise BlockingIOError
        self.data += joined
        return len(joined)

    def set_receive_low_water_mark(self, size: int) -> None: ...

    def connect_error(self) -> int:
        return 0

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def local_address(self) -> Address:
        return ("10.0.0.2", 2)

    def close(self) -> None: ...
    def reset(self) -> None: ...


def everything() -> int:
    return 1 << 30


@pytest.fixture
def net() -> SystemNet:
    return SystemNet()


@pytest.fixture
def poller(net: SystemNet) -> Iterator[SystemPoller]:
    poller = SystemPoller()
    yield poller
    poller.close()


def connected(net: SystemNet, poller: SystemPoller) -> tuple[StreamSocket, StreamSocket]:
    listener = net.listen(LOOPBACK, 1)
    near = net.connect(listener.local_address(), -1, 65536)
    poller.register(listener, READABLE, "listener")
    poller.register(near, WRITABLE, "near")
    ready: set[object] = set()
    while ready != {"listener", "near"}:
        ready |= {data for data, _ in poller.poll(1000)}
    far = listener.accept()
    with pytest.raises(BlockingIOError):
        listener.accept()
    poller.unregister(listener)
    poller.unregister(near)
    listener.close()
    listener.close()
    assert near.connect_error() == 0
    assert near.peer_address() == far.local_address()
    assert far.peer_address() == near.local_address()
    return near, far
