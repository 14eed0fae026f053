"""Every batch that has no outcome yet."""

from kclient.common.errors import ClosedError
from kclient.common.runtime import Tasks
from kclient.producer.producer_batch import ProducerBatch


class IncompleteBatches:
    """The batches that a flush waits for and a forced close fails (Kafka: IncompleteBatches)."""

    def __init__(self, tasks: Tasks) -> None:
        self._lock = tasks.lock()  # guards: everything below
        self._batches: dict[ProducerBatch, None] = {}  # oldest first
        self._closed = False

    def add(self, batch: ProducerBatch) -> None:
        """Take in a new batch.

        Raises:
            ClosedError: No new batches are accepted any more.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("send: the producer is closed")
            self._batches[batch] = None
            batch.is_begun = True

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Take in the parts of a split batch in its place, as old as it was."""
        with self._lock:
            renewed: dict[ProducerBatch, None] = {}
            for each in self._batches:
                renewed |= dict.fromkeys(parts if each is batch else [each])
            self._batches = renewed

    def remove(self, batch: ProducerBatch) -> None:
        """Forget a batch that has its outcome; one forgotten before is no error."""
        with self._lock:
            self._batches.pop(batch, None)

    def all(self) -> list[ProducerBatch]:
        """Return the batches, the oldest first."""
        with self._lock:
            return list(self._batches)

    def record_count(self) -> int:
        """Return the number of records in them."""
        return sum(batch.record_count for batch in self.all())

    def oldest_created_ms(self) -> float:
        """Return when the oldest batch was begun; infinity where there is none."""
        with self._lock:
            for batch in self._batches:
                return batch.created_ms
        return float("inf")

    def created_until(self, limit_ms: float) -> list[ProducerBatch]:
        """Return the batches that were begun at a time or before, the oldest first."""
        found = []
        with self._lock:
            for batch in self._batches:
                if batch.created_ms > limit_ms:
                    break
                found.append(batch)
        return found

    def close(self) -> None:
        """Accept no new batches any more."""
        with self._lock:
            self._closed = True

    def __len__(self) -> int:
        return len(self._batches)
