"""Ctrl-C during calls of a client: it takes effect where a call waits, and at the end of a call.

While a call runs in the main thread, `deferred_sigint` replaces the program's handler of SIGINT.
The program's handler runs as soon as the call waits (for brokers, for memory, for another thread)
or runs code of the application such as a callback, otherwise when the call ends. So no exception
of the handler, as KeyboardInterrupt, leaves the client's state half changed. `Producer.send` into
an open batch defers nothing: compiled code runs no handler, and its Python twin changes the batch
without a call in between, so that the record is queued or not.

The handler is replaced for each call and not once, because other libraries look at it:
`asyncio.run` handles SIGINT only where Python's own handler is installed. Handlers that are not
Python functions, and those of other signals, are left alone.
"""

import os
import threading

# `signal.signal` converts its arguments to enumerations, which costs microseconds at each call.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from _thread import get_ident
from collections.abc import Callable
from types import FrameType, TracebackType

Handler = Callable[[int, FrameType | None], object]


class _MainThread:
    """State of the main thread, the only one that runs signal handlers.

    Attributes:
        id: Its id, also in the child of a fork.
        handler: The program's handler while it is replaced, otherwise None.
        is_waiting: Whether a signal takes effect at once.
        is_pending: Whether a signal waits to take effect.
        on_signal: The handler that replaces the program's.
    """

    __slots__ = ("handler", "id", "is_pending", "is_waiting", "on_signal")

    def __init__(self) -> None:
        self.id = threading.main_thread().ident
        os.register_at_fork(after_in_child=self._after_fork)
        self.handler: Handler | None = None
        self.is_waiting = False
        self.is_pending = False
        self.on_signal: Handler = self._on_signal  # bound once, to be compared by identity

    def _after_fork(self) -> None:
        self.id = get_ident()

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        self.is_pending = True
        if self.is_waiting:
            self.take_effect(frame)

    def take_effect(self, frame: FrameType | None = None) -> None:
        """Run the program's handler if a signal waits for it; if it raises, the wait has ended."""
        if self.is_pending and self.handler is not None:
            self.is_pending = self.is_waiting = False
            self.handler(SIGINT, frame)
            self.is_waiting = True


_main = _MainThread()


class deferred_sigint:  # noqa: N801 (used like `contextlib.suppress`, a function to its callers)
    """Context in which SIGINT takes effect at waits only; calls may be nested.

    Where a call is made by a callback of another call, its end is a place where the signal takes
    effect: the callback is code of the application.
    """

    __slots__ = ("_replaced", "_was_waiting")

    def __enter__(self) -> None:
        self._replaced: Handler | None = None
        self._was_waiting = False
        main = _main
        if get_ident() != main.id:
            return
        if main.handler is not None:
            self._was_waiting = main.is_waiting
            main.is_waiting = False
            return
        handler = getsignal(SIGINT)
        if not callable(handler):
            return
        main.is_pending = main.is_waiting = False
        main.handler = handler
        try:
            signal(SIGINT, main.on_signal)
        except ValueError:  # the main thread of a subinterpreter gets no signals
            main.handler = None
            return
        except BaseException:  # the program's handler, called a moment before it was replaced
            main.handler = None
            raise
        self._replaced = handler

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        main = _main
        handler = self._replaced
        if handler is not None:
            main.handler = None  # first: the next signal may raise once its handler is restored
            if getsignal(SIGINT) is main.on_signal:  # else code of the application installed one
                signal(SIGINT, handler)
            if main.is_pending:
                main.is_pending = False
                handler(SIGINT, None)
        elif self._was_waiting:
            main.is_waiting = True
            main.take_effect()


class sigint_takes_effect:  # noqa: N801 (as deferred_sigint)
    """Context of a wait, or of code of the application, within `deferred_sigint`."""

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        main = _main
        self._is_outermost = (
            main.handler is not None and not main.is_waiting and get_ident() == main.id
        )
        if self._is_outermost:
            main.is_waiting = True
            main.take_effect()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_outermost:
            _main.is_waiting = False
