"""Recovery of producer state from many batches."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.log.producer_state_manager import ProducerLimits, ProducerStateManager
from kclient.broker.log.producer_state_recovery import relevant_rows
from kclient.common.system_files import SystemFiles
from kclient.record import (
    BatchColumns,
    RecordBatch,
    scan_batches,
)
from tests.support.disks.batch_pieces import Piece, batches, pieces
from tests.support.disks.log_bench import ManualClock


def knowing(max_ids: int) -> ProducerStateManager:
    return ProducerStateManager(
        SystemFiles(), ManualClock(), Path(), "t-0", ProducerLimits(max_ids=max_ids)
    )


def producer_state(columns: BatchColumns, data: bytes, max_ids: int, *, all_rows: bool) -> Any:
    manager = knowing(max_ids)
    ended = []
    for rows in columns.runs():
        for row in rows if all_rows else relevant_rows(columns, rows, manager):
            header = columns.header(row)
            if header.producer_id < 0:
                continue
            info = manager.prepare_update(header.producer_id, None)
            txn = None
            if header.is_control:
                txn = info.append_marker(RecordBatch(data, header.position))
            else:
                info.append_data(header)
            manager.update(info)
            if txn is not None:
                ended.append((txn, manager.last_stable_offset(txn)))
                manager.complete_txn(txn)
    return list(manager.entries.items()), manager.first_unstable_offset, ended


@settings(max_examples=300)
@given(pieces, st.sampled_from([2, 4, 100]))
def test_relevant_batches_lead_to_the_same_producer_state(brief: list[Piece], max_ids: int) -> None:
    data = batches(brief)
    columns = scan_batches(data)
    assert columns.batch_count == len(brief)
    relevant = producer_state(columns, data, max_ids, all_rows=False)
    assert relevant == producer_state(columns, data, max_ids, all_rows=True)


def test_recovery_reads_only_batches_that_determine_producer_state() -> None:
    columns = scan_batches(batches([Piece(producer=number % 3) for number in range(90)]))
    assert list(relevant_rows(columns, range(90), knowing(10))) == list(range(75, 90))
    assert list(relevant_rows(columns, range(90), knowing(2))) == list(range(90))


def test_first_batch_of_transaction_is_relevant() -> None:
    data = batches([Piece(producer=7, kind="transactional")] * 30)
    columns = scan_batches(data)
    assert list(relevant_rows(columns, range(2, 30), knowing(10))) == [2, 25, 26, 27, 28, 29]
    assert producer_state(columns, data, 10, all_rows=False)[1] == 0
