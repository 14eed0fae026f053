"""Thread of the sender, and its close."""

from collections.abc import Callable

from kclient.common.interrupts import run_uninterrupted
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Task, Tasks
from kclient.producer.sender import Sender

EXIT_TIMEOUT = 5.0
"""Seconds that the exit of the process waits for unsent records."""

_FORCED_TIMEOUT = 0.5


class SenderThread:
    """Runs a sender until it ends (Kafka: KafkaProducer.ioThread).

    It has no reference to its producer, so that an unreferenced producer is collected.
    """

    def __init__(
        self,
        name: str,
        sender: Sender,
        tasks: Tasks,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._sender = sender
        self._tasks = tasks
        self._name = name
        self._process_id = tasks.process_id()
        self._start_lock = tasks.lock()  # guards: the two below
        self._started = False
        self._cancelled = False
        self._task: Task | None = None
        self._unregister_exit: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the thread; after Ctrl-C neither a thread nor a connection is left."""
        try:
            self._task = self._tasks.spawn(self._name, self._step)
            self._unregister_exit = self._tasks.at_exit(self._at_exit)
        except BaseException:
            run_uninterrupted(self._undo_start)
            raise

    def _undo_start(self) -> None:
        """End a thread that may or may not have started."""
        self._sender.force_close()
        with self._start_lock:
            self._cancelled = True
            started = self._started
        if not started:
            self._sender.step()  # ends the sender

    def _step(self) -> bool:
        if not self._started:
            with self._start_lock:
                if self._cancelled:
                    return False
                self._started = True
        if self._process_id != self._tasks.process_id():
            return False  # a callback forked: the connections are the parent's
        if self._sender.step():
            return True
        if self._unregister_exit is not None:
            self._unregister_exit()
        return False

    def close(self, timeout: float | None) -> int:
        """Send queued records and end; those without an outcome after `timeout` seconds fail.

        Returns:
            The number of records without an outcome.
        """
        self._sender.initiate_close()
        if self._task is not None and not self._task.join(timeout):
            self._sender.force_close()
            self._task.join(_FORCED_TIMEOUT)
        return self._sender.lost_records()

    def failure_cause(self) -> str:
        """Return the last error, as the end of a log line; empty if there is none."""
        cause = self._sender.blocking_error
        return "" if cause is None else f"; the last error was: {cause}"

    def initiate_close(self) -> None:
        """Send queued records and end, without waiting."""
        self._sender.initiate_close()

    def _at_exit(self) -> None:
        if self._process_id != self._tasks.process_id():
            return  # the child of a fork: the records are the parent's
        lost = self.close(EXIT_TIMEOUT)
        if lost:
            cause = self.failure_cause() or ": close() the producer first"
            self._log.warning("the process ended with %d records unsent%s", lost, cause)
