"""Name look-ups in threads of their own: the system's resolver blocks for as long as it likes."""

import threading
from collections import deque
from collections.abc import Callable

from kclient.common.runtime import Address

Resolve = Callable[[str, int], list[Address]]

MAX_THREADS = 8
"""Look-ups at a time; more wait for their turn."""


class NameLookUp:
    """A name look-up, under way or ended (a `kclient.common.runtime.LookUp`)."""

    __slots__ = ("_outcome", "host", "on_done", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.on_done: list[Callable[[], None]] = []
        self._outcome: list[Address] | OSError | None = None

    @classmethod
    def ended(cls, host: str, port: int, outcome: list[Address] | OSError) -> "NameLookUp":
        """Return a look-up that needed no waiting."""
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
        """Return every address of the name, in the resolver's order.

        Raises:
            OSError: The name has none, or the look-up has not ended.
        """
        if self._outcome is None:
            raise OSError(f"the look-up of {self.host} has not ended")
        if isinstance(self._outcome, OSError):
            raise self._outcome
        return self._outcome


class NameResolver:
    """Looks names up in the background.

    Threads start when there is something to look up and end when there is nothing more. A name
    that is looked up already is not looked up a second time, so that one whose look-up hangs holds
    one thread, however often it is retried. Nothing waits for these threads, neither a `close` nor
    the end of the process.
    """

    def __init__(self, resolve: Resolve, max_threads: int = MAX_THREADS) -> None:
        """Take the function that looks a name up, which blocks until it is done."""
        self._resolve = resolve
        self._max_threads = max_threads
        # guards: everything below
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, int], NameLookUp] = {}
        self._queue: deque[NameLookUp] = deque()
        self._threads = 0

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> NameLookUp:
        """Start looking a name up, or join a look-up that is under way.

        Raises:
            OSError: The system gives no thread.
        """
        with self._lock:
            look_up = self._under_way.get((host, port))
            if look_up is not None:
                if on_done not in look_up.on_done:  # a client that tries again, as long as it hangs
                    look_up.on_done.append(on_done)
                return look_up
            look_up = self._under_way[host, port] = NameLookUp(host, port)
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
        except BaseException as error:  # Ctrl-C included: the name must not stay under way
            with self._lock:
                self._threads -= 1
                self._under_way.pop((look_up.host, look_up.port), None)
                if look_up in self._queue:
                    self._queue.remove(look_up)
            if isinstance(error, RuntimeError):
                raise OSError(f"no thread for the look-up of {look_up.host}: {error}") from error
            raise

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                look_up = self._queue.popleft()
            outcome = self._outcome(look_up)
            with self._lock:
                self._under_way.pop((look_up.host, look_up.port), None)
                look_up.end(outcome)
            for on_done in look_up.on_done:
                on_done()

    def _outcome(self, look_up: NameLookUp) -> list[Address] | OSError:
        try:
            return self._resolve(look_up.host, look_up.port)
        except OSError as error:
            return error
