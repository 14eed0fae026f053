"""One direction of a proxied connection: bytes that wait for the time to be written."""

import math
from collections import deque
from dataclasses import dataclass

from kclient.common.runtime import StreamSocket
from kclient.testing.fault_rule import Delivery, Ending


@dataclass(slots=True)
class _Waiting:
    """Bytes that are written together, from `due_ms` on."""

    due_ms: float
    data: memoryview
    chunk: int
    gap_ms: float
    ending: Ending | None


class FaultPipe:
    """Writes frames in the order of arrival, each when it is due and at its rate.

    Attributes:
        backlog: Number of bytes that wait.
        is_blocked: Whether the socket's buffer is full.
    """

    def __init__(self) -> None:
        self.backlog = 0
        self.is_blocked = False
        self._queue: deque[_Waiting] = deque()

    def put(self, delivery: Delivery, now_ms: float) -> None:
        """Queue a frame that the rules have shaped."""
        data = memoryview(b"".join(delivery.pieces))
        due_ms = now_ms + delivery.delay_ms
        self._queue.append(_Waiting(due_ms, data, delivery.chunk, delivery.gap_ms, delivery.ending))
        self.backlog += len(data)

    def put_end(self, ending: Ending, now_ms: float) -> None:
        """End the connection after the bytes that wait."""
        self._queue.append(_Waiting(now_ms, memoryview(b""), 0, 0.0, ending))

    def write(self, target: StreamSocket, now_ms: float) -> Ending | None:
        """Write what is due.

        Returns:
            How to end the connection, once that is due; otherwise None.

        Raises:
            OSError: The connection broke.
        """
        self.is_blocked = False
        while self._queue and self._queue[0].due_ms <= now_ms and not self.is_blocked:
            waiting = self._queue[0]
            if waiting.data:
                self._write_some(waiting, target, now_ms)
            if not waiting.data:
                self._queue.popleft()
                if waiting.ending is not None:
                    return waiting.ending
            if waiting.chunk:
                self._keep_back(max(waiting.due_ms, now_ms))
                break
        return None

    def wait_ms(self, now_ms: float) -> float:
        """Return the milliseconds until something is due."""
        if not self._queue or self.is_blocked:
            return math.inf
        return max(0.0, self._queue[0].due_ms - now_ms)

    def _write_some(self, waiting: _Waiting, target: StreamSocket, now_ms: float) -> None:
        chunk = waiting.data[: waiting.chunk] if waiting.chunk else waiting.data
        try:
            taken = target.sendmsg([chunk])
        except BlockingIOError:
            self.is_blocked = True
            return
        waiting.data = waiting.data[taken:]
        waiting.due_ms = max(waiting.due_ms, now_ms) + waiting.gap_ms
        self.backlog -= taken

    def _keep_back(self, due_ms: float) -> None:
        """Delay later frames to the rate of those before."""
        if self._queue:
            self._queue[0].due_ms = max(self._queue[0].due_ms, due_ms)
