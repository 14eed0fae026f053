"""Look-up of offsets by timestamp and epoch (Kafka: UnifiedLog.fetchOffsetByTimestamp)."""

from kclient.broker.log.log_offset_metadata import FetchDataInfo
from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.types import OffsetAndTimestamp

_NO_TIMESTAMP = -1


class OffsetLookup:
    """Look-up of offsets in one log, for ListOffsets and OffsetForLeaderEpoch."""

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts

    def by_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp at or after this one, or None.

        Raises:
            KafkaStorageError: The disk failed.
            CorruptRecordError: A batch is damaged.
        """
        parts = self._parts
        with parts.locked("offset for timestamp"):
            log_start = parts.offsets.log_start
            for segment in parts.local.segments.between(log_start, 2**63 - 1):
                if segment.indexes.max_timestamp_and_offset.timestamp >= timestamp:
                    found = segment.find_offset_by_timestamp(timestamp, log_start)
                    if found is not None:
                        return found
        return None

    def of_max_timestamp(self) -> OffsetAndTimestamp | None:
        """Return the first record with the max timestamp of the log, or None (KIP-734).

        Raises:
            KafkaStorageError: The disk failed.
            CorruptRecordError: A batch is damaged.
        """
        parts = self._parts
        with parts.locked("offset of max timestamp"):
            log_start = parts.offsets.log_start
            timestamp, segment = max(
                (
                    (segment.greatest_timestamp_from(log_start), segment)
                    for segment in parts.local.segments.between(log_start, 2**63 - 1)
                ),
                key=lambda pair: pair[0],
            )
            if timestamp < 0:
                return None
            return segment.find_offset_by_timestamp(timestamp, log_start)

    def earliest(self) -> OffsetAndTimestamp:
        """Return the log start offset and its leader epoch."""
        with self._parts.lock:
            start = self._parts.offsets.log_start
            epoch = self._parts.epochs.epoch_for_offset(start)
            return OffsetAndTimestamp(start, _NO_TIMESTAMP, epoch)

    def latest(self, end_offset: int) -> OffsetAndTimestamp:
        """Return an end offset (high watermark or last stable offset) and the latest epoch."""
        with self._parts.lock:
            epoch = self._parts.epochs.latest_epoch
            return OffsetAndTimestamp(end_offset, _NO_TIMESTAMP, -1 if epoch is None else epoch)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch that is at most `epoch`, and its end offset."""
        with self._parts.lock:
            return self._parts.epochs.end_offset_for(epoch, self._parts.local.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """Return the leader epoch of an offset, or -1."""
        with self._parts.lock:
            return self._parts.epochs.epoch_for_offset(offset)

    def aborted_transactions(self, info: FetchDataInfo) -> list[AbortedTxn]:
        """Return the aborted transactions that overlap the result of a read.

        The caller holds the log's lock.
        """
        local = self._parts.local
        segment = local.segments.floor(info.start_offset)
        if segment is None or not len(info.records):
            return []
        upper = self._upper_bound(info)
        found = []
        for segment in local.segments.between(info.start_offset, 2**63 - 1):
            for txn in segment.indexes.transactions.aborted_txns():
                if txn.last_offset >= info.start_offset and txn.first_offset < upper:
                    found.append(txn)
                if txn.last_stable_offset >= upper:
                    return found
        return found

    def _upper_bound(self, info: FetchDataInfo) -> int:
        """Return the end offset of the result of a read."""
        local = self._parts.local
        base = info.position.segment_base_offset
        segment: LogSegment | None = local.segments.floor(base)
        end_position = info.position.relative_position + len(info.records)
        if segment is not None:
            for header in segment.records.headers(info.position.relative_position):
                if header.end_position >= end_position:
                    return header.last_offset + 1
        return local.log_end_offset
