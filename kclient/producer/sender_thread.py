"""The thread that runs the sender, and its orderly end."""

from collections.abc import Callable

from kclient.common.interrupts import surely
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Task, Tasks
from kclient.producer.sender import Sender

EXIT_TIMEOUT = 5.0
"""Seconds that the end of the process waits for unsent records."""

_FORCED_TIMEOUT = 0.5


class SenderThread:
    """Runs a sender until it has nothing more to do (Kafka: KafkaProducer.ioThread).

    It does not know the producer it works for, so that a forgotten producer can be noticed. It runs
    from `start` on.
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
        self._beginning = tasks.lock()  # guards: the two below
        self._begun = False
        self._stillborn = False
        self._task: Task | None = None
        self._forget_exit: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the thread; where Ctrl-C ends that, none is left, nor a connection."""
        try:
            self._task = self._tasks.spawn(self._name, self._step)
            self._forget_exit = self._tasks.at_exit(self._at_exit)
        except BaseException:
            surely(self._undo_start)
            raise

    def _undo_start(self) -> None:
        """End a thread of which nobody knows whether it runs."""
        self._sender.force_close()
        with self._beginning:
            self._stillborn = True
            begun = self._begun
        if not begun:
            self._sender.step()  # which ends the sender in the thread's stead

    def _step(self) -> bool:
        if not self._begun:
            with self._beginning:
                if self._stillborn:
                    return False
                self._begun = True
        if self._process_id != self._tasks.process_id():
            return False  # a callback forked: the connections are the parent's
        if self._sender.step():
            return True
        if self._forget_exit is not None:
            self._forget_exit()
        return False

    def close(self, timeout: float | None) -> int:
        """Send what is queued and end; what is not done in `timeout` seconds fails.

        Returns:
            How many records had no outcome.
        """
        self._sender.initiate_close()
        if self._task is not None and not self._task.join(timeout):
            self._sender.force_close()
            self._task.join(_FORCED_TIMEOUT)
        return self._sender.lost_records()

    def cause_of_loss(self) -> str:
        """Return why records were not sent, for the end of a log line; empty if it is not known."""
        cause = self._sender.obstacle
        return "" if cause is None else f"; the last error was: {cause}"

    def abandon(self) -> None:
        """Send what is queued and end, without anybody waiting for it."""
        self._sender.initiate_close()

    def _at_exit(self) -> None:
        if self._process_id != self._tasks.process_id():
            return  # the child of a fork: the records are the parent's
        lost = self.close(EXIT_TIMEOUT)
        if lost:
            cause = self.cause_of_loss() or ": close() the producer first"
            self._log.warning("the process ended with %d records unsent%s", lost, cause)
