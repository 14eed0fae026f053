"""Interfaces to the operating system: clock, random numbers, conditions, threads, network, files.

All side effects, and everything that differs from one run to the next, go through a `Runtime` that
the caller passes. `kclient.network.system_runtime` returns the one of the operating system; a
simulation has another, with virtual time, an in-memory network and an in-memory disk, and runs the
same clients and brokers in one thread.

Times are milliseconds: a float from `Clock.monotonic_ms` for durations and deadlines, an int from
`Clock.wall_ms` for the timestamps of records and logs.
"""

import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kclient.common.waiting import ConditionWait, Steps

from kclient.common.files import Files

Address = tuple[str, int]
"""IP address and port."""


class EndOfTaskError(BaseException):
    """Raised by a runtime to end the calling task; only the runtime itself may catch it.

    Code that catches the exceptions of a user's function must not catch this one.
    """


READABLE = 1
WRITABLE = 2


class Clock(Protocol):
    """Monotonic and wall-clock time."""

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start; never decreases."""
        ...

    def monotonic_ns(self) -> int:
        """Return the monotonic time in nanoseconds; cheaper, for calls at every request."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch; may jump."""
        ...

    def wall_ns(self) -> int:
        """Return the same in nanoseconds; cheaper, for calls at every record."""
        ...


class Lock(Protocol):
    """Re-entrant lock without waiters; in a simulation it does nothing."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Condition(Protocol):
    """Lock with waiters, as `threading.Condition`; in a simulation, a wait advances time."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification or for `timeout` seconds, acquire the lock."""
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
    """Loop started by `Tasks.spawn`."""

    name: str

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the loop to end; return whether it has."""
        ...

    def is_alive(self) -> bool:
        """Return whether the loop is still running."""
        ...

    def is_current(self) -> bool:
        """Return whether the caller runs in this loop."""
        ...

    def needs_wakeup(self) -> bool:
        """Return whether the caller, which has work for this loop, must end the loop's wait."""
        ...

    def await_change(self, wait: "ConditionWait", clock: Clock, /) -> None:
        """Wait for a change that this loop makes; the caller may run the loop meanwhile."""
        ...


class StreamSocket(Protocol):
    """Non-blocking TCP socket. Calls that would block raise `BlockingIOError`."""

    def fileno(self) -> int:
        """Return the descriptor, or -1 for a simulated socket."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read into `buffer`; 0 means the peer closed its side."""
        ...

    def sendmsg(self, buffers: Sequence[bytes | bytearray | memoryview], /) -> int:
        """Write from the buffers in order; return the number of bytes written."""
        ...

    def set_receive_low_water_mark(self, size: int) -> None:
        """Become readable only when `size` bytes have arrived, fewer if the system does not wait.

        The end of the stream and a failure are reported at once.
        """
        ...

    def connect_error(self) -> int:
        """Return the errno of a finished connect attempt; 0 if it succeeded."""
        ...

    def peer_address(self) -> Address:
        """Return the peer's address."""
        ...

    def local_address(self) -> Address:
        """Return the local address."""
        ...

    def close(self) -> None:
        """Close the socket; idempotent."""
        ...

    def reset(self) -> None:
        """Close the connection with a TCP reset; idempotent."""
        ...


class Listener(Protocol):
    """Listening TCP socket."""

    def fileno(self) -> int:
        """Return the descriptor, or -1 for a simulated socket."""
        ...

    def accept(self) -> StreamSocket:
        """Return the next connection; raise `BlockingIOError` when there is none."""
        ...

    def local_address(self) -> Address:
        """Return the bound address, with the port that was assigned for 0."""
        ...

    def close(self) -> None:
        """Stop listening; idempotent."""
        ...


class Poller(Protocol):
    """Readiness of many sockets; `wakeup` may be called from any thread."""

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
        """Return (data, ready events) pairs; wait at most `timeout_ms`, without limit for None."""
        ...

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once."""
        ...

    def close(self) -> None:
        """Release the poller's own descriptors; idempotent."""
        ...


class LookUp(Protocol):
    """Name look-up in progress, or its result."""

    def done(self) -> bool:
        """Return whether it has ended."""
        ...

    def addresses(self) -> list[Address]:
        """Return the addresses of the name, in the resolver's order; raise OSError if none."""
        ...


class Net(Protocol):
    """TCP connections, listeners, pollers and name look-ups."""

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a name, in the resolver's order; raise OSError if none.

        Blocks as long as the resolver does: only for callers that may wait.
        """
        ...

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start to look a name up, without waiting for the resolver.

        Args:
            host: Name or IP address.
            port: Port of the returned addresses.
            on_done: Called once when the look-up ends, from any thread; not called if it has ended
                when this returns, as for an IP address.

        Raises:
            OSError: It cannot be started.
        """
        ...

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start connecting; the socket becomes writable when the attempt has ended.

        Buffer sizes are bytes; -1 keeps the operating system's default.
        """
        ...

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen; port 0 binds a free port."""
        ...

    def poller(self, *, waits: bool = True) -> Poller:
        """Return a new poller; one that does not wait returns from `poll` at once."""
        ...


class Tasks(Protocol):
    """Threads and their conditions and locks."""

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Call `step` repeatedly, in a thread of its own, until it returns False.

        `step` blocks only in `Poller.poll` and `Condition.wait`. An exception of `step` ends the
        loop and is logged; a step whose loop must continue handles its own errors.
        """
        ...

    def run(self, name: str, steps: "Steps[None]", clock: Clock) -> Task:
        """Perform the waits of a loop in steps, in a thread of its own, until the loop returns.

        The deadlines of the waits are times of `clock`.
        An exception ends the loop and is logged; a loop that must continue handles its own errors.
        """
        ...

    def run_shared(
        self,
        name: str,
        steps: "Steps[None]",
        clock: Clock,
        wakeup: Callable[[], None],
        has_work: Callable[[], bool],
    ) -> Task:
        """Run a loop as `run` does; threads that wait for it may run its steps themselves.

        Args:
            name: Name of the loop.
            steps: The loop; it is used by one thread at a time.
            clock: Clock of the deadlines.
            wakeup: Ends the present wait of the steps; callable from any thread.
            has_work: Returns whether there is work that must not wait for such a thread.
        """
        ...

    def condition(self) -> Condition:
        """Return a condition with a re-entrant lock of its own."""
        ...

    def lock(self) -> Lock:
        """Return a re-entrant lock, cheaper than a condition.

        Ctrl-C cannot come between its acquisition and the start of the ``with`` block.
        """
        ...

    def process_id(self) -> int:
        """Return the id of the running process, which changes in the child of a fork."""
        ...

    def after_fork(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in the child of a fork, before the child's other code.

        Returns:
            A function that unregisters the callback; calling it again does nothing.
        """
        ...

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once before the process ends, while loops still run.

        Returns:
            A function that unregisters the callback; calling it again does nothing.
        """
        ...

    def caller_id(self) -> int:
        """Return an id of the running thread."""
        ...


def seeded_random(source: random.Random) -> random.Random:
    """Return a generator that is seeded by another, whose numbers may each be a system call."""
    return random.Random(source.getrandbits(64))  # noqa: S311 (nothing secret is made of it)


class Runtime(NamedTuple):
    """Interfaces to the operating system, or to a simulation, of a client or broker."""

    clock: Clock
    random: random.Random
    tasks: Tasks
    net: Net
    files: Files
