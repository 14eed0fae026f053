"""Which batches of transactions compaction may drop (Kafka: CleanedTransactionMetadata)."""

from collections import deque
from collections.abc import Iterable

from kclient.broker.log.transaction_index import AbortedTxn
from kclient.record import ControlRecordType, RecordBatch


class CleanedTransactions:
    """Follows the transactions of a log from one offset on, batch by batch.

    What was aborted goes at once. A marker goes when nothing of its transaction is left, for until
    then it tells readers that the transaction has ended.
    """

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = deque(sorted(aborted, key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        self._kept_aborts: list[AbortedTxn] = []

    def takes_out(self, batch: RecordBatch) -> bool:
        """Take in the next batch; return whether its records are of no use to anybody."""
        self._advance(batch.last_offset)
        if batch.is_control:
            return self._ends(batch)
        if not batch.is_transactional:
            return False
        self._seen.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def take_kept_aborts(self) -> list[AbortedTxn]:
        """Return the aborted transactions whose markers stayed since this was last asked."""
        kept, self._kept_aborts = self._kept_aborts, []
        return kept

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            txn = self._coming.popleft()
            self._aborted.setdefault(txn.producer_id, txn)

    def _ends(self, marker: RecordBatch) -> bool:
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
