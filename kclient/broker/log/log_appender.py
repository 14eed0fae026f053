"""Append path of a log (Kafka: UnifiedLog.append)."""

from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_offset_metadata import AppendOrigin, LogAppendInfo
from kclient.broker.log.log_validator import KEEP_CODEC, LogValidator, recompress
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.producer_state_entry import (
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
)
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.transaction_verification import VerificationGuard
from kclient.common.files import WireBytes
from kclient.common.runtime import Clock
from kclient.record import RecordBatch
from kclient.record.batch_header import CONTROL_FLAG


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
        self._name = str(local.partition)
        self._local = local
        self._producers = producers
        self._epochs = epochs

    def append(
        self,
        records: MemoryRecords,
        leader_epoch: int,
        origin: AppendOrigin,
        transaction_version: int,
        guard: VerificationGuard | None,
    ) -> LogAppendInfo:
        """Append the batches of a request, all or none.

        Raises:
            KafkaError: As `UnifiedLog.append_as_leader`.
            OSError: A write failed; the log is unchanged if the truncation succeeded.
        """
        local, producers = self._local, self._producers
        config, now_ms = local.config, self._clock.wall_ms()
        validator = LogValidator(self._name, config, origin, now_ms)
        validator.validate(records)
        if origin == "client" and config.compression_type != KEEP_CODEC:
            records = recompress(records, config)
        batches = records.batches
        local.check_fits(records.size_in_bytes)
        if origin == "client" and records.has_producer_ids:
            duplicate = producers.find_duplicate(batches)
            if duplicate is not None:
                return _duplicate_info(duplicate)
        validator.assign(batches, local.log_end_offset, leader_epoch)
        updates: list[ProducerAppendInfo] = []
        completed: list[CompletedTxn] = []
        if records.has_producer_ids:
            updates, completed = self._prepare_producers(
                batches, origin, transaction_version, guard
            )
        if leader_epoch >= 0:
            self._epochs.assign(leader_epoch, batches[0].base_offset)
        self._maybe_roll(batches, records.size_in_bytes, now_ms)
        local.append(records.content, batches)
        if updates:
            self._apply(updates, completed)
        end_offset = producers.map_end_offset = local.log_end_offset
        log_append_time = now_ms if config.stamps_append_time else -1
        return LogAppendInfo(batches[0].base_offset, end_offset - 1, log_append_time)

    def append_as_received(self, content: WireBytes, batches: list[RecordBatch]) -> None:
        """Append batches of the leader as they are, all or none.

        Sequences and producer epochs are not checked: the leader has accepted them.

        Args:
            content: Memory of the batches.
            batches: The batches, in order, from the log end offset on.

        Raises:
            CorruptRecordError: A transaction marker is malformed.
            OSError: A write failed; the log is unchanged if the truncation succeeded.
        """
        local = self._local
        updates, completed = self._prepare_producers(batches, None)
        epochs = self._epochs
        for batch in batches:
            epoch = batch.partition_leader_epoch
            if epoch >= 0 and epoch != epochs.latest_epoch:
                epochs.assign(epoch, batch.base_offset)
        self._maybe_roll(batches, len(content), self._clock.wall_ms())
        local.append(content, batches)
        if updates:
            self._apply(updates, completed)
        self._producers.map_end_offset = local.log_end_offset

    def _maybe_roll(self, batches: list[RecordBatch], size: int, now_ms: int) -> None:
        """Roll a new segment if these batches do not fit into the active one."""
        local = self._local
        segments, latest = local.segments, batches[0].max_timestamp
        if len(batches) > 1:
            latest = max([batch.max_timestamp for batch in batches])
        last_offset = batches[-1].last_offset
        if segments.last.should_roll(size, last_offset, latest, local.config, now_ms):
            self.roll(batches[0].base_offset)

    def roll(self, expected_next_offset: int = 0) -> None:
        """Roll a new segment and take a snapshot of the producer state at its start."""
        segment = self._local.roll(expected_next_offset)
        self._producers.map_end_offset = segment.base_offset
        self._producers.take_snapshot()

    def _prepare_producers(
        self,
        batches: list[RecordBatch],
        origin: AppendOrigin | None,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> tuple[list[ProducerAppendInfo], list[CompletedTxn]]:
        updates: dict[int, ProducerAppendInfo] = {}
        completed = []
        for batch in batches:
            if batch.producer_id < 0:
                continue
            info = updates.get(batch.producer_id)
            if info is None:
                info = self._producers.prepare_update(
                    batch.producer_id, origin, transaction_version, guard
                )
                updates[batch.producer_id] = info
            if not batch.attributes & CONTROL_FLAG:
                info.append_data(batch)
            elif (ended := info.append_marker(batch)) is not None:
                completed.append(ended)
        return list(updates.values()), completed

    def _apply(self, updates: list[ProducerAppendInfo], completed: list[CompletedTxn]) -> None:
        for info in updates:
            self._producers.update(info)
        for txn in completed:
            stable = self._producers.last_stable_offset(txn)
            if txn.aborted:
                self._local.append_aborted_txn(txn.index_entry(stable))
            self._producers.complete_txn(txn)


def _duplicate_info(batch: BatchMetadata) -> LogAppendInfo:
    """Return the offsets of the batch that was appended first.

    As in Kafka (UnifiedLog.append), the append time is the batch's max timestamp, whether the
    client or the broker set it.
    """
    return LogAppendInfo(
        batch.first_offset,
        batch.last_offset,
        log_append_time=batch.timestamp,
        duplicate=True,
    )
