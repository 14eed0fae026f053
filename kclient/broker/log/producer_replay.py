"""Selection of the batches that determine producer state.

A recovery reads hundreds of thousands of batches. Producer state depends only on the last batches
of each producer and on the first batch of its transaction.
"""

from collections.abc import Sequence

from kclient.broker.log.producer_state_entry import NUM_BATCHES_TO_RETAIN
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.record import BatchColumns
from kclient.record.batch_header import TRANSACTIONAL_FLAG


def relevant_rows(
    columns: BatchColumns, rows: range, producers: ProducerStateManager
) -> Sequence[int]:
    """Return the rows to replay, in order, for the same state as replaying all of them.

    Args:
        columns: Batches.
        rows: The rows, without control batches.
        producers: The state before them. If the number of producers may exceed the limit, all
            rows are returned, since the order of writes determines which producer is evicted.
    """
    ids = columns.producer_ids
    if max(ids[rows.start : rows.stop]) < 0:
        return ()
    counts: dict[int, int] = {}
    first_of_txn: dict[int, int] = {}
    relevant = []
    backwards = slice(rows.stop - 1, rows.start - 1 if rows.start else None, -1)
    attributes = columns.attributes[backwards]
    for row, producer_id, flags in zip(reversed(rows), ids[backwards], attributes, strict=True):
        seen = counts.get(producer_id, 0)
        if seen < NUM_BATCHES_TO_RETAIN and producer_id >= 0:
            counts[producer_id] = seen + 1
            relevant.append(row)
        if flags & TRANSACTIONAL_FLAG and producer_id >= 0:
            first_of_txn[producer_id] = row
    if len(producers.entries) + len(counts) > producers.limits.max_ids:
        return [row for row in rows if ids[row] >= 0]
    return sorted({*relevant, *first_of_txn.values()})
