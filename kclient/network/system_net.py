"""Real TCP sockets, name resolution and readiness; nothing else in the package imports `socket`."""

import contextlib
import errno
import math
import os
import resource
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from itertools import starmap, tee
from typing import Protocol

from kclient.common.runtime import READABLE, Address, Listener, LookUp, Poller, StreamSocket
from kclient.network.name_resolver import NameLookUp, NameResolver

_IN_PROGRESS = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY})
_KEPT_DESCRIPTORS = 128
_NO_LINGER = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
_LAST_PORT = 65_535


class SystemStreamSocket(socket.socket):
    """A non-blocking TCP socket; reading and writing are the base class's, without a detour."""

    def connect_error(self) -> int:
        """Return the errno of a finished connect attempt; 0 if it succeeded."""
        failed = self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            return failed
        try:
            # A connect to a closed port of this very machine may meet itself, when the kernel
            # picks that port as the source: nobody listens there.
            met_itself = self.getsockname() == self.getpeername()
        except OSError as error:
            return error.errno or errno.ENOTCONN
        return errno.ECONNREFUSED if met_itself else 0

    def peer_address(self) -> Address:
        """Return the other side's address."""
        return _address(self.getpeername())

    def local_address(self) -> Address:
        """Return this side's address."""
        return _address(self.getsockname())

    def reset(self) -> None:
        """Close the socket so that the peer sees a reset instead of an end; idempotent."""
        if self.fileno() >= 0:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.close()


def _keep_descriptors(descriptor: int) -> None:
    """Raise EMFILE if a new connection would take one of the process's last descriptors.

    The system hands out the lowest free number, so that a new one's number tells how many are
    in use.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return
    probe = os.dup(descriptor)
    os.close(probe)
    kept = min(_KEPT_DESCRIPTORS, limit // 4)
    if probe >= limit - kept:
        raise OSError(errno.EMFILE, f"{kept} of {limit} descriptors are kept for files")


class SystemListener:
    """A listening, non-blocking TCP socket."""

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self._address = _address(listening.getsockname())

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._socket.fileno()

    def accept(self) -> StreamSocket:
        """Return the next connection; raise `BlockingIOError` when there is none.

        Raises:
            OSError: EMFILE where only the descriptors are left that are kept for files: whoever
                connects must not take those from the connections that are served.
        """
        _keep_descriptors(self._socket.fileno())
        accepted, _ = self._socket.accept()
        stream = SystemStreamSocket(fileno=accepted.detach())
        try:
            _prepare(stream)
        except OSError:  # the peer was gone before we got to it
            stream.close()
            raise
        return stream

    def local_address(self) -> Address:
        """Return the bound address, with the real port where 0 was asked for."""
        return self._address

    def close(self) -> None:
        """Stop listening; idempotent."""
        self._socket.close()


class SystemPoller:
    """Readiness of many sockets, by the best means the machine has."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._bell = _make_bell()
        self._selector.register(self._bell.fileno(), READABLE, None)
        # Sources watched for nothing: the selectors module knows no empty interest.
        self._unwatched: dict[int, object] = {}

    def register(self, source: StreamSocket | Listener, events: int, data: object) -> None:
        """Watch `source` for `events`, a sum of READABLE and WRITABLE; 0 watches for nothing."""
        if data is None:
            raise ValueError("data: got None, expected an object to hand back")
        if events:
            self._selector.register(source.fileno(), events, data)
        else:
            self._unwatched[source.fileno()] = data

    def modify(self, source: StreamSocket | Listener, events: int) -> None:
        """Watch for other events."""
        descriptor = source.fileno()
        if descriptor in self._unwatched:
            if events:
                self._selector.register(descriptor, events, self._unwatched.pop(descriptor))
        elif events:
            data = self._selector.get_key(descriptor).data
            self._selector.modify(descriptor, events, data)
        else:
            self._unwatched[descriptor] = self._selector.unregister(descriptor).data

    def unregister(self, source: StreamSocket | Listener) -> None:
        """Stop watching; call it before the source is closed."""
        descriptor = source.fileno()
        if self._unwatched.pop(descriptor, None) is None:
            self._selector.unregister(descriptor)

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return (data, ready events) pairs, waiting at most `timeout_ms`; None waits for ever."""
        timeout = None if timeout_ms is None or math.isinf(timeout_ms) else timeout_ms / 1000.0
        ready = []
        for key, events in self._selector.select(timeout):
            if key.data is None:
                self._bell.silence()
            else:
                ready.append((key.data, events))
        return ready

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once."""
        self._bell.ring()

    def close(self) -> None:
        """Release the poller's own descriptors; idempotent."""
        self._bell.close()
        self._selector.close()


class _Bell(Protocol):
    """A descriptor that turns readable when it is rung, from any thread."""

    def fileno(self) -> int: ...
    def ring(self) -> None: ...
    def silence(self) -> None: ...
    def close(self) -> None: ...


class _PipeBell:
    """A bell made of descriptors that no other process can write to: an eventfd or a pipe."""

    _closed = True  # one whose making was interrupted has nothing to let go of

    def __init__(self, make: Iterator[tuple[int, int]]) -> None:
        """Take the reading and the writing end from `make`, which makes them with no Python in it.

        So there is no place between making and keeping them where Ctrl-C could lose them.
        """
        self._made: list[tuple[int, int]] = []
        self._closed = False
        # guards: the descriptors against a ring that comes while they are being closed, when their
        # numbers may already belong to somebody else's file.
        self._lock = threading.Lock()
        self._made.extend(make)
        ((self._reader, self._writer),) = self._made

    def do_not_block(self) -> None:
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def ring(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):  # full: it is ringing already
            if not self._closed:
                os.write(self._writer, _ONE)

    def silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self._reader, 4096)) == 4096:
                pass

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if not self._closed:
            self._closed = True
            for descriptor in {end for ends in self._made for end in ends}:
                os.close(descriptor)

    def __del__(self) -> None:
        # Unlike sockets, bare descriptors do not close themselves. Nobody can ring any more; the
        # lock may be taken for ever where a process was forked in the midst of it.
        self._let_go()


class _SocketBell:
    """A bell for systems whose pipes cannot be polled: two connected loopback sockets."""

    def __init__(self) -> None:
        self._reader, self._writer = _verified_socketpair()

    def fileno(self) -> int:
        return self._reader.fileno()

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full, or closed meanwhile
            self._writer.send(b"\1")

    def silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._reader.recv(4096)) == 4096:
                pass

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


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
    """Return two connected sockets, sure that no other process slipped in between.

    Where the system has no socketpair, Python builds one from a listener that anybody on the
    machine may connect to first (CVE-2024-3219); both ends must name each other.
    """
    reader, writer = socket.socketpair()
    if reader.getpeername() != writer.getsockname():
        reader.close()
        writer.close()
        raise ConnectionError("the wake-up connection was taken by another process")
    reader.settimeout(0.0)
    writer.settimeout(0.0)
    return reader, writer


class SystemNet:
    """The machine's network."""

    def __init__(self) -> None:
        self._resolver = NameResolver(self.resolve)

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return every address of a name, in the resolver's order.

        Blocks for as long as the system's resolver does.

        Raises:
            OSError: The name has no address, or the port is none; the resolver would take it as
                another one.
        """
        return _resolve(host, port)

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start to look a name up in a thread of its own; an IP address needs none.

        Args:
            host: Name or IP address.
            port: Port that the addresses are to have.
            on_done: Called once when the look-up ends, from any thread; not called where it has
                ended when this returns.

        Raises:
            OSError: The system gives no thread.
        """
        try:
            return NameLookUp.ended(host, port, _resolve(host, port, socket.AI_NUMERICHOST))
        except socket.gaierror:
            return self._resolver.look_up(host, port, on_done)  # it is a name
        except OSError as error:
            return NameLookUp.ended(host, port, error)

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start connecting; the result turns writable when the attempt has ended.

        Args:
            address: Where to; an IP address, not a name.
            send_buffer: Bytes of the kernel's send buffer, -1 for its default.
            receive_buffer: Bytes of the kernel's receive buffer, -1 for its default.

        Raises:
            OSError: The attempt ended at once, without success.
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
        """Bind and listen; port 0 takes a free port.

        Raises:
            OSError: The address is taken, or not one of this machine's.
        """
        listening = socket.socket(_family(address), socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                # Elsewhere this option lets two processes share a port.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(backlog)
            listening.settimeout(0.0)
        except BaseException:
            listening.close()
            raise
        return SystemListener(listening)

    def poller(self) -> Poller:
        """Return a new poller."""
        return SystemPoller()


def _resolve(host: str, port: int, flags: int = 0) -> list[Address]:
    if not 0 <= port <= _LAST_PORT:
        raise OSError(f"{port} is not a port, expected 0 to {_LAST_PORT}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:  # a label too long or empty; raised before any look-up
        raise OSError(f"{host!r:.80} is not a host name: {error}") from error
    return list(dict.fromkeys(_address(entry[4]) for entry in found))


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _address(sockaddr: tuple[object, ...]) -> Address:
    host, port = str(sockaddr[0]), int(str(sockaddr[1]))
    if len(sockaddr) == 4 and sockaddr[3] and "%" not in host:
        host = f"{host}%{sockaddr[3]}"  # a link-local address means nothing without its interface
    return host, port


def _prepare(stream: socket.socket, send_buffer: int = -1, receive_buffer: int = -1) -> None:
    stream.settimeout(0.0)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer >= 0:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer >= 0:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
