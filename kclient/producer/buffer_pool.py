"""The memory that unsent records may take, and the buffers it is handed out in."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import BufferExhaustedError, ClosedError
from kclient.common.metrics import Sensor
from kclient.common.runtime import Clock, Tasks

_CLOSED = "the producer was closed while a record waited for memory"


class WaitTime(Protocol):
    """Takes the nanoseconds that a caller had to wait."""

    def record(self, nanoseconds: float, /) -> None:
        """Note a wait."""
        ...


class _Claim:
    """What a caller is to get, and has got of it."""

    __slots__ = ("buffer", "granted", "needed", "ready", "refused")

    def __init__(self, needed: int, tasks: Tasks) -> None:
        self.needed = needed
        self.granted = 0
        self.buffer: bytearray | None = None
        self.refused = False
        self.ready = tasks.condition()  # guards: nothing of its own; it only carries the wake-up

    def is_met(self) -> bool:
        """Return whether all that is needed was granted."""
        return self.granted >= self.needed


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
        wait_time: WaitTime,
        exhausted: Sensor,
        on_wait: Callable[[], None],
    ) -> None:
        """Create an empty pool.

        Args:
            total: Bytes that may be out at a time (``buffer.memory``).
            poolable_size: Size of the buffers worth keeping (``batch.size``).
            clock: Tells how long a caller has waited.
            tasks: Makes the conditions callers wait on.
            wait_time: Takes the nanoseconds each caller had to wait.
            exhausted: Counts the callers whose wait timed out.
            on_wait: Called before a caller waits, when `queued` counts it; wakes the sender, so
                that it sends the batches that hold the memory without lingering.
        """
        self.total = total
        self.poolable_size = poolable_size
        self._clock = clock
        self._tasks = tasks
        self._wait_time = wait_time
        self._exhausted = exhausted
        self._on_wait = on_wait
        self._lock = tasks.lock()  # guards: everything below, and every waiter's fields
        self._free: list[bytearray] = []
        self._unpooled = total  # bytes that are neither handed out nor in the free list
        self._waiters: deque[_Claim] = deque()
        self._closed = False

    def allocate(self, size: int, max_wait_ms: float) -> bytearray:
        """Return a buffer of `size` bytes, waiting at most `max_wait_ms` for others to free memory.

        Raises:
            RecordTooLargeError: The pool could never hold that much.
            BufferExhaustedError: The memory did not come free in time.
            ClosedError: The pool was closed.
        """
        if size > self.total:
            raise RecordTooLargeError(
                f"a buffer of {size} bytes is needed, more than buffer.memory={self.total}"
            )
        claim = _Claim(size, self._tasks)
        try:
            with self._lock:
                if self._closed:
                    raise ClosedError(_CLOSED)
                self._line_up(claim)
            if not claim.is_met():
                self._wait(claim, max_wait_ms)
            if claim.buffer is None:
                claim.buffer = bytearray(size)
        except BaseException:
            try:
                self._withdraw(claim)
            except BaseException:  # Ctrl-C in the midst of it
                self._withdraw(claim)
                raise
            raise
        return claim.buffer

    def deallocate(self, buffer: bytearray) -> None:
        """Take back a buffer that nobody reads any more."""
        self.take_back([buffer])

    def take_back(self, memory: list[bytearray]) -> None:
        """Take back the buffer in a list, if there is one, and empty the list.

        Both happen or none, wherever Ctrl-C strikes: it does so behind calls only.
        """
        served: list[_Claim] = []
        try:
            with self._lock:
                if memory:
                    size = len(memory[0])
                    if size == self.poolable_size and not self._closed:
                        self._free += memory
                        del memory[:]
                    else:
                        self._unpooled += size
                        del memory[:]
                self._serve(served)
            _wake(served)
        except BaseException:
            _wake(served)
            raise

    def close(self) -> None:
        """Refuse every later and every waiting caller; buffers may still be given back."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiters)
            self._waiters.clear()
            for claim in waiting:
                claim.refused = True
                self._give_back(claim)
            self._unpooled += sum(map(len, self._free))
            self._free.clear()
        _wake(waiting)

    def available(self) -> int:
        """Return the bytes that are not handed out."""
        with self._lock:
            return self._unpooled + len(self._free) * self.poolable_size

    def queued(self) -> int:
        """Return how many callers wait for memory."""
        return sum(not claim.is_met() for claim in list(self._waiters))

    def _line_up(self, claim: _Claim) -> None:
        """Put a caller in line, behind others, or give what is free if there are none."""
        while self._waiters and self._waiters[0].is_met():
            self._waiters.popleft()  # left there by Ctrl-C
        if not self._waiters:
            self._grant(claim)  # what is free already counts towards the need of the first in line
        if not claim.is_met():
            self._waiters.append(claim)

    def _serve(self, served: list[_Claim]) -> None:
        """Give free memory to those in line; add to `served` whose need is met."""
        while self._waiters:
            first = self._waiters[0]
            self._grant(first)
            if not first.is_met():
                return
            served.append(first)
            if self._waiters[0] is first:
                self._waiters.popleft()

    def _grant(self, claim: _Claim) -> None:
        """Give a caller what is free, a kept buffer or a piece of the account.

        Nothing is called between taking and giving: Ctrl-C would lose what was taken.
        """
        if claim.needed == self.poolable_size and self._free and not claim.granted:
            claim.buffer = self._free[-1]
            claim.granted = claim.needed
            del self._free[-1]
            return
        missing = claim.needed - claim.granted
        while self._unpooled < missing and self._free:
            del self._free[-1]
            self._unpooled += self.poolable_size
        piece = min(missing, self._unpooled)
        self._unpooled -= piece
        claim.granted += piece

    def _give_back(self, claim: _Claim) -> None:
        if claim.buffer is not None and len(claim.buffer) == self.poolable_size:
            self._free += [claim.buffer]
        else:
            self._unpooled += claim.granted
        claim.buffer, claim.granted = None, 0

    def _wait(self, claim: _Claim, max_wait_ms: float) -> None:
        started_ms = self._clock.monotonic_ms()
        self._on_wait()
        try:
            with claim.ready:
                claim.ready.wait_for(lambda: claim.refused or claim.is_met(), max_wait_ms / 1000.0)
        finally:
            self._wait_time.record((self._clock.monotonic_ms() - started_ms) * 1e6)
        with self._lock:
            if claim.refused:
                raise ClosedError(_CLOSED)
            if claim.is_met():
                return
        self._exhausted.record()
        raise BufferExhaustedError(
            f"no memory for {claim.needed} bytes came free within {max_wait_ms:.0f} ms; "
            f"buffer.memory={self.total} is full of records that the brokers have not acknowledged"
        )

    def _withdraw(self, claim: _Claim) -> None:
        """Take back all that was granted to a caller who leaves without it."""
        served: list[_Claim] = []
        with self._lock:
            if claim in self._waiters:
                self._waiters.remove(claim)
            self._give_back(claim)
            self._serve(served)
        _wake(served)


def _wake(claims: list[_Claim]) -> None:
    for claim in claims:
        with claim.ready:
            claim.ready.notify()
