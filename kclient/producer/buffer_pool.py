"""The memory that unsent records may take, and the buffers it is handed out in."""

from collections import deque

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import BufferExhaustedError, ClosedError
from kclient.common.metrics import Sensor
from kclient.common.runtime import Clock, Tasks

_CLOSED = "the producer was closed while a record waited for memory"


class _Waiter:
    """A caller in line for memory."""

    __slots__ = ("buffer", "granted", "needed", "ready", "refused")

    def __init__(self, needed: int, tasks: Tasks) -> None:
        self.needed = needed
        self.granted = 0
        self.buffer: bytearray | None = None
        self.refused = False
        self.ready = tasks.condition()  # guards: nothing of its own; it only carries the wake-up


class BufferPool:
    """Hands out at most `total` bytes, first come first served (Kafka: BufferPool).

    Buffers of exactly `poolable_size` bytes are kept and handed out again; other sizes only pass
    through the account. Freed memory goes to the caller who has waited longest, a piece at a time
    until its need is met, so that a large request is not starved by small ones.

    The caller of `deallocate` vouches that nobody reads the buffer any more: neither a batch nor
    a socket.
    """

    def __init__(
        self,
        total: int,
        poolable_size: int,
        clock: Clock,
        tasks: Tasks,
        wait_time: Sensor,
        exhausted: Sensor,
    ) -> None:
        """Create an empty pool.

        Args:
            total: Bytes that may be out at a time (``buffer.memory``).
            poolable_size: Size of the buffers worth keeping (``batch.size``).
            clock: Tells how long a caller has waited.
            tasks: Makes the conditions callers wait on.
            wait_time: Takes the nanoseconds each caller had to wait.
            exhausted: Counts the callers who waited in vain.
        """
        self.total = total
        self.poolable_size = poolable_size
        self._clock = clock
        self._tasks = tasks
        self._wait_time = wait_time
        self._exhausted = exhausted
        self._lock = tasks.lock()  # guards: everything below, and every waiter's fields
        self._free: list[bytearray] = []
        self._unpooled = total  # bytes that are neither handed out nor in the free list
        self._waiters: deque[_Waiter] = deque()
        self._closed = False

    def allocate(self, size: int, max_wait_ms: float) -> bytearray:
        """Return a buffer of `size` bytes, waiting at most `max_wait_ms` for others to free memory.

        Raises:
            RecordTooLargeError: The pool could never hold that much.
            BufferExhaustedError: The wait was in vain.
            ClosedError: The pool was closed.
        """
        if size > self.total:
            raise RecordTooLargeError(
                f"a buffer of {size} bytes is needed, more than buffer.memory={self.total}"
            )
        with self._lock:
            if self._closed:
                raise ClosedError(_CLOSED)
            waiter = None
            if self._waiters:
                waiter = self._line_up(size)
            elif size == self.poolable_size and self._free:
                return self._free.pop()
            elif not self._take(size):
                waiter = self._line_up(size)
        if waiter is not None:
            kept = self._wait(waiter, max_wait_ms)
            if kept is not None:
                return kept
        return self._new_buffer(size)

    def deallocate(self, buffer: bytearray) -> None:
        """Take back a buffer that nobody reads any more."""
        with self._lock:
            if len(buffer) == self.poolable_size and not self._closed:
                self._free.append(buffer)
            else:
                self._unpooled += len(buffer)
            served = self._serve()
        _wake(served)

    def close(self) -> None:
        """Refuse every later and every waiting caller; buffers may still be given back."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiters)
            self._waiters.clear()
            for waiter in waiting:
                waiter.refused = True
                self._give_back(waiter)
            self._unpooled += sum(map(len, self._free))
            self._free.clear()
        _wake(waiting)

    def available(self) -> int:
        """Return the bytes that are not handed out."""
        with self._lock:
            return self._unpooled + len(self._free) * self.poolable_size

    def queued(self) -> int:
        """Return how many callers wait for memory."""
        return len(self._waiters)

    def _line_up(self, size: int) -> _Waiter:
        waiter = _Waiter(size, self._tasks)
        self._waiters.append(waiter)
        self._serve()  # what is free already counts towards the need of the first in line
        return waiter

    def _take(self, size: int) -> bool:
        """Take `size` bytes from the account, dissolving kept buffers where needed."""
        while self._unpooled < size and self._free:
            self._unpooled += len(self._free.pop())
        if self._unpooled < size:
            return False
        self._unpooled -= size
        return True

    def _serve(self) -> list[_Waiter]:
        """Give free memory to those in line; return whose need is met."""
        served: list[_Waiter] = []
        while self._waiters:
            first = self._waiters[0]
            if first.needed == self.poolable_size and self._free and not first.granted:
                first.buffer = self._free.pop()
                first.granted = first.needed
            else:
                self._grant(first)
            if first.granted < first.needed:
                break
            served.append(self._waiters.popleft())
        return served

    def _grant(self, waiter: _Waiter) -> None:
        missing = waiter.needed - waiter.granted
        while self._unpooled < missing and self._free:
            self._unpooled += len(self._free.pop())
        piece = min(missing, self._unpooled)
        self._unpooled -= piece
        waiter.granted += piece

    def _give_back(self, waiter: _Waiter) -> None:
        if waiter.buffer is not None:
            self._free.append(waiter.buffer)
            waiter.buffer = None
        else:
            self._unpooled += waiter.granted
        waiter.granted = 0

    def _wait(self, waiter: _Waiter, max_wait_ms: float) -> bytearray | None:
        started_ms = self._clock.monotonic_ms()
        met = False
        try:
            with waiter.ready:
                waiter.ready.wait_for(lambda: self._settled(waiter), max_wait_ms / 1000.0)
            met = self._met(waiter)
        finally:
            if not met:  # timed out, refused, or interrupted by the user
                self._withdraw(waiter)
            self._wait_time.record((self._clock.monotonic_ms() - started_ms) * 1e6)
        if met:
            return waiter.buffer
        if waiter.refused:
            raise ClosedError(_CLOSED)
        self._exhausted.record()
        raise BufferExhaustedError(
            f"no memory for {waiter.needed} bytes came free within {max_wait_ms:.0f} ms; "
            f"buffer.memory={self.total} is full of records that the brokers have not acknowledged"
        )

    def _settled(self, waiter: _Waiter) -> bool:
        return waiter.refused or waiter.granted >= waiter.needed

    def _met(self, waiter: _Waiter) -> bool:
        with self._lock:
            return not waiter.refused and waiter.granted >= waiter.needed

    def _withdraw(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            self._give_back(waiter)
            served = self._serve()
        _wake(served)

    def _new_buffer(self, size: int) -> bytearray:
        try:
            return bytearray(size)
        except MemoryError:
            with self._lock:
                self._unpooled += size
                served = self._serve()
            _wake(served)
            raise


def _wake(waiters: list[_Waiter]) -> None:
    for waiter in waiters:
        with waiter.ready:
            waiter.ready.notify()
