"""Cursor over records in lists that are appended to one partition."""

from collections.abc import Sequence

from kclient.producer.batch_delivery import Segment
from kclient.producer.producer_batch import ProducerBatch
from kclient.record import Header, record_size_upper_bound


class Rows:
    """Parallel lists of keys, values and timestamps, appended to batches from the front.

    Attributes:
        taken: Number of records appended.
    """

    __slots__ = ("_headers", "_keys", "_timestamps_ms", "_values", "taken")

    def __init__(
        self,
        timestamps_ms: int | list[int],
        keys: list[bytes | None] | None,
        values: list[bytes | None],
        headers: Sequence[Header] | None,
    ) -> None:
        self._timestamps_ms = timestamps_ms
        self._keys = keys
        self._values = values
        self._headers = headers
        self.taken = 0

    def all_taken(self) -> bool:
        """Return whether no record is left."""
        return self.taken >= len(self._values)

    def next_size(self) -> int:
        """Return an upper bound of the next record's size in bytes."""
        key = None if self._keys is None else self._keys[self.taken]
        return record_size_upper_bound(key, self._values[self.taken], self._headers)

    def fill(self, batch: ProducerBatch) -> Segment | None:
        """Append as many records as fit; return None if not one fits."""
        first_index = batch.record_count
        count = batch.append_many(
            self._timestamps_ms, self._keys, self._values, self.taken, self._headers
        )
        if count == 0:
            return None
        self.taken += count
        return Segment(batch.result, first_index, count)
