"""Fetched data of one partition, decoded on demand (Kafka: CompletedFetch)."""

import heapq
from collections.abc import Callable, Iterable

from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice
from kclient.common.interrupts import signals_take_effect
from kclient.common.types import TopicPartition
from kclient.consumer.consumer_config import READ_COMMITTED, ConsumerConfig
from kclient.consumer.errors import IncompleteBatchError, lacks_place, unreadable
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.messages.fetch import PartitionData
from kclient.record import (
    ColumnBuilder,
    ConsumerRecord,
    ControlRecordType,
    PartitionCursor,
    iter_records,
)
from kclient.record.record_batch import AbstractRecordBatch


class NodeBacklog:
    """Buffered bytes of one broker compared to the size of its last response.

    The next fetch is sent when half of the last response is consumed: the next response arrives
    while the rest is processed, and at most one and a half responses are buffered.

    Attributes:
        bytes: Buffered bytes.
    """

    __slots__ = ("_last_response_bytes", "_moved", "_node_id", "bytes")

    def __init__(self, node_id: int, moved: "dict[int, NodeBacklog]") -> None:
        """Initialize.

        Args:
            node_id: The broker.
            moved: Receives the backlog by broker when bytes are consumed.
        """
        self.bytes = 0
        self._node_id = node_id
        self._moved = moved
        self._last_response_bytes = 0

    def add(self, size: int) -> None:
        """Add bytes that count again after a pause."""
        self.bytes += size

    def use(self, size: int) -> None:
        """Remove bytes that were consumed or dropped."""
        self.bytes -= size
        self._moved[self._node_id] = self

    def add_response(self, size: int) -> None:
        """Add a response."""
        self.bytes += size
        self._last_response_bytes = size
        self._moved[self._node_id] = self

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

    def hides(self, batch: AbstractRecordBatch) -> bool:
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


def _is_abort_marker(batch: AbstractRecordBatch) -> bool:
    record = next(iter_records(batch), None)
    return record is not None and ControlRecordType.parse(record.key) is ControlRecordType.ABORT


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
        trace: Marks of the response by a tracer, None without one.
        unread: Records that were put back; `take` returns them first, and no others.
        initialized: Whether the log start offset, the high watermark and the last stable offset
            were copied to `state`.
        is_aside: Whether the partition is paused, so that the data is not part of the backlog.
    """

    __slots__ = (
        "_after_unread",
        "_backlog",
        "_cursor",
        "_deserializes",
        "_epoch_before",
        "_remaining",
        "_tail_error",
        "data",
        "end",
        "fetch_offset",
        "initialized",
        "is_aside",
        "last_epoch",
        "next_fetch_offset",
        "size",
        "state",
        "trace",
        "unread",
    )

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
        trace: object = None,
    ) -> None:
        self.state = state
        self.data = data
        self.fetch_offset = self.next_fetch_offset = position.offset
        self.last_epoch = self._epoch_before = position.offset_epoch
        self.initialized = False
        self.trace = trace
        self._deserializes = deserializes
        self._backlog = backlog
        self.is_aside = False
        # Records of the last take that were put back, and the offset after them.
        self.unread: list[ConsumerRecord] = []
        self._after_unread = 0
        cursor = self._cursor = _cursor(state.partition, data, position, config)
        self.size = self._remaining = cursor.size
        self._tail_error = self._found_error(owed_a_batch=owed_a_batch)
        self.end: FetchPosition | None = None
        if not data.error_code and self._tail_error is None:
            self.end = FetchPosition(cursor.end_offset, cursor.end_epoch, position.leader)
        data.records = None

    def is_exhausted(self) -> bool:
        """Return whether all records were returned."""
        return not (self._cursor.remaining or self.unread or self._tail_error is not None)

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return the next records, at most `max_records`; none only if there are no more.

        Raises:
            UnreadableBatchError: The next batch is corrupt; the position stays before it.
            RecordDeserializationError: A deserializer raised; the position stays at the record.
        """
        self._epoch_before = self.last_epoch
        if self.unread:
            return self._take_unread(max_records)
        cursor = self._cursor
        try:
            if self._deserializes:
                with signals_take_effect():  # in code of the application
                    taken = cursor.take(max_records)
            else:
                taken = cursor.take(max_records)
        except KafkaError as error:
            # The cause has no name: a local variable would create a reference cycle.
            raise self._located(error) from (error if lacks_place(error) else error.__cause__)
        except BaseException:  # an interrupt after the cursor has moved
            cursor.seek(self.next_fetch_offset, self.last_epoch)
            raise
        self._follow()
        if not taken and self._tail_error is not None:
            raise self._tail_error
        return taken

    def take_columns(self, columns: ColumnBuilder, max_records: int) -> int:
        """Move the next records into columns, at most `max_records`, and return how many.

        Raises:
            UnreadableBatchError: As `take`.
        """
        unread, self.unread = self.unread, []
        if unread:
            self._cursor.seek(self.next_fetch_offset, self.last_epoch)
        try:
            taken = self._cursor.take_columns(columns, max_records)
        except KafkaError as error:
            raise self._located(error) from (error if lacks_place(error) else error.__cause__)
        self._follow()
        if unread:
            # The rest is not decoded or passed to interceptors a second time.
            self.unread = [each for each in unread if each.offset >= self.next_fetch_offset]
        if not taken and self._tail_error is not None:
            raise self._tail_error
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

    def set_aside(self, *, paused: bool) -> None:
        """Remove the data of a paused partition from the broker's backlog, or add it again."""
        if paused == self.is_aside:
            return
        self.is_aside = paused
        if paused:
            self._backlog.use(self._remaining)
        else:
            self._backlog.add(self._remaining)

    def drop(self) -> None:
        """Discard all data."""
        self._use(self._remaining)
        self._cursor = _NO_DATA
        self.unread = []
        self._tail_error = None

    # --- inside

    def _found_error(self, *, owed_a_batch: bool) -> KafkaError | None:
        """Return the error of the data after the last batch; an incomplete batch is none."""
        cursor, data = self._cursor, self.data.records
        if cursor.problem is not None:
            place = (cursor.end_offset, cursor.end_offset + 1)
            return unreadable(cursor.problem, self.state.partition, *place)
        if not owed_a_batch or cursor.size or not data or isinstance(data, FileSlice):
            return None
        return IncompleteBatchError(
            self.state.partition,
            self.fetch_offset,
            self.fetch_offset + 1,
            f"got {len(data)} bytes, expected at least one whole batch; raise "
            "max_partition_fetch_bytes and fetch_max_bytes if it is larger",
        )

    def _follow(self) -> None:
        """Update position and backlog from the cursor."""
        cursor = self._cursor
        self.next_fetch_offset = cursor.position
        self.last_epoch = cursor.last_epoch
        self._use(self._remaining - cursor.remaining)

    def _use(self, size: int) -> None:
        """Remove bytes from the backlog; a negative number of those that are read again."""
        if size:
            self._remaining -= size
            if not self.is_aside:
                self._backlog.use(size)

    def _take_unread(self, max_records: int) -> list[ConsumerRecord]:
        taken, self.unread = self.unread[:max_records], self.unread[max_records:]
        self.last_epoch = taken[-1].leader_epoch
        if self.unread:
            self.next_fetch_offset = self.unread[0].offset
        else:
            self._cursor.seek(self._after_unread, self.last_epoch)
            self._follow()
        return taken

    def _located(self, error: KafkaError) -> KafkaError:
        """Add partition and offset to an error of the next batch."""
        return unreadable(error, self.state.partition, *self._cursor.place())


_NO_DATA = PartitionCursor(b"", "", 0)


def _cursor(
    partition: TopicPartition, data: PartitionData, position: FetchPosition, config: ConsumerConfig
) -> PartitionCursor:
    records = data.records
    return PartitionCursor(
        b"" if records is None or isinstance(records, FileSlice) else records,
        *partition,
        position.offset,
        position.offset_epoch,
        check_crcs=config.check_crcs,
        hides=_hides(data) if config.isolation_level == READ_COMMITTED else None,
        key_deserializer=config.key_deserializer,
        value_deserializer=config.value_deserializer,
        max_record_bytes=config.max_decompressed_record_bytes,
    )


def _hides(data: PartitionData) -> Callable[[AbstractRecordBatch], bool]:
    return AbortedTransactions(
        (entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or ()
    ).hides
