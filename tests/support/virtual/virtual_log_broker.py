"""A scripted broker with logs and one group, for tests of consumers in virtual time."""

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kclient.common.types import Node, TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kclient.protocol.messages.log_offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kclient.record import RECORD_BATCH_OVERHEAD, RecordBatch, RecordBatchBuilder, crc32c
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.support.clients.scripted_broker import ScriptedBroker, framed
from tests.support.virtual.virtual_group import VirtualGroup

READ_COMMITTED = 1
UNKNOWN_TOPIC_ID = 100
LENGTH_AT = 8
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
COUNT_AT = 57


@dataclass
class VirtualLog:
    """A partition: whole batches, as bytes."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    last_stable_offset: int | None = None
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first, last
    epoch_ends: dict[int, int] = field(default_factory=dict)
    preferred_replica: int = -1

    def append(
        self,
        *values: bytes,
        offsets: Sequence[int] | None = None,
        epoch: int = 1,
        producer_id: int = -1,
    ) -> None:
        """Append one batch; `offsets` leave holes, as compaction does."""
        wanted = offsets or range(self.end_offset, self.end_offset + len(values))
        builder = RecordBatchBuilder(bytearray(1 << 16), base_offset=wanted[0])
        for offset, value in zip(wanted, values, strict=True):
            builder.append_with_offset(offset, 1000 + offset, b"k%d" % offset, value)
        transaction = (producer_id, 0, 0) if producer_id >= 0 else ()
        sealed = builder.seal(
            *transaction, transactional=producer_id >= 0, partition_leader_epoch=epoch
        )
        self.append_bytes(wanted[0], wanted[-1] + 1, bytes(sealed))

    def append_bytes(self, base: int, end: int, batch: bytes) -> None:
        self.batches.append((base, end, batch))
        self.end_offset = end

    def stable_end(self, isolation: int) -> int:
        if isolation == READ_COMMITTED and self.last_stable_offset is not None:
            return self.last_stable_offset
        return self.end_offset

    def read(self, offset: int, limit: int, isolation: int) -> bytes:
        end = self.stable_end(isolation)
        parts = [data for base, last, data in self.batches if last > offset and base < end]
        taken = b""
        for data in parts:
            if taken and len(taken) + len(data) > limit:
                # As a real broker does: cut anywhere.
                return taken + data[: limit - len(taken)]
            taken += data
        return taken


class VirtualLogBroker(ScriptedBroker):
    """Serves fetches, look-ups and a group.

    Attributes:
        logs: Partitions by name.
        failures: Error codes of the next responses, by API.
        fetches: Every fetch request, in order.
        response_limit: Bytes of records in a response, as fetch.max.bytes; the first batch always
            fits.
        cut_first_batches: Whether every batch is cut, even where a whole one is owed.
    """

    def __init__(self, node: Node, clock: VirtualClock) -> None:
        super().__init__(node)
        self.clock = clock
        self.logs: dict[TopicPartition, VirtualLog] = {}
        self.failures: dict[ApiKey, deque[int]] = {}
        self.fetches: list[FetchRequest] = []
        self.response_limit = 1 << 30
        self.cut_first_batches = False
        self.group = VirtualGroup(node, self.failures)
        self.versions |= {
            ApiKey.FETCH: (4, 18),
            ApiKey.LIST_OFFSETS: (1, 11),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
            ApiKey.FIND_COORDINATOR: (0, 6),
            ApiKey.JOIN_GROUP: (0, 9),
            ApiKey.SYNC_GROUP: (0, 5),
            ApiKey.HEARTBEAT: (0, 4),
            ApiKey.LEAVE_GROUP: (0, 5),
            ApiKey.OFFSET_COMMIT: (2, 10),
            ApiKey.OFFSET_FETCH: (1, 10),
        }
        self._socket: VirtualSocket | None = None
        self._waiting: list[tuple[VirtualSocket, RequestHeader, FetchRequest]] = []

    def add_topic(self, name: str, partitions: int = 1) -> list[TopicPartition]:
        self.topics[name] = [self.node.id] * partitions
        self.topic_ids[name] = name.encode().ljust(16, b"-")
        made = [TopicPartition(name, number) for number in range(partitions)]
        for partition in made:
            self.logs[partition] = VirtualLog()
        return made

    def fail(self, api: ApiKey, *codes: int) -> None:
        self.failures.setdefault(api, deque()).extend(codes)

    def asked_for(self, api: ApiKey) -> int:
        return sum(header.api_key is api for header in self.asked)

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        self._socket = socket
        for waiting in list(self._waiting):
            if waiting[0] is socket:  # responses of one connection keep their order
                self._complete(waiting)
        super().received(socket, data)

    def respond(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if isinstance(request, FetchRequest):
            return self._fetch(header, request)
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(request)
        if isinstance(request, OffsetForLeaderEpochRequest):
            return self._epoch_ends(request)
        response = self.group.respond(request, header.api_version)
        return response if response is not None else super().respond(header, request)

    # --- fetch

    def _fetch(self, header: RequestHeader, request: FetchRequest) -> FetchResponse | None:
        self.fetches.append(request)
        response = self.fetch_response(request)
        if any(
            data.records or data.error_code for t in response.responses for data in t.partitions
        ):
            return response
        # No data: the response follows when data arrives or the time expires.
        assert self._socket is not None
        waiting = (self._socket, header, request)
        self._waiting.append(waiting)
        self.clock.after(request.max_wait_ms, lambda: self._complete(waiting))
        return None

    def arrived(self) -> None:
        """Respond to the fetches that wait for data."""
        for waiting in list(self._waiting):
            self._complete(waiting)

    def _complete(self, waiting: tuple[VirtualSocket, RequestHeader, FetchRequest]) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            socket, header, request = waiting
            if not socket.closed:
                socket.deliver(framed(self.fetch_response(request), header))

    def fetch_response(self, request: FetchRequest) -> FetchResponse:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        failures = self.failures.get(ApiKey.FETCH)
        response = FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[
                        self._fetched(
                            TopicPartition(
                                topic.topic or names.get(topic.topic_id, ""), part.partition
                            ),
                            part,
                            request.isolation_level,
                            failures.popleft() if failures else 0,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
        self._cut(response)
        return response

    def _cut(self, response: FetchResponse) -> None:
        """Limit the size of the response, except for its first batch."""
        left = self.response_limit
        for topic in response.responses:
            for data in topic.partitions:
                records = data.records
                assert isinstance(records, bytes | None)
                if records and self.cut_first_batches:
                    data.records = records[:70]
                elif records:
                    owed = _size_of_first(records) if left == self.response_limit else 0
                    data.records = records[: max(left, owed)]
                    left = max(0, left - len(data.records))

    def _fetched(
        self, name: TopicPartition, asked: FetchPartition, isolation: int, error: int
    ) -> PartitionData:
        log = self.logs.get(name) or VirtualLog()
        if name.topic not in self.topics:
            error = error or UNKNOWN_TOPIC_ID
        if not error and asked.current_leader_epoch >= 0:
            stale = asked.current_leader_epoch < self.epoch
            error = 74 if stale else 75 if asked.current_leader_epoch > self.epoch else 0
        if not error and not log.start_offset <= asked.fetch_offset <= log.end_offset:
            error = 1
        data = PartitionData(
            partition_index=name.partition,
            error_code=error,
            high_watermark=log.end_offset,
            last_stable_offset=log.stable_end(READ_COMMITTED),
            log_start_offset=log.start_offset,
            preferred_read_replica=log.preferred_replica,
        )
        if not error:
            data.records = log.read(asked.fetch_offset, asked.partition_max_bytes, isolation)
            data.aborted_transactions = [
                AbortedTransaction(producer_id=producer, first_offset=first)
                for producer, first, last in log.aborted
                if last >= asked.fetch_offset
            ]
        return data

    # --- look-ups

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._offset(
                            TopicPartition(topic.name, part.partition_index), part, request
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _offset(
        self, name: TopicPartition, asked: ListOffsetsPartition, request: ListOffsetsRequest
    ) -> ListOffsetsPartitionResponse:
        failures = self.failures.get(ApiKey.LIST_OFFSETS)
        if failures:
            return ListOffsetsPartitionResponse(
                partition_index=name.partition, error_code=failures.popleft()
            )
        log = self.logs[name]
        offset = {
            -1: log.stable_end(request.isolation_level),
            -2: log.start_offset,
        }.get(asked.timestamp)
        if offset is None:
            # The record at offset n has the timestamp 1000 + n.
            offset = max(log.start_offset, asked.timestamp - 1000)
            offset = offset if offset < log.end_offset else -1
        return ListOffsetsPartitionResponse(
            partition_index=name.partition,
            offset=offset,
            timestamp=1000 + offset if asked.timestamp >= 0 and offset >= 0 else -1,
            leader_epoch=self.epoch if offset >= 0 else -1,
        )

    def _epoch_ends(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        failures = self.failures.get(ApiKey.OFFSET_FOR_LEADER_EPOCH)
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        EpochEndOffset(
                            partition=part.partition,
                            error_code=failures.popleft() if failures else 0,
                            leader_epoch=part.leader_epoch,
                            end_offset=self._epoch_end(
                                TopicPartition(topic.topic, part.partition), part.leader_epoch
                            ),
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _epoch_end(self, name: TopicPartition, epoch: int) -> int:
        log = self.logs[name]
        return log.epoch_ends.get(epoch, log.end_offset)


def _size_of_first(records: bytes) -> int:
    """Returns what the first batch says of its size, be it a lie."""
    return 12 + int(struct.unpack_from(">i", records, 8)[0])


def without_last_record(batch: bytes) -> bytes:
    """Return a batch as compaction leaves it: the last record gone, the last offset kept."""
    header = RecordBatch(batch)
    builder = RecordBatchBuilder(bytearray(len(batch)), base_offset=header.base_offset)
    for record in header.records()[:-1]:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    made = bytearray(builder.seal(partition_leader_epoch=header.partition_leader_epoch))
    return _with_last_offset(made, header.last_offset_delta)


def without_records(batch: bytes) -> bytes:
    """Return a batch as compaction leaves the last one of a producer: the header alone."""
    made = bytearray(batch[:RECORD_BATCH_OVERHEAD])
    struct.pack_into(">i", made, LENGTH_AT, RECORD_BATCH_OVERHEAD - LENGTH_AT - 4)
    struct.pack_into(">i", made, COUNT_AT, 0)
    return _with_last_offset(made, RecordBatch(batch).last_offset_delta)


def _with_last_offset(batch: bytearray, delta: int) -> bytes:
    struct.pack_into(">i", batch, LAST_OFFSET_DELTA_AT, delta)
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[ATTRIBUTES_AT:])))
    return bytes(batch)
