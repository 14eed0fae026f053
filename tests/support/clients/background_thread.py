"""A thread that runs during a ``with`` block."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class BackgroundThread(ABC):
    """Calls `run()` in a thread from the start of a ``with`` block to its end.

    An exception of `run()` is raised by `check()`, or otherwise at the end of the block.

    Attributes:
        name: Name of the thread.
        stopping: Set when `run()` has to return.
        failure: Exception of `run()`.
    """

    def __init__(self, name: str, calls: str, timeout: float = 60.0) -> None:
        """Prepares the thread.

        Args:
            name: Name of the thread.
            calls: Calls that `run()` may wait in, for the error of a thread that does not end.
            timeout: Seconds within which the thread ends once `stopping` is set.
        """
        self.name = name
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self._timeout = timeout
        self._not_ended = f"thread {name}: {calls} does not return within {timeout:g} s"
        self._reported = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Do the work, until `stopping` is set."""

    def ended(self, within: float = 0.0) -> bool:
        """Wait for the end of `run()` for up to these seconds; return whether it has ended."""
        self._thread.join(within)
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raise if `run()` has raised an exception."""
        if self.failure is not None:
            self._reported = True
            raise AssertionError(f"thread {self.name} ended: {self.failure!r}") from self.failure

    def stop(self) -> None:
        """Set `stopping` and wait for the end of the thread; raise if it does not end."""
        self.stopping.set()
        assert self.ended(self._timeout), self._not_ended

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if not self._reported:
            self.check()

    def _run(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 (check() raises it in the other thread)
            self.failure = error
