"""Registry of the batches that have no outcome yet."""

from kclient.common.errors import ClosedError
from kclient.common.runtime import Tasks
from kclient.producer.producer_batch import ProducerBatch


class IncompleteBatches:
    """Batches that a flush waits for and a forced close fails (Kafka: IncompleteBatches)."""

    def __init__(self, tasks: Tasks) -> None:
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
            batch.is_registered = True

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a split batch by its parts, which are as old as it was."""
        with self._lock:
            replaced: dict[ProducerBatch, None] = {}
            for each in self._batches:
                replaced |= dict.fromkeys(parts if each is batch else [each])
            self._batches = replaced

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that has its outcome. Idempotent."""
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
        """Return the creation time of the oldest batch; infinity if there is none."""
        with self._lock:
            for batch in self._batches:
                return batch.created_ms
        return float("inf")

    def created_until(self, limit_ms: float) -> list[ProducerBatch]:
        """Return the batches created at or before a time, the oldest first."""
        found = []
        with self._lock:
            for batch in self._batches:
                if batch.created_ms > limit_ms:
                    break
                found.append(batch)
        return found

    def close(self) -> None:
        """Reject new batches from now on."""
        with self._lock:
            self._closed = True

    def __len__(self) -> int:
        return len(self._batches)
