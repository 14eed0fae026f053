"""Threads that take requests from the channel and handle them."""

import logging
from collections.abc import Callable

from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.common.runtime import Task, Tasks

_log = logging.getLogger(__name__)

_POLL_MS = 300.0


class KafkaRequestHandler:
    """One handler (Kafka: KafkaRequestHandler)."""

    def __init__(self, channel: RequestChannel, handle: Callable[[Request], None]) -> None:
        self._channel = channel
        self._handle = handle
        self._running = True

    def run_once(self) -> bool:
        """Handle the next request, if one comes soon; return whether to go on."""
        request = self._channel.receive_request(_POLL_MS)
        if request is not None:
            self._handle(request)
        return self._running

    def stop(self) -> None:
        """End after the request in hand."""
        self._running = False


class KafkaRequestHandlerPool:
    """The handlers of one broker (Kafka: KafkaRequestHandlerPool)."""

    def __init__(
        self, channel: RequestChannel, handle: Callable[[Request], None], size: int
    ) -> None:
        self._channel = channel
        self._handlers = [KafkaRequestHandler(channel, handle) for _ in range(size)]
        self._tasks: list[Task] = []

    def start(self, tasks: Tasks) -> None:
        """Start a thread for each handler."""
        for number, handler in enumerate(self._handlers):
            name = f"kclient-request-handler-{number}"
            self._tasks.append(tasks.spawn(name, handler.run_once))

    def shutdown(self, timeout: float) -> None:
        """End every handler, waiting up to `timeout` seconds for each."""
        for handler in self._handlers:
            handler.stop()
        self._channel.close()
        for task in self._tasks:
            if not task.join(timeout):
                _log.warning("%s did not end within %s s", task.name, timeout)
