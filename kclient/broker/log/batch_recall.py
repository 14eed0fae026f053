"""The last batches of each producer, read back from a log's tail after a start.

A snapshot keeps of each producer the last batch alone, as Kafka's does. But a producer has up to
five in flight, and when their answers were lost with the broker, it sends all of them again: each
must be known again, or it would be taken for a gap.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from kclient.broker.log.file_records import IS_CONTROL, header_of
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.producer_append_info import metadata_of
from kclient.broker.log.producer_state_entry import (
    NUM_BATCHES_TO_RETAIN,
    BatchMetadata,
    ProducerStateEntry,
)
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import BatchColumns

_TAIL_BYTES = 4 * 1024 * 1024
"""How far back is looked, lest a start take long."""

_FIRST_BYTES = 256 * 1024


def recall_batches(local: LocalLog, producers: ProducerStateManager) -> None:
    """Complete what is known of the producers by what stands in the log's last few megabytes."""
    wanting = {
        producer_id: entry
        for producer_id, entry in producers.entries.items()
        if 0 < len(entry.batches) < NUM_BATCHES_TO_RETAIN
    }
    if not wanting:
        return
    for producer_id, earlier in _find_earlier(local, wanting).items():
        known = wanting[producer_id].batches
        for batch in earlier[: NUM_BATCHES_TO_RETAIN - len(known)]:
            known.appendleft(batch)


def _find_earlier(
    local: LocalLog, wanting: dict[int, ProducerStateEntry]
) -> dict[int, list[BatchMetadata]]:
    """Return of each producer the batches before those that are known, the latest first."""
    known_from = {
        producer_id: (entry.producer_epoch, entry.batches[0].first_offset)
        for producer_id, entry in wanting.items()
    }
    found: dict[int, list[BatchMetadata]] = defaultdict(list)
    for columns, row in _backwards(local):
        producer_id = columns.producer_ids[row]
        if producer_id not in known_from or columns.attributes[row] & IS_CONTROL:
            continue
        epoch, first_offset = known_from[producer_id]
        if columns.producer_epochs[row] == epoch and columns.last_offsets[row] < first_offset:
            found[producer_id].append(metadata_of(header_of(columns, row)))
            if len(found[producer_id]) == NUM_BATCHES_TO_RETAIN:
                del known_from[producer_id]
                if not known_from:
                    break
    return found


def _backwards(local: LocalLog) -> Iterator[tuple[BatchColumns, int]]:
    """Go through the batches of the log's tail, the last one first."""
    left = _TAIL_BYTES
    for segment in reversed(local.segments.values()):
        # What a reader could not read either is no help here.
        with suppress(CorruptRecordError):
            for columns in _pieces(segment, left):
                for row in reversed(range(columns.batch_count)):
                    yield columns, row
        left -= segment.size
        if left <= 0:
            break


def _pieces(segment: LogSegment, most_bytes: int) -> Iterator[BatchColumns]:
    """Go back through a segment's last bytes; mostly what is sought stands in the very last."""
    end, size = segment.size, _FIRST_BYTES
    lowest = max(0, end - most_bytes)
    while end > lowest:
        start = segment.indexes.offset.batch_start(max(lowest, end - size))
        yield from reversed(list(segment.records.all_headers(start, end)))
        end, size = start, most_bytes
