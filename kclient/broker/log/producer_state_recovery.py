"""Restores the last batches of each producer from the tail of a log after a start.

A snapshot contains only the last batch of each producer, as in Kafka. A producer has up to five
batches in flight. If their responses were lost because the broker stopped, it retries all of them,
and each must be recognized as a duplicate instead of an out-of-order sequence.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.producer_state_entry import (
    NUM_BATCHES_TO_RETAIN,
    BatchMetadata,
    ProducerStateEntry,
)
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import BatchColumns
from kclient.record.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG

_TAIL_BYTES = 4 * 1024 * 1024
"""Upper bound of the bytes that are read, to bound the time of a start."""


def restore_recent_batches(local: LocalLog, producers: ProducerStateManager) -> None:
    """Complete the batches of each producer entry from the last megabytes of the log."""
    incomplete = {
        producer_id: entry
        for producer_id, entry in producers.entries.items()
        if 0 < len(entry.batches) < NUM_BATCHES_TO_RETAIN
    }
    if not incomplete:
        return
    for producer_id, earlier in _find_earlier(local, incomplete).items():
        known = incomplete[producer_id].batches
        for batch in earlier[: NUM_BATCHES_TO_RETAIN - len(known)]:
            known.appendleft(batch)


def _find_earlier(
    local: LocalLog, incomplete: dict[int, ProducerStateEntry]
) -> dict[int, list[BatchMetadata]]:
    """Return the batches of each producer that precede the known ones, latest first."""
    known_from = {
        producer_id: (entry.producer_epoch, entry.batches[0].first_offset)
        for producer_id, entry in incomplete.items()
    }
    found: dict[int, list[BatchMetadata]] = defaultdict(list)
    for columns, row in _backwards(local):
        producer_id = columns.producer_ids[row]
        if producer_id not in known_from or columns.attributes[row] & CONTROL_FLAG:
            continue
        epoch, first_offset = known_from[producer_id]
        if columns.producer_epochs[row] == epoch and columns.last_offsets[row] < first_offset:
            found[producer_id].append(BatchMetadata.of(columns.header(row)))
            if len(found[producer_id]) == NUM_BATCHES_TO_RETAIN:
                del known_from[producer_id]
                if not known_from:
                    break
    return found


def _backwards(local: LocalLog) -> Iterator[tuple[BatchColumns, int]]:
    """Iterate over the batches of the log's tail, last one first."""
    left = _TAIL_BYTES
    for segment in reversed(local.all_segments()):
        # A damaged segment ends the search; consumers cannot read it either.
        with suppress(CorruptRecordError):
            for columns in segment.columns_backwards(left):
                for row in reversed(range(columns.batch_count)):
                    yield columns, row
        left -= segment.size
        if left <= 0:
            break


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
