"""Appends of one idempotent producer to a log, and the markers of its transactions."""

from kclient.broker.log.unified_log import UnifiedLog
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.disks.log_bench import NOW_MS, make_batch

PID = 4000


def send(log: UnifiedLog, sequence: int, count: int = 1, epoch: int = 0, pid: int = PID) -> int:
    """Append and return the first offset."""
    return log.append_as_leader(make_batch(count, producer=(pid, epoch, sequence)), 0).first_offset


def end_txn(
    log: UnifiedLog,
    kind: ControlRecordType,
    epoch: int = 0,
    coordinator: int = 0,
    transaction_version: int = 0,
) -> None:
    marker = build_end_txn_batch(EndTxnMarker(kind, coordinator), PID, epoch, NOW_MS)
    log.append_as_leader(marker, 0, origin="coordinator", transaction_version=transaction_version)


def begin_txn(log: UnifiedLog, sequence: int, epoch: int = 0) -> None:
    log.append_as_leader(make_batch(producer=(PID, epoch, sequence), transactional=True), 0)
