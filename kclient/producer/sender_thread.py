"""The thread that runs the sender, and its orderly end."""

import logging

from kclient.common.runtime import Tasks
from kclient.producer.sender import Sender

_log = logging.getLogger(__name__)

EXIT_TIMEOUT = 5.0
"""Seconds that the end of the process waits for unsent records."""

_FORCED_TIMEOUT = 0.5


class SenderThread:
    """Runs a sender until it has nothing more to do (Kafka: KafkaProducer.ioThread).

    It does not know the producer it works for, so that a forgotten producer can be noticed.
    """

    def __init__(self, name: str, sender: Sender, tasks: Tasks) -> None:
        self._sender = sender
        self._tasks = tasks
        self._process_id = tasks.process_id()
        self._forget_exit = tasks.at_exit(self._at_exit)
        self._task = tasks.spawn(name, self._step)

    def _step(self) -> bool:
        if self._process_id != self._tasks.process_id():
            return False  # a callback forked: the connections are the parent's
        if self._sender.step():
            return True
        self._forget_exit()
        return False

    def is_current(self) -> bool:
        """Return whether the caller is this thread."""
        return self._task.is_current()

    def close(self, timeout: float | None) -> int:
        """Send what is queued and end; what is not done in `timeout` seconds fails.

        Returns:
            How many records had no outcome.
        """
        self._sender.initiate_close()
        if not self._task.join(timeout):
            self._sender.force_close()
            self._task.join(_FORCED_TIMEOUT)
        return self._sender.lost_records()

    def abandon(self) -> None:
        """Send what is queued and end, without anybody waiting for it."""
        self._sender.initiate_close()

    def _at_exit(self) -> None:
        if self._process_id != self._tasks.process_id():
            return  # the child of a fork: the records are the parent's
        lost = self.close(EXIT_TIMEOUT)
        if lost:
            _log.warning(
                "the process ended with %d records unsent: close() the producer first", lost
            )
