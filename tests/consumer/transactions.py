"""Writer of transactions into a scripted log, with the offsets visible per isolation level."""

from bisect import bisect_left

from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.virtual.virtual_log_broker import VirtualLog


def end(log: VirtualLog, producer_id: int, kind: ControlRecordType) -> None:
    """Append the marker that ends a producer's transaction."""
    base = log.end_offset
    marker = build_end_txn_batch(
        EndTxnMarker(kind, 0), producer_id, 0, 1000, base_offset=base, partition_leader_epoch=1
    )
    log.append_bytes(base, base + 1, bytes(marker))


def abort(log: VirtualLog, producer_id: int, first: int) -> None:
    """End a producer's transaction that began at `first`, so that its records do not count."""
    end(log, producer_id, ControlRecordType.ABORT)
    log.aborted.append((producer_id, first, log.end_offset - 1))


class TransactionWriter:
    """Appends records, within transactions or without.

    Attributes:
        log: The log written to.
        written: Offsets of all records but the markers.
        committed: Offsets of those that a read_committed reader may see.
    """

    def __init__(self, log: VirtualLog) -> None:
        self.log = log
        self.written: list[int] = []
        self.committed: list[int] = []
        self._pending: dict[int, list[int]] = {}

    def write(self, count: int, producer_id: int = -1) -> None:
        """Append a batch; one with a producer id belongs to that producer's transaction."""
        first = self.log.end_offset
        offsets = list(range(first, first + count))
        self.log.append(*(b"%d" % offset for offset in offsets), producer_id=producer_id)
        self.written += offsets
        if producer_id < 0:
            self._commit(offsets)
        else:
            self._pending.setdefault(producer_id, []).extend(offsets)
        self._move_last_stable_offset()

    def end(self, producer_id: int, kind: ControlRecordType) -> None:
        """Append an end marker; for a transaction without records, only the marker."""
        offsets = self._pending.pop(producer_id, [])
        if kind is ControlRecordType.COMMIT:
            end(self.log, producer_id, kind)
            self._commit(offsets)
        elif offsets:
            abort(self.log, producer_id, offsets[0])
        else:
            end(self.log, producer_id, kind)
        self._move_last_stable_offset()

    def visible(self, *, committed_only: bool) -> list[int]:
        """Return the offsets visible under an isolation level."""
        if not committed_only:
            return self.written
        return self.committed[: bisect_left(self.committed, self.log.stable_end(1))]

    def _commit(self, offsets: list[int]) -> None:
        self.committed = sorted([*self.committed, *offsets])

    def _move_last_stable_offset(self) -> None:
        firsts = [offsets[0] for offsets in self._pending.values()]
        self.log.last_stable_offset = min(firsts, default=None)
