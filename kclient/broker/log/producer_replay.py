"""Which of many batches decide what is known of their producers afterwards.

A start takes in hundreds of thousands of batches. Of a producer's batches its last ones alone are
remembered, and the first of its transaction; what any other does is undone by those behind it.
"""

from collections.abc import Sequence

from kclient.broker.log.file_records import IS_TRANSACTIONAL
from kclient.broker.log.producer_state_entry import NUM_BATCHES_TO_RETAIN
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.record import BatchColumns


def telling_rows(
    columns: BatchColumns, rows: range, producers: ProducerStateManager
) -> Sequence[int]:
    """Return the rows that have to be taken in, in order, for the state that all would lead to.

    Args:
        columns: Batches.
        rows: Which of them; none of these is a control batch.
        producers: The state before them. Where there may be more producers than it can hold, it
            matters who wrote when, and every batch counts.
    """
    ids = columns.producer_ids
    if max(ids[rows.start : rows.stop]) < 0:
        return ()
    times: dict[int, int] = {}
    first_of_txn: dict[int, int] = {}
    telling = []
    backwards = slice(rows.stop - 1, rows.start - 1 if rows.start else None, -1)
    attributes = columns.attributes[backwards]
    for row, producer_id, flags in zip(reversed(rows), ids[backwards], attributes, strict=True):
        seen = times.get(producer_id, 0)
        if seen < NUM_BATCHES_TO_RETAIN and producer_id >= 0:
            times[producer_id] = seen + 1
            telling.append(row)
        if flags & IS_TRANSACTIONAL and producer_id >= 0:
            first_of_txn[producer_id] = row
    if len(producers.entries) + len(times) > producers.limits.max_ids:
        return [row for row in rows if ids[row] >= 0]
    return sorted({*telling, *first_of_txn.values()})
