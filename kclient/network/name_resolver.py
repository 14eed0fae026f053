"""Name look-ups in threads of their own, since the system's resolver blocks without a deadline."""

import threading
from collections import deque
from collections.abc import Callable

from kclient.common.runtime import Address

Resolve = Callable[[str, int], list[Address]]

MAX_THREADS = 64
"""Threads of one resolver; further look-ups are queued.

A look-up that hangs holds its thread, so that the limit is far above the number of names that
usually hang at the same time. Callers have deadlines of their own: a client's look-up counts
against ``socket.connection.setup.timeout.ms``.
"""


class NameLookUp:
    """Name look-up, in progress or ended (a `kclient.common.runtime.LookUp`)."""

    __slots__ = ("_outcome", "host", "on_done", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.on_done: list[Callable[[], None]] = []
        self._outcome: list[Address] | OSError | None = None

    @classmethod
    def ended(cls, host: str, port: int, outcome: list[Address] | OSError) -> "NameLookUp":
        """Return a look-up that has ended."""
        look_up = cls(host, port)
        look_up.end(outcome)
        return look_up

    def end(self, outcome: list[Address] | OSError) -> None:
        """Set the outcome."""
        self._outcome = outcome

    def done(self) -> bool:
        """Return whether there is an outcome."""
        return self._outcome is not None

    def addresses(self) -> list[Address]:
        """Return the addresses of the name, in the resolver's order.

        Raises:
            OSError: The name has no address, or the look-up has not ended.
        """
        if self._outcome is None:
            raise OSError(f"the look-up of {self.host} has not ended")
        if isinstance(self._outcome, OSError):
            raise self._outcome
        return self._outcome


class NameResolver:
    """Looks names up in background threads.

    Threads start when a look-up is queued and end when the queue is empty. A name with a look-up in
    progress is not looked up a second time, so that a look-up that hangs holds one thread, however
    often it is retried. No `close` waits for these threads, nor does the end of the process.
    """

    def __init__(self, resolve: Resolve, max_threads: int = MAX_THREADS) -> None:
        """Take the blocking function that looks a name up."""
        self._resolve = resolve
        self._max_threads = max_threads
        # guards: everything below
        self._lock = threading.Lock()
        self._in_progress: dict[tuple[str, int], NameLookUp] = {}
        self._queue: deque[NameLookUp] = deque()
        self._threads = 0

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> NameLookUp:
        """Start to look a name up, or join the look-up in progress.

        Raises:
            OSError: No thread can be started.
        """
        with self._lock:
            look_up = self._in_progress.get((host, port))
            if look_up is not None:
                if on_done not in look_up.on_done:  # a client retries while the look-up hangs
                    look_up.on_done.append(on_done)
                return look_up
            look_up = self._in_progress[host, port] = NameLookUp(host, port)
            look_up.on_done.append(on_done)
            self._queue.append(look_up)
            needs_thread = self._threads < self._max_threads
            self._threads += needs_thread
        if needs_thread:
            self._start_thread(look_up)
        return look_up

    def _start_thread(self, look_up: NameLookUp) -> None:
        thread = threading.Thread(target=self._run, name="kclient-resolver", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            with self._lock:
                self._threads -= 1
                self._in_progress.pop((look_up.host, look_up.port), None)
                if look_up in self._queue:
                    self._queue.remove(look_up)
            raise OSError(f"no thread for the look-up of {look_up.host}: {error}") from error

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                look_up = self._queue.popleft()
            outcome = self._outcome(look_up)
            with self._lock:
                self._in_progress.pop((look_up.host, look_up.port), None)
                look_up.end(outcome)
            for on_done in look_up.on_done:
                on_done()

    def _outcome(self, look_up: NameLookUp) -> list[Address] | OSError:
        try:
            return self._resolve(look_up.host, look_up.port)
        except OSError as error:
            return error
