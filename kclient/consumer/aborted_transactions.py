"""Filter for the batches of aborted transactions in a fetch (Kafka: CompletedFetch, KIP-98)."""

import heapq
from collections.abc import Iterable

from kclient.record import ControlRecordType, RecordBatch


class AbortedTransactions:
    """Identifies the batches that a read_committed consumer skips, in offset order.

    Args:
        listed: First offset and producer id of each aborted transaction, in any order.
    """

    def __init__(self, listed: Iterable[tuple[int, int]]) -> None:
        self._ahead = list(listed)
        heapq.heapify(self._ahead)
        self._open: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        """Return whether the batch is part of an aborted transaction; call once for each batch."""
        if not batch.has_producer_id:
            return False
        while self._ahead and self._ahead[0][0] <= batch.last_offset:
            self._open.add(heapq.heappop(self._ahead)[1])
        producer_id = batch.producer_id
        if batch.is_control:
            if producer_id in self._open and _is_abort_marker(batch):
                self._open.discard(producer_id)
            return False
        return batch.is_transactional and producer_id in self._open


def _is_abort_marker(batch: RecordBatch) -> bool:
    records = batch.records()
    return bool(records) and ControlRecordType.parse(records[0].key) is ControlRecordType.ABORT
