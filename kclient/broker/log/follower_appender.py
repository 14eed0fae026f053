"""Append path of a follower: batches as the leader has written them (Kafka: appendAsFollower)."""

from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_offset_metadata import LogAppendInfo
from kclient.broker.log.log_state import LogState
from kclient.broker.log.memory_records import MemoryRecords
from kclient.common.errors import InvalidOffsetError
from kclient.record import RecordBatch


class FollowerAppender:
    """Validates batches that were fetched from a leader, and appends their bytes unchanged.

    Guarded by the log's lock, which the caller holds.
    """

    def __init__(self, state: LogState, appender: LogAppender) -> None:
        self._state = state
        self._local = state.local
        self._epochs = state.epochs
        self._appender = appender

    def append(
        self, records: MemoryRecords, leader_epoch: int, *, verify: bool
    ) -> LogAppendInfo | None:
        """Append the whole batches up to an epoch; return None if there are none.

        Raises:
            KafkaError: As `UnifiedLog.append_as_follower`.
            OSError: A write failed; the log is unchanged if the truncation succeeded.
        """
        batches = self._valid_batches(records, leader_epoch, verify=verify)
        if not batches:
            return None
        self._start_at_batch(batches[0])
        size = sum(batch.size_in_bytes for batch in batches)
        self._appender.append_as_received(records.content[:size], batches)
        start_offset = self._state.log_start_offset
        if batches[0].base_offset < start_offset:
            self._epochs.truncate_from_start(start_offset)
        first, last = batches[0].base_offset, batches[-1].last_offset
        return LogAppendInfo(first, last, log_start_offset=start_offset)

    def _valid_batches(
        self, records: MemoryRecords, leader_epoch: int, *, verify: bool
    ) -> list[RecordBatch]:
        """Return the whole batches before the first one of an epoch above `leader_epoch`.

        A batch of a later epoch was appended by another leader than the one that was asked: whether
        the batches before it are still the log's must be validated first, by the next fetch.
        """
        valid: list[RecordBatch] = []
        next_offset = 0
        for batch in records.batches:
            if batch.partition_leader_epoch > leader_epoch:
                return valid
            if verify:
                batch.check_counts()
                batch.ensure_valid()
            if batch.base_offset < next_offset:
                raise InvalidOffsetError(
                    f"{self._state.partition}: got a batch at offset {batch.base_offset}, "
                    f"expected {next_offset} or above"
                )
            next_offset = batch.next_offset
            valid.append(batch)
        if records.error is not None:
            raise records.error
        return valid

    def _start_at_batch(self, batch: RecordBatch) -> None:
        """Check that a batch follows the log; an empty log is moved to its base offset.

        The log start offset may be inside of a batch, after a deletion of records: the leader
        returns the batch as a whole. Compaction may have removed the batches in between.

        Raises:
            InvalidOffsetError: The batch begins before the log's end.
        """
        state, base_offset = self._state, batch.base_offset
        end_offset = self._local.log_end_offset
        if base_offset >= end_offset:
            return
        if state.log_start_offset != end_offset or batch.next_offset <= end_offset:
            raise InvalidOffsetError(
                f"{state.partition}: got a batch at offset {base_offset}, expected the log end "
                f"offset {end_offset} or above"
            )
        state.truncate_fully_and_start_at(base_offset, end_offset)
