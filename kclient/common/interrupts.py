"""Ctrl-C during calls of a client: it takes effect where a call waits, and at the end of a call.

While a call runs in the main thread, `deferred_sigint` replaces the program's handler of SIGINT.
The program's handler runs as soon as the call waits (for brokers, for memory, for another thread)
or runs code of the application such as a callback, otherwise when the call ends. So no exception
of the handler, as KeyboardInterrupt, leaves the client's state half changed.

The handler is replaced for each call and not once, because other libraries look at it:
`asyncio.run` handles SIGINT only where Python's own handler is installed. Handlers that are not
Python functions, and those of other signals, are left alone.
"""

import threading

# `signal.signal` converts its arguments to enumerations, which costs microseconds at each call.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from _thread import get_ident
from collections.abc import Callable
from types import FrameType, TracebackType

Handler = Callable[[int, FrameType | None], object]


class _Deferral:
    """State of the main thread, the only one that runs signal handlers.

    Attributes:
        handler: The program's handler while it is replaced, otherwise None.
        is_waiting: Whether a signal takes effect at once.
        is_pending: Whether a signal waits to take effect.
    """

    __slots__ = ("handler", "is_pending", "is_waiting")

    def __init__(self) -> None:
        self.handler: Handler | None = None
        self.is_waiting = False
        self.is_pending = False

    def on_signal(self, _number: int, frame: FrameType | None) -> None:
        """Handle SIGINT in the place of the program's handler."""
        if self.is_waiting:
            self._run_handler(frame)
        else:
            self.is_pending = True

    def replace(self) -> bool:
        """Replace the program's handler; return whether it was there to be replaced."""
        handler = getsignal(SIGINT)
        if not callable(handler):
            return False
        self.is_waiting = self.is_pending = False
        self.handler = handler
        try:
            signal(SIGINT, self.on_signal)
        except ValueError:  # the main thread of a subinterpreter gets no signals
            self.handler = None
            return False
        except BaseException:  # the program's handler, called a moment before it was replaced
            self.handler = None
            raise
        return True

    def restore(self) -> None:
        """Install the program's handler again, and run it if a signal came meanwhile."""
        handler = self.handler
        if getsignal(SIGINT) == self.on_signal:  # otherwise code of the application installed one
            signal(SIGINT, handler)
        self.handler = None
        if self.is_pending:
            self.is_pending = False
            _run(handler, None)

    def take_effect(self) -> None:
        """Run the program's handler if a signal waits for it."""
        if self.is_pending:
            self.is_pending = False
            self._run_handler(None)

    def _run_handler(self, frame: FrameType | None) -> None:
        _run(self.handler, frame)


def _run(handler: Handler | None, frame: FrameType | None) -> None:
    if handler is not None:
        handler(SIGINT, frame)


_deferral = _Deferral()


class deferred_sigint:  # noqa: N801 (a context manager, named like a function)
    """Context in which SIGINT takes effect at waits only; calls may be nested.

    Where a call is made by a callback of another call, its end is a place where the signal takes
    effect: the callback is code of the application.
    """

    __slots__ = ("_began", "_was_waiting")

    def __enter__(self) -> None:
        self._began = False
        self._was_waiting: bool | None = None
        if get_ident() != threading.main_thread().ident:
            return
        if _deferral.handler is None:
            self._began = _deferral.replace()
        else:
            self._was_waiting = _deferral.is_waiting
            _deferral.is_waiting = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._began:
            _deferral.restore()
        elif self._was_waiting:
            _deferral.is_waiting = True
            _deferral.take_effect()


class sigint_takes_effect:  # noqa: N801 (a context manager, named like a function)
    """Context of a wait, or of code of the application, within `deferred_sigint`."""

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        self._is_outermost = (
            _deferral.handler is not None
            and not _deferral.is_waiting
            and get_ident() == threading.main_thread().ident
        )
        if self._is_outermost:
            _deferral.is_waiting = True
            try:
                _deferral.take_effect()
            except BaseException:  # __exit__ is not called
                _deferral.is_waiting = False
                raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_outermost:
            _deferral.is_waiting = False


def run_uninterrupted(step: Callable[[], None]) -> None:
    """Run a step; if Ctrl-C interrupts it, run it again before the exception is raised."""
    try:
        step()
    except BaseException:
        step()
        raise
