"""Registry of the batches that have no outcome yet."""

import math
from collections.abc import Iterable

from kclient.common.errors import ClosedError, KafkaError, KafkaTimeoutError
from kclient.common.runtime import Tasks
from kclient.common.waiting import Steps
from kclient.producer.batch_state import BatchEvent
from kclient.producer.producer_batch import ProducerBatch

_REGISTERED = BatchEvent.REGISTERED


class IncompleteBatches:
    """Batches that a flush waits for and a forced close fails (Kafka: IncompleteBatches).

    Attributes:
        delivery_timeout_ms: ``delivery.timeout.ms``.
    """

    def __init__(self, tasks: Tasks, delivery_timeout_ms: float) -> None:
        self.delivery_timeout_ms = delivery_timeout_ms
        self._lock = tasks.lock()  # guards: everything below
        self._batches: dict[ProducerBatch, None] = {}  # oldest first
        self._closed = False

    def add(self, batch: ProducerBatch) -> None:
        """Add a new batch.

        Raises:
            ClosedError: The producer was closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("send: the producer is closed")
            self._batches[batch] = None
            batch.apply(_REGISTERED)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a split batch by its parts, which are as old as it was."""
        with self._lock:
            batch.apply(BatchEvent.SPLIT)
            for part in parts:
                part.apply(_REGISTERED)
            # Changed, not replaced: a finalizer that runs meanwhile may add a batch.
            for each in list(self._batches):
                del self._batches[each]
                self._batches.update(dict.fromkeys(parts if each is batch else [each]))

    def remove(self, batches: Iterable[ProducerBatch]) -> None:
        """Remove batches that have their outcomes. Idempotent."""
        with self._lock:
            for batch in batches:
                self._batches.pop(batch, None)

    def all(self) -> list[ProducerBatch]:
        """Return the batches, the oldest first."""
        with self._lock:
            return list(self._batches)

    def record_count(self) -> int:
        """Return the number of records in them."""
        return sum(batch.builder.record_count for batch in self.all())

    def expired(self, now_ms: float) -> tuple[list[ProducerBatch], float]:
        """Return the batches that have reached ``delivery.timeout.ms``, the oldest first.

        Returns:
            The batches, and when the next one expires; infinity if there is none.
        """
        found: list[ProducerBatch] = []
        with self._lock:
            for first in self._batches:
                expires_ms = first.created_ms + self.delivery_timeout_ms
                if expires_ms > now_ms:  # as in nearly all calls
                    return found, expires_ms
                break
            for batch in list(self._batches):  # a copy: a finalizer may add a batch meanwhile
                expires_ms = self._expiry_ms(batch)
                if expires_ms > now_ms:
                    return found, expires_ms
                found.append(batch)
        return found, math.inf

    def is_expired(self, batch: ProducerBatch, now_ms: float) -> bool:
        """Return whether a batch has reached ``delivery.timeout.ms``."""
        return self._expiry_ms(batch) <= now_ms

    def _expiry_ms(self, batch: ProducerBatch) -> float:
        return batch.created_ms + self.delivery_timeout_ms

    def last_error(self) -> KafkaError | None:
        """Return the last error of the oldest batch that has one."""
        for batch in self.all():
            if batch.last_error is not None:
                return batch.last_error
        return None

    def wait(self, until_ms: float) -> Steps[None]:
        """Wait until the present batches have their outcomes and their callbacks have run.

        Raises:
            KafkaTimeoutError: Not all have an outcome at `until_ms`.
        """
        for batch in self.all():
            if not (yield from batch.result.await_all(until_ms)):
                raise KafkaTimeoutError(
                    f"flush: {self.record_count()} records have no outcome yet; they are in flight"
                )

    def close(self) -> None:
        """Reject new batches from now on."""
        with self._lock:
            self._closed = True

    def __len__(self) -> int:
        return len(self._batches)
