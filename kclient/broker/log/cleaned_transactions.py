"""Transaction metadata of a cleaner run (Kafka: CleanedTransactionMetadata)."""

from collections import deque
from collections.abc import Iterable

from kclient.broker.log.transaction_index import AbortedTxn
from kclient.record import ControlRecordType, RecordBatch


class CleanedTransactions:
    """Tracks the transactions of a log from an offset on, batch by batch.

    Records of aborted transactions are discarded immediately. A marker is discarded when no record
    of its transaction is left: until then consumers need it to see the end of the transaction.
    """

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._pending = deque(sorted(aborted, key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        self._kept_aborts: list[AbortedTxn] = []

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """Add the next batch; return whether its records can be discarded."""
        self._advance(batch.last_offset)
        if batch.is_control:
            return self._on_control_batch_read(batch)
        if not batch.is_transactional:
            return False
        self._seen.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def drain_kept_aborts(self) -> list[AbortedTxn]:
        """Return the aborted transactions whose markers were kept since the last call."""
        kept, self._kept_aborts = self._kept_aborts, []
        return kept

    def _advance(self, offset: int) -> None:
        while self._pending and self._pending[0].first_offset <= offset:
            txn = self._pending.popleft()
            self._aborted.setdefault(txn.producer_id, txn)

    def _on_control_batch_read(self, marker: RecordBatch) -> bool:
        records = marker.records()
        if not records:
            return True
        kind = ControlRecordType.parse(records[0].key)
        had_records = marker.producer_id in self._seen
        if kind is ControlRecordType.ABORT:
            aborted = self._aborted.pop(marker.producer_id, None)
            if aborted is not None and had_records:
                self._kept_aborts.append(aborted)
        elif kind is not ControlRecordType.COMMIT:
            return False
        self._seen.discard(marker.producer_id)
        return not had_records
