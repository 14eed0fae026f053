"""The last batches of each producer, read back from a log's tail after a start.

A snapshot keeps of each producer the last batch alone, as Kafka's does. But a producer has up to
five in flight, and when their answers were lost with the broker, it sends all of them again: each
must be known again, or it would be taken for a gap.
"""

from collections import defaultdict
from contextlib import suppress

from kclient.broker.log.file_records import IS_CONTROL, BatchHeader
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.producer_append_info import metadata_of
from kclient.broker.log.producer_state_entry import NUM_BATCHES_TO_RETAIN, ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.common.broker_errors import CorruptRecordError

_TAIL_BYTES = 4 * 1024 * 1024
"""How far back is looked, lest a start take long."""


def recall_batches(local: LocalLog, producers: ProducerStateManager) -> None:
    """Complete what is known of the producers by what stands in the log's last few megabytes."""
    wanting = {
        producer_id: entry
        for producer_id, entry in producers.entries.items()
        if 0 < len(entry.batches) < NUM_BATCHES_TO_RETAIN
    }
    if not wanting:
        return
    found: dict[int, list[BatchHeader]] = defaultdict(list)
    for header in _tail(local):
        if header.producer_id in wanting and not header.attributes & IS_CONTROL:
            found[header.producer_id].append(header)
    for producer_id, headers in found.items():
        _complete(wanting[producer_id], headers)


def _tail(local: LocalLog) -> list[BatchHeader]:
    headers: list[BatchHeader] = []
    left = _TAIL_BYTES
    for segment in reversed(local.segments.values()):
        if left <= 0:
            break
        # What a reader could not read either is no help here.
        with suppress(CorruptRecordError):
            start = segment.indexes.offset.batch_start(segment.size - left)
            headers[:0] = segment.records.headers(start)
        left -= segment.size
    return headers


def _complete(entry: ProducerStateEntry, headers: list[BatchHeader]) -> None:
    known = list(entry.batches)
    earlier = [
        metadata_of(header)
        for header in headers
        if header.producer_epoch == entry.producer_epoch
        and header.last_offset < known[0].first_offset
    ]
    entry.batches.clear()
    entry.batches.extend([*earlier, *known])  # the deque keeps the last ones
