"""Fetched data of one partition, decoded on demand (Kafka: CompletedFetch)."""

import heapq
from collections import deque
from collections.abc import Iterable

from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice, WirePart
from kclient.common.interrupts import signals_take_effect
from kclient.consumer.consumer_config import READ_COMMITTED, ConsumerConfig
from kclient.consumer.errors import IncompleteBatchError, lacks_place, unreadable
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.messages.fetch import PartitionData
from kclient.record import (
    BatchCursor,
    ColumnBuilder,
    ConsumerRecord,
    ControlRecordType,
    RecordBatch,
    read_batches,
)


class NodeBacklog:
    """Buffered bytes of one broker compared to the size of its last response.

    The next fetch is sent when half of the last response is consumed: the next response arrives
    while the rest is processed, and at most one and a half responses are buffered.

    Attributes:
        bytes: Buffered bytes.
        moved: Whether bytes were consumed since `moved` was last cleared.
    """

    __slots__ = ("_last_response_bytes", "bytes", "moved")

    def __init__(self) -> None:
        self.bytes = 0
        self.moved = False
        self._last_response_bytes = 0

    def add(self, size: int) -> None:
        """Add bytes that arrived, or that count again after a pause."""
        self.bytes += size

    def use(self, size: int) -> None:
        """Remove bytes that were consumed or dropped."""
        self.bytes -= size
        self.moved = True

    def mark_response(self, size: int) -> None:
        """Set the size of the last response."""
        self._last_response_bytes = size
        self.moved = True

    def is_low(self) -> bool:
        """Return whether the next fetch should be sent."""
        return self.bytes * 2 <= self._last_response_bytes


class AbortedTransactions:
    """Identifies the batches that a read_committed consumer skips, in offset order.

    Args:
        listed: First offset and producer id of each aborted transaction, in any order.
    """

    def __init__(self, listed: Iterable[tuple[int, int]]) -> None:
        self._ahead = list(listed)
        heapq.heapify(self._ahead)
        self._open: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        """Return whether the batch is part of an aborted transaction; call once for each batch."""
        if not batch.has_producer_id:
            return False
        while self._ahead and self._ahead[0][0] <= batch.last_offset:
            self._open.add(heapq.heappop(self._ahead)[1])
        producer_id = batch.producer_id
        if batch.is_control:
            if producer_id in self._open and _is_abort_marker(batch):
                self._open.discard(producer_id)
            return False
        return batch.is_transactional and producer_id in self._open


def _is_abort_marker(batch: RecordBatch) -> bool:
    records = batch.records()
    return bool(records) and ControlRecordType.parse(records[0].key) is ControlRecordType.ABORT


class CompletedFetch:
    """Batches of one partition in a fetch response, and the position of the next record.

    Only the batch headers are read when the response arrives. `take` verifies and decodes the
    batches, in slices.

    The first partition of a response that has data contains at least one whole batch, of any size
    (KIP-74). An incomplete batch elsewhere is ignored: the next request fetches it again.

    Attributes:
        state: The assignment of the partition that the fetch was made for.
        data: The partition's part of the response, without its records.
        fetch_offset: Offset in the request.
        next_fetch_offset: Offset of the next record to return.
        last_epoch: Leader epoch of the last batch returned, -1 if unknown.
        end: Position after the last batch; None if the data ends with an error.
        size: Size of the batches in bytes.
        unread: Records that were put back; `take` returns them first, and no others.
        initialized: Whether the log start offset, the high watermark and the last stable offset
            were copied to `state`.
    """

    def __init__(
        self,
        state: TopicPartitionState,
        data: PartitionData,
        position: FetchPosition,
        backlog: NodeBacklog,
        config: ConsumerConfig,
        *,
        deserializes: bool,
        owed_a_batch: bool = True,
    ) -> None:
        self.state = state
        self.data = data
        self.fetch_offset = position.offset
        self.next_fetch_offset = position.offset
        self.last_epoch = position.offset_epoch
        self.initialized = False
        self._config = config
        self._deserializes = deserializes
        self._backlog = backlog
        self._set_aside = False
        self._batches: deque[RecordBatch] = deque()
        # Batches that were opened before and put back; `_is_visible` is called once per batch.
        self._reopened: deque[RecordBatch] = deque()
        self._tail_error: KafkaError | None = None
        self._batch: RecordBatch | None = None
        self._cursor: BatchCursor | None = None
        # Batches of the last take, and the records of it that were put back.
        self._touched: list[RecordBatch] = []
        self.unread: list[ConsumerRecord] = []
        self._after_unread = 0
        self._epoch_before = position.offset_epoch
        self._aborted = _aborted(data, config)
        self.size = self._remaining = self._read_headers(data.records, owed_a_batch)
        self.end = self._end_position(position)
        data.records = None

    def is_exhausted(self) -> bool:
        """Return whether all records were returned."""
        return not (
            self._batches
            or self._reopened
            or self.unread
            or self._tail_error is not None
            or self._cursor is not None
        )

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return the next records, at most `max_records`; none only if there are no more.

        Raises:
            UnreadableBatchError: The next batch is corrupt; the position stays before it.
            RecordDeserializationError: A deserializer raised; the position stays at the record.
        """
        self._epoch_before = self.last_epoch
        if self.unread:
            return self._take_unread(max_records)
        self._touched = [] if self._batch is None else [self._batch]
        taken: list[ConsumerRecord] = []
        try:
            while len(taken) < max_records:
                cursor = self._cursor or self._next_cursor()
                if cursor is None:
                    break
                if self._deserializes:
                    with signals_take_effect():  # in code of the application
                        records = cursor.take(max_records - len(taken))
                else:
                    records = cursor.take(max_records - len(taken))
                taken = taken + records if taken else records
                self._follow(cursor)
        except KafkaError as error:
            # Records before the error are returned; the next call raises it again.
            if not taken:
                # The cause has no name: a local variable would create a reference cycle.
                raise self._located(error, self._batch) from (
                    error if lacks_place(error) else error.__cause__
                )
        return taken

    def take_columns(self, columns: ColumnBuilder, max_records: int) -> int:
        """Move the next records into columns, at most `max_records`, and return how many.

        Raises:
            UnreadableBatchError: As `take`.
        """
        unread = self.unread
        self._reopen_unread()
        taken = 0
        try:
            while taken < max_records:
                cursor = self._cursor or self._next_cursor()
                if cursor is None:
                    break
                count = cursor.take_columns(columns, max_records - taken)
                taken += count
                self._follow(cursor)
                if count == 0 and self._cursor is not None:
                    break  # the columns are full
        except KafkaError as error:
            if not taken:
                # The cause has no name: a local variable would create a reference cycle.
                raise self._located(error, self._batch) from (
                    error if lacks_place(error) else error.__cause__
                )
        if unread:
            self._keep_unread([each for each in unread if each.offset >= self.next_fetch_offset])
        return taken

    def put_back(self, records: list[ConsumerRecord], consumed: int) -> None:
        """Put back the records of the last `take` that the application has not consumed.

        Args:
            records: Records of the last `take`, after interceptors; these may return fewer.
            consumed: Number of them that the application has consumed.
        """
        unread = records[consumed:]
        if not unread:
            return
        if not self.unread:
            self._after_unread = self.next_fetch_offset
        self.unread = unread + self.unread
        self.next_fetch_offset = unread[0].offset
        self.last_epoch = records[consumed - 1].leader_epoch if consumed else self._epoch_before

    def follow_pause(self) -> bool:
        """Return whether the partition is paused.

        The data of a paused partition does not count against the broker's backlog.
        """
        paused = self.state.paused
        if paused != self._set_aside:
            self._set_aside = paused
            if paused:
                self._backlog.use(self._remaining)
            else:
                self._backlog.add(self._remaining)
        return paused

    def drop(self) -> None:
        """Discard all data."""
        self._use(self._remaining)
        self._batches.clear()
        self._reopened.clear()
        self._touched = []
        self.unread = []
        self._batch = self._cursor = self._tail_error = None

    # --- inside

    def _read_headers(self, records: WirePart | None, owed_a_batch: bool) -> int:  # noqa: FBT001
        """Read the batch headers and return the size of the batches to return.

        An incomplete batch at the end is ignored.
        """
        if records is None or isinstance(records, FileSlice) or not len(records):
            return 0
        size = 0
        try:
            for batch in read_batches(records):
                size += batch.size_in_bytes
                if batch.last_offset >= self.fetch_offset:
                    self._batches.append(batch)
                else:
                    size -= batch.size_in_bytes
        except KafkaError as error:
            self._tail_error = self._located(error, None)
        if not self._batches and self._tail_error is None and owed_a_batch:
            self._tail_error = IncompleteBatchError(
                self.state.partition,
                self.fetch_offset,
                self.fetch_offset + 1,
                f"got {len(records)} bytes, expected at least one whole batch; raise "
                "max_partition_fetch_bytes and fetch_max_bytes if it is larger",
            )
        return size

    def _end_position(self, position: FetchPosition) -> FetchPosition | None:
        if self.data.error_code or self._tail_error is not None:
            return None
        if not self._batches:
            return position
        last = self._batches[-1]
        return position._replace(offset=last.next_offset, offset_epoch=last.partition_leader_epoch)

    def _next_cursor(self) -> BatchCursor | None:
        """Open the next batch that has visible records."""
        while self._reopened:
            batch = self._reopened[0]
            if batch.last_offset >= self.next_fetch_offset:
                return self._open(self._reopened)
            self._pass(batch)
            self._reopened.popleft()
        while self._batches:
            batch = self._batches[0]
            self._verify(batch)
            if self._is_visible(batch):
                return self._open(self._batches)
            self._pass(batch)
            self._batches.popleft()
        if self._tail_error is not None:
            raise self._tail_error
        return None

    def _open(self, batches: deque[RecordBatch]) -> BatchCursor:
        """Open the first of some batches and remove it from them."""
        batch = batches[0]
        topic, partition = self.state.partition
        cursor = BatchCursor(
            batch,
            topic,
            partition,
            self.next_fetch_offset,
            key_deserializer=self._config.key_deserializer,
            value_deserializer=self._config.value_deserializer,
        )
        self._cursor = cursor
        self._batch = batch
        self._touched.append(batch)
        batches.popleft()
        return cursor

    def _is_visible(self, batch: RecordBatch) -> bool:
        hidden = self._aborted is not None and self._aborted.hides(batch)
        return not hidden and not batch.is_control

    def _verify(self, batch: RecordBatch) -> None:
        if not self._config.check_crcs:
            return
        try:
            batch.ensure_valid()
        except KafkaError as error:
            raise self._located(error, batch) from error

    def _follow(self, cursor: BatchCursor) -> None:
        """Update the position from a cursor."""
        batch = self._batch
        if batch is None:
            return
        self.last_epoch = batch.partition_leader_epoch
        if cursor.exhausted:
            self._pass(batch)
            self._batch = self._cursor = None
        else:
            self.next_fetch_offset = cursor.position

    def _pass(self, batch: RecordBatch) -> None:
        self.next_fetch_offset = max(self.next_fetch_offset, batch.next_offset)
        self.last_epoch = batch.partition_leader_epoch
        self._use(batch.size_in_bytes)

    def _use(self, size: int) -> None:
        self._remaining -= size
        if not self._set_aside:
            self._backlog.use(size)

    def _take_unread(self, max_records: int) -> list[ConsumerRecord]:
        taken, self.unread = self.unread[:max_records], self.unread[max_records:]
        self.next_fetch_offset = self.unread[0].offset if self.unread else self._after_unread
        self.last_epoch = taken[-1].leader_epoch
        return taken

    def _reopen_unread(self) -> None:
        """Requeue the batches of records that were put back, ahead of all others."""
        if self.unread:
            again = [each for each in self._touched if each.last_offset >= self.next_fetch_offset]
            for batch in again:
                if batch is not self._batch:
                    self._use(-batch.size_in_bytes)
            self._reopened.extendleft(reversed(again))
            self._batch = self._cursor = None
            self.unread = []
        self._touched = []

    def _keep_unread(self, records: list[ConsumerRecord]) -> None:
        """Keep the records of the reopened batches that the columns did not take.

        They are not decoded or passed to interceptors a second time.
        """
        if records:
            if self._batch is not None:
                self._reopened.appendleft(self._batch)
            self._batch = self._cursor = None
            self._touched = []
            self.unread = records

    def _located(self, error: KafkaError, batch: RecordBatch | None) -> KafkaError:
        """Add partition and offset to an error of a batch, or of the data after the last one."""
        if batch is not None:
            offset = max(self.next_fetch_offset, batch.base_offset)
            return unreadable(error, self.state.partition, offset, batch.next_offset)
        good = self._batches[-1].next_offset if self._batches else self.fetch_offset
        return unreadable(error, self.state.partition, good, good + 1)


def _aborted(data: PartitionData, config: ConsumerConfig) -> AbortedTransactions | None:
    if config.isolation_level != READ_COMMITTED:
        return None
    return AbortedTransactions(
        (entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or ()
    )
