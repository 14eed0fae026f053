"""One direction of a proxied connection: bytes that wait for their time to go out."""

import math
from collections import deque
from dataclasses import dataclass

from kclient.common.runtime import StreamSocket
from kclient.testing.fault_rule import Delivery, Ending


@dataclass(slots=True)
class _Waiting:
    """Bytes that go out together, from `due_ms` on."""

    due_ms: float
    data: memoryview
    chunk: int
    gap_ms: float
    ending: Ending | None


class FaultPipe:
    """Writes in the order of arrival, each frame when it is due and as fast as it may.

    Attributes:
        backlog: Bytes that wait.
        is_blocked: Whether the socket takes no more at present.
    """

    def __init__(self) -> None:
        self.backlog = 0
        self.is_blocked = False
        self._queue: deque[_Waiting] = deque()

    def put(self, delivery: Delivery, now_ms: float) -> None:
        """Queue a frame as the rules have shaped it."""
        data = memoryview(b"".join(delivery.pieces))
        due_ms = now_ms + delivery.delay_ms
        self._queue.append(_Waiting(due_ms, data, delivery.chunk, delivery.gap_ms, delivery.ending))
        self.backlog += len(data)

    def put_end(self, ending: Ending, now_ms: float) -> None:
        """Let the connection end after what waits."""
        self._queue.append(_Waiting(now_ms, memoryview(b""), 0, 0.0, ending))

    def write(self, target: StreamSocket, now_ms: float) -> Ending | None:
        """Write what is due.

        Returns:
            How the connection is to end, once it is time for that.

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
        """Return in how many milliseconds there is something to write."""
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
        """Let what comes next keep the pace of what went before."""
        if self._queue:
            self._queue[0].due_ms = max(self._queue[0].due_ms, due_ms)
