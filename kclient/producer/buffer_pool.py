"""Pool of the memory for batches that are not acknowledged yet."""

from collections import deque
from collections.abc import Callable

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import BufferExhaustedError, ClosedError
from kclient.common.metrics import Sensor
from kclient.common.runtime import Clock, Condition, Tasks
from kclient.common.waiting import ConditionWait, Steps
from kclient.producer.callback_runner import OWN_THREAD

_SMALLEST_BUFFER = 4_096

_CLOSED = "the producer was closed while a record waited for memory"


class _Waiter:
    """Memory that a caller needs, and has been granted so far."""

    __slots__ = ("buffer", "granted", "needed", "ready", "refused")

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self.granted = 0
        self.buffer: bytearray | None = None
        self.refused = False
        self.ready: Condition | None = None  # guards: nothing; it only carries the notification

    def is_met(self) -> bool:
        """Return whether the whole need was granted."""
        return self.granted >= self.needed


class BufferPool:
    """Allocates at most `total` bytes, in the order of requests (Kafka: BufferPool).

    Buffers of `poolable_size` bytes are kept and reused, and those of half the size, and so on to
    4 KiB: batches start small and double, so that many partitions with few records need little
    memory. For other sizes only the bytes are counted. Freed memory is granted to the caller that
    has waited longest, in pieces until its need is met, so that small requests do not starve a
    large one.

    A buffer may be deallocated only when neither a batch nor a socket reads it any more.
    """

    def __init__(
        self,
        total: int,
        poolable_size: int,
        clock: Clock,
        tasks: Tasks,
        record_wait: Callable[[float], None],
        exhausted: Sensor,
        on_wait: Callable[[], None],
    ) -> None:
        """Create an empty pool.

        Args:
            total: Bytes that may be allocated at a time (``buffer.memory``).
            poolable_size: Size of the largest buffers that are kept (``batch.size``).
            clock: Measures how long a caller waits.
            tasks: Creates the conditions that callers wait on.
            record_wait: Called with the nanoseconds that a caller waited.
            exhausted: Counts the callers whose wait timed out.
            on_wait: Called before a caller waits, when `queued` counts it; wakes the sender, which
                then sends the batches that hold the memory without linger.
        """
        self.total = total
        self.poolable_size = poolable_size
        self._clock = clock
        self._tasks = tasks
        self._record_wait = record_wait
        self._exhausted = exhausted
        self._on_wait = on_wait
        self._lock = tasks.lock()  # guards: everything below, and every waiter's fields
        self._free: dict[int, list[bytearray]] = {size: [] for size in _sizes(poolable_size)}
        self._kept = 0  # bytes in the free lists
        self._unpooled = total  # bytes that are neither allocated nor in the free lists
        self._waiters: deque[_Waiter] = deque()
        self._closed = False

    def size_for(self, needed: int) -> int:
        """Return the smallest size of kept buffers that suffices; `needed` if none does."""
        for size in self._free:
            if size >= needed:
                return size
        return needed

    def try_allocate(self, size: int) -> bytearray | None:
        """Return a buffer of `size` bytes, or None if the caller would have to wait for memory."""
        with self._lock:
            if self._waiters or self._closed:
                return None
            kept = self._free.get(size)
            if kept:
                self._kept -= size
                return kept.pop()
            if self._unpooled + self._kept < size:
                return None
            self._discard_kept(size)
            buffer = bytearray(size)
            if self._unpooled < size:  # a finalizer that ran meanwhile has sent a record
                return None
            self._unpooled -= size
            return buffer

    def allocate(self, size: int, max_wait_ms: float | None) -> Steps[bytearray]:
        """Return a buffer of `size` bytes, waiting at most `max_wait_ms` for memory to be freed.

        Args:
            size: Size of the buffer.
            max_wait_ms: None in the thread that frees memory, which must not wait.

        Raises:
            RecordTooLargeError: The size exceeds the pool's total.
            BufferExhaustedError: The memory was not freed in time.
            ClosedError: The pool was closed.
        """
        if size > self.total:
            raise RecordTooLargeError(
                f"a buffer of {size} bytes is needed, more than buffer.memory={self.total}"
            )
        waiter = _Waiter(size)
        with self._lock:
            if self._closed:
                raise ClosedError(_CLOSED)
            if not self._waiters:
                self._grant(waiter)  # a partial grant counts towards the need of the first waiter
            if not waiter.is_met():
                waiter.ready = self._tasks.condition()
                self._waiters.append(waiter)
        try:
            if waiter.ready is not None:
                yield from self._wait(waiter, waiter.ready, max_wait_ms)
            return bytearray(size) if waiter.buffer is None else waiter.buffer
        except BaseException:
            self._cancel(waiter)
            raise

    def deallocate(self, *buffers: bytearray) -> None:
        """Free buffers."""
        with self._lock:
            for buffer in buffers:
                self._put_back(buffer)
            served = self._serve() if self._waiters else None
        if served:
            _wake(served)

    def close(self) -> None:
        """Fail every later and every waiting caller; buffers may still be freed."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiters)
            self._waiters.clear()
            for waiter in waiting:
                waiter.refused = True
                self._return_grant(waiter)
            self._discard_kept(self.total)
        _wake(waiting)

    def available(self) -> int:
        """Return the bytes that are not allocated."""
        with self._lock:
            return self._unpooled + self._kept

    def queued(self) -> int:
        """Return the number of callers that wait for memory."""
        return len(self._waiters)

    def _put_back(self, buffer: bytearray) -> None:
        size = len(buffer)
        if size in self._free and not self._closed:
            self._free[size].append(buffer)
            self._kept += size
        else:
            self._unpooled += size

    def _discard_kept(self, needed: int) -> None:
        """Discard kept buffers until `needed` bytes are in none, or none is left."""
        for size, kept in self._free.items():
            while kept and self._unpooled < needed:
                kept.pop()
                self._kept -= size
                self._unpooled += size

    def _serve(self) -> list[_Waiter]:
        """Grant free memory in queue order; remove and return the waiters whose need is met."""
        served = []
        while self._waiters:
            first = self._waiters[0]
            self._grant(first)
            if not first.is_met():
                break
            served.append(self._waiters.popleft())
        return served

    def _grant(self, waiter: _Waiter) -> None:
        """Grant a caller a kept buffer, or free bytes up to its need."""
        kept = self._free.get(waiter.needed)
        if kept and not waiter.granted:
            waiter.buffer = kept.pop()
            self._kept -= waiter.needed
            waiter.granted = waiter.needed
            return
        missing = waiter.needed - waiter.granted
        self._discard_kept(missing)
        piece = min(missing, self._unpooled)
        self._unpooled -= piece
        waiter.granted += piece

    def _return_grant(self, waiter: _Waiter) -> None:
        if waiter.buffer is not None:
            self._put_back(waiter.buffer)
        else:
            self._unpooled += waiter.granted
        waiter.buffer, waiter.granted = None, 0

    def _wait(self, waiter: _Waiter, ready: Condition, max_wait_ms: float | None) -> Steps[None]:
        full = (
            f"buffer.memory={self.total} is full of records that the brokers have not acknowledged"
        )
        if max_wait_ms is None:
            self._exhausted.record()
            raise BufferExhaustedError(
                f"{waiter.needed} bytes are not free, and not waited for in {OWN_THREAD}: it frees "
                f"memory; {full}; send from another thread"
            )
        started_ms = self._clock.monotonic_ms()
        self._on_wait()
        try:
            yield ConditionWait(
                ready, lambda: waiter.refused or waiter.is_met(), started_ms + max_wait_ms
            )
        finally:
            self._record_wait((self._clock.monotonic_ms() - started_ms) * 1e6)
        with self._lock:
            if waiter.refused:
                raise ClosedError(_CLOSED)
            if waiter.is_met():
                return
        self._exhausted.record()
        raise BufferExhaustedError(
            f"{waiter.needed} bytes were not freed within {max_wait_ms:.0f} ms; {full}"
        )

    def _cancel(self, waiter: _Waiter) -> None:
        """Remove a waiter and free what was granted to it."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            self._return_grant(waiter)
            served = self._serve()
        _wake(served)


def _sizes(largest: int) -> list[int]:
    """Return the sizes of kept buffers, the smallest first."""
    sizes = []
    size = _SMALLEST_BUFFER
    while size < largest:
        sizes.append(size)
        size *= 2
    return [*sizes, largest]


def _wake(waiters: list[_Waiter]) -> None:
    for waiter in waiters:
        if waiter.ready is not None:
            with waiter.ready:
                waiter.ready.notify()
