"""Request handler threads, which take requests from the request channel."""

import logging
from collections.abc import Callable

from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.common.runtime import Task, Tasks

_log = logging.getLogger(__name__)

_POLL_MS = 300.0


class KafkaRequestHandler:
    """Request handler of one thread (Kafka: KafkaRequestHandler)."""

    def __init__(self, channel: RequestChannel, handle: Callable[[Request], object]) -> None:
        self._channel = channel
        self._handle = handle
        self._running = True

    def run_once(self) -> bool:
        """Handle the next request, if one arrives in time; return whether to continue."""
        self.step(_POLL_MS)
        return self._running

    def step(self, timeout_ms: float) -> bool:
        """Handle the next request, if one arrives in time; return whether one did."""
        request = self._channel.receive_request(timeout_ms)
        if request is None:
            return False
        try:
            self._handle(request)
        except Exception:  # noqa: BLE001 (otherwise the thread would end)
            _log.exception("%r could not be handled", request)
            if not request.is_completed:
                request.close_connection()
        return True

    def stop(self) -> None:
        """End after the present request."""
        self._running = False


class KafkaRequestHandlerPool:
    """Request handlers of one broker (Kafka: KafkaRequestHandlerPool)."""

    def __init__(
        self,
        channel: RequestChannel,
        handle: Callable[[Request], object],
        size: int,
        name: str = "kclient-request-handler",
    ) -> None:
        self._name = name
        self._channel = channel
        self._handlers = [KafkaRequestHandler(channel, handle) for _ in range(size)]
        self._tasks: list[Task] = []

    def start(self, tasks: Tasks) -> None:
        """Start a thread for each handler."""
        for number, handler in enumerate(self._handlers):
            self._tasks.append(tasks.spawn(f"{self._name}-{number}", handler.run_once))

    def step(self) -> bool:
        """Handle one queued request without waiting, for a broker without threads.

        Returns:
            Whether there was one.
        """
        return any(handler.step(0.0) for handler in self._handlers)

    def shutdown(self, timeout: float) -> None:
        """Stop the handlers; wait up to `timeout` seconds for each."""
        for handler in self._handlers:
            handler.stop()
        self._channel.close()
        for task in self._tasks:
            if not task.join(timeout):
                _log.warning("%s did not end within %s s", task.name, timeout)
