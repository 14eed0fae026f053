"""Signals during calls of a client: they take effect where a call waits, and at its end.

While a call runs in the main thread, `deferred_signals` replaces the program's handlers of SIGINT
(Ctrl-C) and SIGTERM, if they are Python functions. Such a handler runs as soon as the call waits
(for brokers, for memory, for another thread) or runs code of the application such as a callback,
otherwise when the call ends. So no exception of a handler, as KeyboardInterrupt or SystemExit,
leaves the client's state half changed. `Producer.send` into an open batch defers nothing: compiled
code runs no handler, and its Python twin changes the batch without a call in between, so that the
record is queued or not.

The handlers are replaced for each call and not once, because other libraries look at them:
`asyncio.run` handles SIGINT only where Python's own handler is installed. Other handlers and other
signals are left alone.
"""

# `signal.signal` converts its arguments to enumerations, which costs microseconds at each call.
import _signal  # type: ignore[import-not-found]
import os
import threading
from _signal import SIGINT, SIGTERM, getsignal, signal
from _thread import get_ident
from collections.abc import Callable
from types import FrameType, TracebackType

Handler = Callable[[int, FrameType | None], object]

_UNDEFERRED: list[int] = [
    getattr(_signal, name)
    for name in ("SIGALRM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGBREAK")
    if hasattr(_signal, name)
]


class _MainThread:
    """State of the main thread, the only one that runs signal handlers.

    Attributes:
        id: Its id, also in the child of a fork.
        replaced: The program's handlers, by signal, that were replaced last.
        is_deferring: Whether a call is in progress.
        is_waiting: Whether a signal takes effect at once although a call is in progress.
        pending: Signals that wait to take effect, each once.
        raised: Exception of a handler that ended a wait of the present call.
        on_signal: The handler that replaces the program's.
    """

    __slots__ = (
        "_interrupt",
        "_terminate",
        "id",
        "is_deferring",
        "is_waiting",
        "on_signal",
        "pending",
        "raised",
        "replaced",
    )

    def __init__(self) -> None:
        self.id = threading.main_thread().ident
        os.register_at_fork(after_in_child=self._after_fork)
        self.replaced: dict[int, Handler] = {}
        # The handlers that `replaced` was made of: they are the same in nearly every call.
        self._interrupt: object = None
        self._terminate: object = None
        self.is_deferring = False
        self.is_waiting = False
        self.pending: list[int] = []
        self.raised: BaseException | None = None
        self.on_signal: Handler = self._on_signal  # bound once, to be compared by identity

    def _after_fork(self) -> None:
        self.id = get_ident()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.is_deferring:  # an exception of another signal prevented `restore`
            self.replaced[number](number, frame)
            return
        if number not in self.pending:
            self.pending.append(number)
        if self.is_waiting:
            self.take_effect(frame)

    def take_effect(self, frame: FrameType | None = None) -> None:
        """Run the handlers of pending signals in a wait; if one raises, the wait has ended."""
        while self.pending and self.is_deferring:
            self.is_waiting = False  # first: a signal that comes now becomes pending
            number = self.pending.pop(0)
            try:
                self.replaced[number](number, frame)
            except BaseException as error:
                self.raised = error
                raise
            self.is_waiting = True

    def replace(self) -> bool:
        """Replace the program's handlers; return whether there are any."""
        interrupt, terminate = getsignal(SIGINT), getsignal(SIGTERM)
        if interrupt is not self._interrupt or terminate is not self._terminate:
            self._note_handlers(interrupt, terminate)
        handlers = self.replaced
        if not handlers:
            return False
        self.is_waiting, self.is_deferring = False, True
        try:
            for number in handlers:
                signal(number, self.on_signal)
        except ValueError:  # the main thread of a subinterpreter gets no signals
            self.is_deferring = False
            return False
        except BaseException:  # a handler of the program, called a moment before it was replaced
            self.restore()
            raise
        return True

    def _note_handlers(self, interrupt: object, terminate: object) -> None:
        self._interrupt, self._terminate = interrupt, terminate
        found = {SIGINT: interrupt, SIGTERM: terminate}
        self.replaced = {
            number: self.replaced[number] if handler is self.on_signal else handler
            for number, handler in found.items()
            if callable(handler)
        }

    def restore(self) -> None:
        """Install the program's handlers again, and run those of the pending signals."""
        self.is_deferring = False  # first: a handler may raise as soon as it is installed
        self.raised = None
        try:
            for number, handler in self.replaced.items():
                if getsignal(number) is self.on_signal:  # else the application installed one
                    signal(number, handler)
        finally:
            if self.pending:
                self._run_pending()

    def _run_pending(self) -> None:
        number = self.pending.pop(0)
        try:
            self.replaced[number](number, None)
        finally:
            if self.pending:
                self._run_pending()


calls = _MainThread()


class deferred_signals:  # noqa: N801 (used like `contextlib.suppress`, a function to its callers)
    """Context in which SIGINT and SIGTERM take effect at waits only; calls may be nested.

    Where a call is made by a callback of another call, its end is a place where signals take
    effect: the callback is code of the application.
    """

    __slots__ = ("_began", "_was_waiting")

    def __enter__(self) -> None:
        self._began = self._was_waiting = False
        if get_ident() != calls.id:
            return
        if calls.is_deferring:
            self._was_waiting = calls.is_waiting
            calls.is_waiting = False
        else:
            self._began = calls.replace()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._began:
            calls.restore()
        elif self._was_waiting:
            calls.is_waiting = True
            calls.take_effect()


def ends_by_signal(error: BaseException) -> bool:
    """Return whether the handler of a signal raised an error, which ended a wait."""
    return error is calls.raised and get_ident() == calls.id


def has_undeferred_handlers() -> bool:
    """Return whether a signal that is not deferred may raise an exception in the caller."""
    return get_ident() == calls.id and any(map(callable, map(getsignal, _UNDEFERRED)))


class signals_take_effect:  # noqa: N801 (as deferred_signals)
    """Context of a wait, or of code of the application, within `deferred_signals`."""

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        main = calls
        self._is_outermost = main.is_deferring and not main.is_waiting and get_ident() == main.id
        if self._is_outermost:
            main.is_waiting = True
            if main.pending:
                main.take_effect()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_outermost:
            calls.is_waiting = False
