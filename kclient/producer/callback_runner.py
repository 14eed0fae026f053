"""Runner of delivery callbacks; detects callers in the thread that runs the sender."""

from collections.abc import Callable, Iterable

from kclient.common.errors import ForkedClientError, IllegalStateError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.metrics import Sensor
from kclient.common.runtime import EndOfTaskError, Task, Tasks
from kclient.common.waiting import Steps

OWN_THREAD = "the producer's own thread, which runs delivery callbacks, log handlers and finalizers"


class CallbackRunner:
    """Runs callbacks in the thread that runs the sender; exceptions are logged and counted.

    That is the sender's own thread, or one that waits for an outcome (`SharedTask`). Callbacks run
    with no lock held but the turn of the sender. Other code of the application runs in that thread
    too: handlers of log lines, and finalizers. There, calls that would wait for the sender raise an
    error instead of waiting for themselves.

    Attributes:
        sender: Task of the sender, once it runs.
    """

    def __init__(
        self, tasks: Tasks, errors: Sensor, log_context: LogContext = NO_LOG_CONTEXT
    ) -> None:
        self._log = log_context.logger(__name__)
        self._tasks = tasks
        self._errors = errors
        self._created_in = tasks.process_id()
        self.sender: Task | None = None
        self._caller: int | None = None  # written by the sender only, and equal for the sender only

    def as_sender(self, steps: Steps[None]) -> Steps[None]:
        """Run the sender's loop: until its end, no call may wait in its thread."""
        self._caller = self._tasks.caller_id()
        try:
            yield from steps
        finally:
            self._caller = None

    def run_all(self, callbacks: Iterable[Callable[[], object]]) -> None:
        """Call each; an exception is logged and counted, and does not propagate."""
        outer = self._caller
        self._caller = self._tasks.caller_id()
        try:
            for callback in callbacks:
                try:
                    callback()
                except EndOfTaskError:
                    raise
                except BaseException:  # noqa: BLE001 (sys.exit() in one must not stop the others)
                    self._log.exception("a delivery callback raised; the delivery is not affected")
                    self._errors.record()
        finally:
            self._caller = outer

    def inside(self) -> bool:
        """Return whether the caller is in the thread that runs the sender."""
        sender = self.sender
        if sender is not None and sender.is_current():
            return True
        return self._caller is not None and self._caller == self._tasks.caller_id()

    def check_not_forked(self, call: str) -> None:
        """Reject a call that waits for the sender in a forked process.

        Raises:
            ForkedClientError: The caller is the child of a fork; the sender runs in the parent.
        """
        if self._tasks.process_id() != self._created_in:
            raise ForkedClientError(
                f"{call}: the record was sent by process {self._created_in}, this is "
                f"{self._tasks.process_id()}; wait in the process that sent it"
            )

    def check_may_wait(self, call: str) -> None:
        """Reject a call that waits for the sender where that is impossible.

        Raises:
            ForkedClientError: As `check_not_forked`.
            IllegalStateError: As `check_not_inside`.
        """
        if self._tasks.process_id() != self._created_in or self.inside():
            self.check_not_forked(call)
            self.check_not_inside(call)

    def check_not_inside(self, call: str) -> None:
        """Reject a call that waits for the sender in the sender's thread.

        Raises:
            IllegalStateError: The caller is in the sender's thread.
        """
        if self.inside():
            raise IllegalStateError(
                f"{call}: got called in {OWN_THREAD}, expected another thread; "
                "it would wait for itself"
            )
