"""`Net` of the operating system: TCP sockets, name resolution, readiness.

No other module of the package imports `socket`.
"""

import contextlib
import errno
import importlib
import math
import os
import resource
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import starmap, tee
from typing import TYPE_CHECKING, Any, Protocol

from kclient.common.interrupts import signals_take_effect
from kclient.common.runtime import READABLE, Address, Listener, LookUp, Poller, StreamSocket
from kclient.common.waiting import impatient_threads
from kclient.network.name_resolver import NameLookUp, NameResolver

_nonblocking: Any = None  # compiled, for Linux
if os.environ.get("KCLIENT_PURE_PYTHON", "") in {"", "0"}:
    with contextlib.suppress(ImportError):
        _nonblocking = importlib.import_module("kclient.network._nonblocking")

_IN_PROGRESS = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY})
_KEPT_DESCRIPTORS = 128
_NO_LINGER = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
_LAST_PORT = 65_535
_SPIN_NS = 100_000 if len(getattr(os, "sched_getaffinity", lambda _: ())(0)) > 1 else -1
"""Time for which an impatient thread asks the system repeatedly, if its last wait was not longer.

To stop an idle processor and to start it again takes longer than a response on a fast network, and
it starts with cold caches: the code of a round trip then takes a third longer. After a longer wait
the next one does not spin, so that slow brokers cost nothing. With one processor, the broker may
need it.
"""
_LONGEST_WAIT_MS = 2.0**31 - 1
"""Longest timeout of epoll; a longer one is no limit."""


class SystemStreamSocket(socket.socket):
    """Non-blocking TCP socket.

    Reads and writes are functions of `kclient.network._nonblocking`, if that was compiled, and
    otherwise the methods of `socket.socket` itself.
    """

    if not TYPE_CHECKING and _nonblocking is not None:
        recv_into = _nonblocking.recv_into
        sendmsg = _nonblocking.sendmsg

    def set_receive_low_water_mark(self, size: int) -> None:
        """Become readable only when `size` bytes have arrived, on Linux.

        Linux limits the mark to half of the receive buffer and raises it no further than the peer
        can fill the window, so that a large one cannot block the connection; others do not.
        """
        if sys.platform == "linux":
            self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def connect_error(self) -> int:
        """Return the errno of a finished connect attempt; 0 if it succeeded."""
        failed = self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            return failed
        try:
            # A connection to a closed port of this machine may connect to itself, when the kernel
            # picks that port as the source; there is no listener.
            is_self_connected = self.getsockname() == self.getpeername()
        except OSError as error:
            return error.errno or errno.ENOTCONN
        return errno.ECONNREFUSED if is_self_connected else 0

    def peer_address(self) -> Address:
        """Return the peer's address."""
        return _address(self.getpeername())

    def local_address(self) -> Address:
        """Return the local address."""
        return _address(self.getsockname())

    def reset(self) -> None:
        """Close the connection with a TCP reset; idempotent."""
        if self.fileno() >= 0:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.close()


def _keep_descriptors(descriptor: int) -> None:
    """Raise EMFILE if a new connection would use one of the process's last descriptors.

    The system assigns the lowest free number, so that the number of a new descriptor shows how many
    are in use.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return
    probe = os.dup(descriptor)
    os.close(probe)
    kept = min(_KEPT_DESCRIPTORS, limit // 4)
    if probe >= limit - kept:
        raise OSError(errno.EMFILE, f"{kept} of {limit} descriptors are reserved for files")


class SystemListener:
    """Listening, non-blocking TCP socket."""

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self._address = _address(listening.getsockname())

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._socket.fileno()

    def accept(self) -> StreamSocket:
        """Return the next connection; raise `BlockingIOError` when there is none.

        Raises:
            OSError: EMFILE if only the descriptors reserved for files are left: new connections
                must not use them up.
        """
        _keep_descriptors(self._socket.fileno())
        accepted, _ = self._socket.accept()
        stream = SystemStreamSocket(fileno=accepted.detach())
        try:
            _prepare(stream)
        except OSError:  # the peer has closed the connection
            stream.close()
            raise
        return stream

    def local_address(self) -> Address:
        """Return the bound address, with the port that was assigned for 0."""
        return self._address

    def close(self) -> None:
        """Stop listening; idempotent."""
        self._socket.close()


class SystemPoller:
    """Readiness of many sockets, by the best mechanism of the system."""

    def __init__(self, *, waits: bool = True) -> None:
        """Create a poller.

        Args:
            waits: Whether `poll` may wait; if not, `wakeup` does nothing and has no descriptor.
        """
        self._selector = selectors.DefaultSelector()
        self._epoll = -1 if _nonblocking is None else self.fileno()
        self._last_wait_ns = sys.maxsize
        self._bell = _make_bell() if waits else _NoBell()
        self.wakeup = self._bell.ring  # makes the present or the next `poll` return at once
        # Data and events by descriptor; the selector has those with events only, since it knows no
        # empty interest.
        self._sources: dict[int, tuple[object, int]] = {}
        if waits:
            self._watch(self._bell.fileno(), READABLE, None)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `poll` would return at once.

        An event loop watches it instead of blocking in `poll`. -1 where the system has neither
        epoll nor kqueue nor /dev/poll: a loop must watch each socket there.
        """
        find = getattr(self._selector, "fileno", None)
        return -1 if find is None else int(find())

    def register(self, source: StreamSocket | Listener, events: int, data: object) -> None:
        """Watch `source` for `events`, a sum of READABLE and WRITABLE; 0 watches for nothing."""
        if data is None:
            raise ValueError("data: got None, expected an object that poll() returns")
        self._watch(source.fileno(), events, data)

    def _watch(self, descriptor: int, events: int, data: object) -> None:
        if events:
            self._selector.register(descriptor, events)
        self._sources[descriptor] = (data, events)

    def modify(self, source: StreamSocket | Listener, events: int) -> None:
        """Watch for other events."""
        descriptor = source.fileno()
        data, before = self._sources[descriptor]
        if not before:
            self._watch(descriptor, events, data)
            return
        if events:
            self._selector.modify(descriptor, events)
        else:
            self._selector.unregister(descriptor)
        self._sources[descriptor] = (data, events)

    def unregister(self, source: StreamSocket | Listener) -> None:
        """Stop watching; call it before the source is closed."""
        descriptor = source.fileno()
        _, events = self._sources.pop(descriptor)
        if events:
            self._selector.unregister(descriptor)

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return (data, ready events) pairs; wait at most `timeout_ms`, without limit for None."""
        if timeout_ms == 0:
            selected = self._select_now()
        else:
            with signals_take_effect():
                selected = self._select(math.inf if timeout_ms is None else timeout_ms)
        ready = []
        for descriptor, events in selected:
            data, interest = self._sources[descriptor]
            if data is None:
                self._bell.silence()
            else:
                ready.append((data, events & interest))
        return ready

    def _select_now(self) -> list[tuple[int, int]]:
        """Return the descriptors that are ready now, with their events."""
        if self._epoll < 0:
            return _by_descriptor(self._selector.select(0))
        now: list[tuple[int, int]] = _nonblocking.ready(self._epoll)
        return now

    def _select(self, timeout_ms: float) -> list[tuple[int, int]]:
        """Wait for the first descriptors that are ready; return them with their events."""
        if self._epoll < 0:
            timeout = None if timeout_ms == math.inf else timeout_ms / 1000.0
            return _by_descriptor(self._selector.select(timeout))
        # Rounded up, as by `selectors`: a shorter wait would be repeated until the deadline.
        whole_ms = math.ceil(timeout_ms) if timeout_ms < _LONGEST_WAIT_MS else -1
        spins = self._last_wait_ns <= _SPIN_NS and threading.get_ident() in impatient_threads
        found: list[tuple[int, int]]
        found, self._last_wait_ns = _nonblocking.wait(
            self._epoll, whole_ms, _SPIN_NS if spins else 0
        )
        return found

    def close(self) -> None:
        """Release the poller's own descriptors; idempotent."""
        self._bell.close()
        self._selector.close()


def _by_descriptor(selected: list[tuple[selectors.SelectorKey, int]]) -> list[tuple[int, int]]:
    return [(key.fd, events) for key, events in selected]


class _Bell(Protocol):
    """Descriptor that `ring` makes readable, from any thread."""

    def fileno(self) -> int: ...
    def ring(self) -> None: ...
    def silence(self) -> None: ...
    def close(self) -> None: ...


class _NoBell:
    """Bell of a poller that never waits."""

    def fileno(self) -> int:
        return -1

    def ring(self) -> None:
        return

    def silence(self) -> None:
        return

    def close(self) -> None:
        return


class _PipeBell:
    """Bell of descriptors that no other process can write to: an eventfd or a pipe."""

    _closed = True  # until the descriptors exist

    def __init__(self, make: Iterator[tuple[int, int]]) -> None:
        """Take the reading and the writing end from `make`, which runs no Python code.

        Hence Ctrl-C cannot come between the creation of the descriptors and their assignment.
        """
        self._made: list[tuple[int, int]] = []
        self._closed = False
        # guards: the descriptors against a ring during close, when their numbers may already be
        # those of other files.
        self._lock = threading.Lock()
        self._is_readable = False
        self._made.extend(make)
        ((self._reader, self._writer),) = self._made

    def do_not_block(self) -> None:
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def ring(self) -> None:
        if self._is_readable:
            return  # a producer rings for each batch, and a system call gives up the GIL
        with self._lock, contextlib.suppress(BlockingIOError):  # full: it is readable already
            if not self._closed:
                self._is_readable = True
                os.write(self._writer, _ONE)

    def silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            _discard(self._reader)
        # Last: a thread that rings before this line does not write, and what it has changed is
        # seen by the caller.
        self._is_readable = False

    def close(self) -> None:
        with self._lock:
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        if not self._closed:
            self._closed = True
            for descriptor in {end for ends in self._made for end in ends}:
                os.close(descriptor)

    def __del__(self) -> None:
        # Unlike sockets, bare descriptors are not closed with their object. No caller is left, and
        # after a fork the lock may be held by a thread of the parent: do not acquire it.
        self._close_descriptors()


class _SocketBell:
    """Bell for systems whose pipes cannot be polled: two connected loopback sockets."""

    def __init__(self) -> None:
        self._reader, self._writer = _verified_socketpair()

    def fileno(self) -> int:
        return self._reader.fileno()

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full, or closed
            self._writer.send(b"\1")

    def silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._reader.recv(4096)) == 4096:
                pass

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


def _read_all(descriptor: int) -> None:
    """Read what a non-blocking descriptor holds, and discard it."""
    while len(os.read(descriptor, 4096)) == 4096:
        pass


_discard: Callable[[int], None] = _read_all if _nonblocking is None else _nonblocking.discard
_ONE = (1).to_bytes(8, "little")  # an eventfd takes exactly eight bytes


def _make_bell() -> _Bell:
    if hasattr(os, "eventfd"):
        made = map(os.eventfd, (0,), (os.EFD_NONBLOCK | os.EFD_CLOEXEC,))
        return _PipeBell(zip(*tee(made), strict=True))
    if os.name == "posix":
        bell = _PipeBell(starmap(os.pipe, ((),)))
        bell.do_not_block()
        return bell
    return _SocketBell()


def _verified_socketpair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets that are connected to each other.

    Where the system has no socketpair, Python emulates it with a listener that another process of
    the machine may connect to first (CVE-2024-3219); the addresses of both ends must match.
    """
    reader, writer = socket.socketpair()
    if reader.getpeername() != writer.getsockname():
        reader.close()
        writer.close()
        raise ConnectionError("the wake-up connection was opened by another process")
    reader.settimeout(0.0)
    writer.settimeout(0.0)
    return reader, writer


# Load balancers and NAT gateways drop connections that are idle for some minutes, without notice;
# the system's default for the first probe is two hours.
_KEEP_ALIVE = [
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
]


class SystemNet:
    """Network of this machine."""

    def __init__(self) -> None:
        self._resolver = NameResolver(self.resolve)

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a name, in the resolver's order.

        Blocks as long as the system's resolver does.

        Raises:
            OSError: The name has no address, or the port is out of range, which the resolver would
                reduce to another port.
        """
        return _resolve(host, port)

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start to look a name up in a thread of its own; an IP address is returned at once.

        Args:
            host: Name or IP address.
            port: Port of the returned addresses.
            on_done: Called once when the look-up ends, from any thread; not called if it has ended
                when this returns.

        Raises:
            OSError: No thread can be started.
        """
        try:
            return NameLookUp.ended(host, port, _resolve(host, port, socket.AI_NUMERICHOST))
        except socket.gaierror:
            if _has_invalid_label(host):
                refused = OSError(f"{host!r:.80} is not a host name: a label is empty or too long")
                return NameLookUp.ended(host, port, refused)
            return self._resolver.look_up(host, port, on_done)  # a name, not an address
        except OSError as error:
            return NameLookUp.ended(host, port, error)

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start connecting; the socket becomes writable when the attempt has ended.

        Args:
            address: IP address and port.
            send_buffer: Bytes of the kernel's send buffer, -1 for its default.
            receive_buffer: Bytes of the kernel's receive buffer, -1 for its default.

        Raises:
            OSError: The attempt failed at once.
        """
        stream = SystemStreamSocket(_family(address), socket.SOCK_STREAM)
        try:
            _prepare(stream, send_buffer, receive_buffer)
            status = stream.connect_ex(address)
            if status not in _IN_PROGRESS:
                raise OSError(status, os.strerror(status))
        except BaseException:
            stream.close()
            raise
        return stream

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen; port 0 binds a free port.

        Raises:
            OSError: The address is in use, or is not local.
        """
        listening = socket.socket(_family(address), socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                # On other systems this option allows two processes to bind one port.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(backlog)
            listening.settimeout(0.0)
        except BaseException:
            listening.close()
            raise
        return SystemListener(listening)

    def poller(self, *, waits: bool = True) -> Poller:
        """Return a new poller."""
        return SystemPoller(waits=waits)


def _resolve(host: str, port: int, flags: int = 0) -> list[Address]:
    if not 0 <= port <= _LAST_PORT:
        raise OSError(f"{port} is not a port, expected 0 to {_LAST_PORT}")
    # Python imports its IDNA codec, 4 ms, for a str, which a number in ASCII does not need.
    is_number = bool(flags & socket.AI_NUMERICHOST) and host.isascii()
    name = host.encode() if is_number else host
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:  # a label is too long or empty; raised before any look-up
        raise OSError(f"{host!r:.80} is not a host name: {error}") from error
    return list(dict.fromkeys(_address(entry[4]) for entry in found))


def _has_invalid_label(host: str) -> bool:
    return any(not 0 < len(label) < 64 for label in host.removesuffix(".").split("."))


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _address(sockaddr: tuple[object, ...]) -> Address:
    host, port = str(sockaddr[0]), int(str(sockaddr[1]))
    if len(sockaddr) == 4 and sockaddr[3] and "%" not in host:
        host = f"{host}%{sockaddr[3]}"  # a link-local address is incomplete without its interface
    return host, port


def _prepare(stream: socket.socket, send_buffer: int = -1, receive_buffer: int = -1) -> None:
    stream.settimeout(0.0)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in _KEEP_ALIVE:
        stream.setsockopt(socket.IPPROTO_TCP, option, seconds)
    if send_buffer >= 0:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer >= 0:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
