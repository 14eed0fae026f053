"""The one door to the world: clock, randomness, waiting, threads, network and files.

Everything that has an effect, or that differs from one run to the next, reaches the rest of the
package through a `Runtime` handed in by the caller. `kclient.network.system_runtime` builds the
real one; a simulation builds another, with virtual time, an in-memory network and an in-memory
disk, and drives the same clients and brokers in one thread.

Times inside the package are milliseconds: a float from `Clock.monotonic_ms` for every duration and
deadline, an int from `Clock.wall_ms` for timestamps that people and brokers see.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from kclient.common.files import Files

Address = tuple[str, int]
"""A resolved IP address and port."""


class EndOfTaskError(BaseException):
    """A runtime ends the task that called it; only the runtime itself may catch this.

    Code that guards itself against whatever a user's function raises lets it pass.
    """


READABLE = 1
WRITABLE = 2


class Clock(Protocol):
    """Tells the time."""

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start; never goes back."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch; may jump."""
        ...

    def wall_ns(self) -> int:
        """Return the same in nanoseconds; cheaper, for those who ask at every record."""
        ...


class Lock(Protocol):
    """A re-entrant lock for what nobody waits for; under simulation there is nothing to guard."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Condition(Protocol):
    """A lock with waiters, as `threading.Condition`; under simulation, waiting moves time on."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification or for `timeout` seconds, take the lock."""
        ...

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `predicate()` holds; return its last value."""
        ...

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` waiters."""
        ...

    def notify_all(self) -> None:
        """Wake every waiter."""
        ...


class Task(Protocol):
    """A running loop started by `Runtime.spawn`."""

    name: str

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the loop to end; return whether it has."""
        ...

    def is_alive(self) -> bool:
        """Return whether the loop is still running."""
        ...

    def is_current(self) -> bool:
        """Return whether the caller runs inside this loop."""
        ...


class StreamSocket(Protocol):
    """A non-blocking TCP socket. Calls that would block raise `BlockingIOError`."""

    def fileno(self) -> int:
        """Return the descriptor, or -1 for a simulated socket."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read into `buffer`; 0 means the peer closed its side."""
        ...

    def sendmsg(self, buffers: Sequence[bytes | bytearray | memoryview], /) -> int:
        """Write from the buffers in order; return how many bytes were taken."""
        ...

    def connect_error(self) -> int:
        """Return the errno of a finished connect attempt; 0 if it succeeded."""
        ...

    def peer_address(self) -> Address:
        """Return the other side's address."""
        ...

    def local_address(self) -> Address:
        """Return this side's address."""
        ...

    def close(self) -> None:
        """Close the socket; idempotent."""
        ...

    def reset(self) -> None:
        """Close the socket so that the peer sees a reset instead of an end; idempotent."""
        ...


class Listener(Protocol):
    """A listening TCP socket."""

    def fileno(self) -> int:
        """Return the descriptor, or -1 for a simulated socket."""
        ...

    def accept(self) -> StreamSocket:
        """Return the next connection; raise `BlockingIOError` when there is none."""
        ...

    def local_address(self) -> Address:
        """Return the bound address, with the real port where 0 was asked for."""
        ...

    def close(self) -> None:
        """Stop listening; idempotent."""
        ...


class Poller(Protocol):
    """Waits for readiness of many sockets; `wakeup` may be called from any thread."""

    def register(self, source: StreamSocket | Listener, events: int, data: object) -> None:
        """Watch `source` for `events`, a sum of READABLE and WRITABLE; 0 watches for nothing."""
        ...

    def modify(self, source: StreamSocket | Listener, events: int) -> None:
        """Watch for other events."""
        ...

    def unregister(self, source: StreamSocket | Listener) -> None:
        """Stop watching."""
        ...

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return (data, ready events) pairs, waiting at most `timeout_ms`; None waits for ever."""
        ...

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once."""
        ...

    def close(self) -> None:
        """Release the poller's own descriptors; idempotent."""
        ...


class LookUp(Protocol):
    """A name look-up that was started."""

    def done(self) -> bool:
        """Return whether it has ended."""
        ...

    def addresses(self) -> list[Address]:
        """Return every address of the name, in the resolver's order; raise OSError if none."""
        ...


class Net(Protocol):
    """Opens and watches TCP connections."""

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return every address of a name, in the resolver's order; raise OSError if none.

        Blocks for as long as the resolver does: only for callers that may wait.
        """
        ...

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start to look a name up, without waiting for the resolver.

        Args:
            host: Name or IP address.
            port: Port that the addresses are to have.
            on_done: Called once when the look-up ends, from any thread; not called where it has
                ended when this returns, as for an IP address.

        Raises:
            OSError: It cannot be started.
        """
        ...

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start connecting; the result turns writable when the attempt has ended.

        Buffer sizes are bytes; -1 keeps the operating system's default.
        """
        ...

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen; port 0 takes a free port."""
        ...

    def poller(self) -> Poller:
        """Return a new poller."""
        ...


class Tasks(Protocol):
    """Starts loops and makes the conditions they wait on."""

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Call `step` again and again, in a thread of its own, until it returns False.

        `step` blocks only in `Poller.poll` and `Condition.wait`. An exception that leaves it ends
        the loop and is logged; a step that must not die quietly handles its own errors.
        """
        ...

    def condition(self) -> Condition:
        """Return a condition with a re-entrant lock of its own."""
        ...

    def lock(self) -> Lock:
        """Return a re-entrant lock, cheaper than a condition.

        Ctrl-C cannot come between taking it and entering the ``with`` block.
        """
        ...

    def process_id(self) -> int:
        """Return the id of the running process, which changes in the child of a fork."""
        ...

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once before the process ends, while loops still run.

        Returns:
            A function that takes the callback back; calling it again does nothing.
        """
        ...

    def caller_id(self) -> int:
        """Return an id of the running thread."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """The doors a client or a broker was given."""

    clock: Clock
    random: random.Random
    tasks: Tasks
    net: Net
    files: Files
