"""Append path of a log (Kafka: UnifiedLog.append)."""

from kclient.broker.log.file_records import BatchHeader
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_loader import aborted_txn, apply_batch
from kclient.broker.log.log_offset_metadata import AppendOrigin, LogAppendInfo
from kclient.broker.log.log_validator import LogValidator
from kclient.broker.log.producer_append_info import CompletedTxn, ProducerAppendInfo
from kclient.broker.log.producer_state_entry import BatchMetadata
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.recompression import recompress
from kclient.common.broker_errors import RecordBatchTooLargeError
from kclient.common.files import WireBytes
from kclient.common.runtime import Clock
from kclient.record import RecordBatch


class LogAppender:
    """Validates batches, assigns their offsets, writes them and updates producer state.

    Guarded by the log's lock, which the caller holds.
    """

    def __init__(
        self,
        clock: Clock,
        local: LocalLog,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
    ) -> None:
        self._clock = clock
        self._local = local
        self._producers = producers
        self._epochs = epochs

    def append(self, records: WireBytes, leader_epoch: int, origin: AppendOrigin) -> LogAppendInfo:
        """Append the batches of a request, all or none.

        Raises:
            KafkaError: As `UnifiedLog.append_as_leader`.
            OSError: A write failed; the log is unchanged if the truncation succeeded.
        """
        config = self._local.config
        now_ms = self._clock.wall_ms()
        view = _writable(records)
        validator = LogValidator(str(self._local.partition), config, origin, now_ms)
        headers = validator.validate(view)
        if origin == "client":
            view, headers = recompress(view, headers, config)
        view = view[: headers[-1].end_position]
        self._check_fits(len(view))
        if origin == "client":
            duplicate = self._find_duplicate(headers)
            if duplicate is not None:
                return self._duplicate_info(duplicate)
        headers = validator.assign(view, headers, self._local.log_end_offset, leader_epoch)
        updates, completed = self._prepare_producers(view, headers, origin)
        if leader_epoch >= 0:
            self._epochs.assign(leader_epoch, headers[0].base_offset)
        self.maybe_roll(len(view), headers[-1].last_offset, headers, now_ms)
        self._write(view, headers)
        self._apply(updates, completed, headers[-1].last_offset + 1)
        return _append_info(headers, now_ms if config.stamps_append_time else -1, leader_epoch)

    def _check_fits(self, size: int) -> None:
        if size > self._local.config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{self._local.partition}: got {size} bytes of batches, expected at most "
                f"{self._local.config.segment_bytes} (segment.bytes)"
            )

    def maybe_roll(
        self, size: int, last_offset: int, headers: list[BatchHeader], now_ms: int
    ) -> None:
        """Roll a new segment if these batches do not fit into the active one."""
        latest = max(header.max_timestamp for header in headers)
        if self._local.active.should_roll(size, last_offset, latest, self._local.config, now_ms):
            self.roll(headers[0].base_offset)

    def roll(self, expected_next_offset: int = 0) -> None:
        """Roll a new segment and take a snapshot of the producer state at its start."""
        segment = self._local.roll(expected_next_offset)
        self._producers.update_map_end_offset(segment.base_offset)
        self._producers.take_snapshot()

    def _find_duplicate(self, headers: list[BatchHeader]) -> BatchMetadata | None:
        for header in headers:
            entry = self._producers.entries.get(header.producer_id)
            if entry is not None:
                last = (header.base_sequence + header.last_offset_delta) & 0x7FFFFFFF
                found = entry.find_duplicate(header.producer_epoch, header.base_sequence, last)
                if found is not None:
                    return found
        return None

    def _duplicate_info(self, batch: BatchMetadata) -> LogAppendInfo:
        """Return the offsets of the batch that was appended first.

        As in Kafka (UnifiedLog.append), the append time is the batch's max timestamp, whether the
        client or the broker set it.
        """
        return LogAppendInfo(
            batch.first_offset,
            batch.last_offset,
            max_timestamp=batch.timestamp,
            log_append_time=batch.timestamp,
            duplicate=True,
        )

    def _prepare_producers(
        self, view: memoryview, headers: list[BatchHeader], origin: AppendOrigin
    ) -> tuple[list[ProducerAppendInfo], list[CompletedTxn]]:
        updates: dict[int, ProducerAppendInfo] = {}
        completed = []
        for header in headers:
            if header.producer_id < 0:
                continue
            info = updates.get(header.producer_id)
            if info is None:
                info = self._producers.prepare_update(header.producer_id, origin)
                updates[header.producer_id] = info
            ended = apply_batch(info, header, lambda at: RecordBatch(view, at.position))
            if ended is not None:
                completed.append(ended)
        return list(updates.values()), completed

    def _write(self, view: memoryview, headers: list[BatchHeader]) -> None:
        start = self._local.active.size
        placed = [header._replace(position=start + header.position) for header in headers]
        self._local.append(view, placed)

    def _apply(
        self, updates: list[ProducerAppendInfo], completed: list[CompletedTxn], end_offset: int
    ) -> None:
        for info in updates:
            self._producers.update(info)
        for txn in completed:
            stable = self._producers.last_stable_offset(txn)
            if txn.aborted:
                self._local.active.indexes.transactions.append(aborted_txn(txn, stable))
            self._producers.complete_txn(txn)
        self._producers.update_map_end_offset(end_offset)


def _writable(records: WireBytes) -> memoryview:
    view = memoryview(records).cast("B")
    return memoryview(bytearray(view)) if view.readonly else view


def _append_info(
    headers: list[BatchHeader], log_append_time: int, leader_epoch: int
) -> LogAppendInfo:
    latest = max(headers, key=lambda header: header.max_timestamp)
    return LogAppendInfo(
        headers[0].base_offset,
        headers[-1].last_offset,
        max_timestamp=latest.max_timestamp,
        shallow_offset_of_max_timestamp=latest.last_offset,
        log_append_time=log_append_time,
        last_leader_epoch=leader_epoch,
        size_in_bytes=headers[-1].end_position,
    )
