"""Fetch of partitions from a leader: requests, truncation, errors and their pauses."""

import threading

import pytest

from kclient.broker.coordinator.runtime.partition_log import TransactionEnd
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.fetch_params import FetchIsolation
from kclient.broker.replication.hosted_partitions import FollowedPartition
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replica_fetcher import (
    IDLE_MS,
    FetcherSettings,
    OnResponse,
    ReplicaFetcher,
    fetch_version,
    list_offsets_version,
    truncation_offset,
)
from kclient.broker.replication.replication_context import ReplicationContext
from kclient.common.errors import DisconnectedError
from kclient.common.files import WireBytes
from kclient.common.types import TopicPartition
from kclient.protocol.message import Request
from kclient.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.record import ProducerIdAndEpoch, read_batches
from tests.support.disks.log_bench import (
    NOW_MS,
    PARTITION,
    LogBench,
    ManualClock,
    make_batch,
    offsets,
)

TOPIC_ID = bytes(15) + b"\x33"
BACKOFF_MS = 1000.0


class Bench:
    """Fetcher of one partition, which broker 2 leads in epoch 5; the test is the leader."""

    def __init__(self, bench: LogBench, clock: ManualClock) -> None:
        self.clock = clock
        self.metadata_version = 25
        self.requests: list[tuple[Request, int, OnResponse]] = []
        self.changed: list[TopicPartition] = []
        self.log: UnifiedLog = bench.open(LogConfig())
        context = ReplicationContext(1, clock)
        self.partition = Partition(PARTITION, TOPIC_ID, context, self.log, threading.Condition())
        settings = FetcherSettings(1, lambda: 44, lambda: self.metadata_version)
        self.fetcher = ReplicaFetcher(
            settings, self, self, threading.Condition(), clock.monotonic_ms, self.changed.append
        )

    def follow(self, epoch: int = 5) -> None:
        change = self.partition.in_sync.partition_epoch + 1
        self.partition.apply(PartitionRegistration((1, 2), (2,), 2, epoch, change))
        self.fetcher.add([FollowedPartition(self.partition, 2, epoch)])

    def send(self, request: Request, version: int, on_response: OnResponse) -> None:
        assert request.encode_bytes(version)
        self.requests.append((request, version, on_response))

    def wakeup(self) -> None:
        """Do nothing: the test calls `step`."""

    def truncate_to(self, _partition: TopicPartition, offset: int) -> None:
        self.log.truncate_to(offset)

    def truncate_fully_and_start_at(self, _partition: TopicPartition, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)

    def step(self) -> float:
        return self.fetcher.step(self.clock.monotonic_ms())

    def asked(self) -> tuple[int, int]:
        """Send the next request, and return its offset and last epoch."""
        self.step()
        request = self.requests[-1][0]
        assert isinstance(request, FetchRequest)
        if not request.topics:
            return -1, -1
        part = request.topics[0].partitions[0]
        assert part.current_leader_epoch == 5
        return part.fetch_offset, part.last_fetched_epoch

    def respond(self, data: PartitionData | None = None, error: int = 0) -> None:
        partitions = [] if data is None else [data]
        topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)]
        self.requests[-1][2](FetchResponse(error_code=error, session_id=7, responses=topics))

    def respond_offset(self, offset: int, error: int = 0) -> int:
        """Respond to ListOffsets; return the timestamp that it has asked for."""
        request, version, on_response = self.requests[-1]
        assert isinstance(request, ListOffsetsRequest)
        assert (request.replica_id, version) == (1, 10)
        part = ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=error)
        topic = ListOffsetsTopicResponse(name="topic", partitions=[part])
        on_response(ListOffsetsResponse(topics=[topic]))
        return request.topics[0].partitions[0].timestamp


@pytest.fixture
def bench(bench: LogBench, clock: ManualClock) -> Bench:
    return Bench(bench, clock)


def batch(offset: int, epoch: int, count: int = 1) -> bytes:
    return placed(make_batch(count), offset, epoch)


def placed(made: WireBytes, offset: int, epoch: int) -> bytes:
    """Return a batch as the leader has it."""
    placed_batch = bytearray(made)
    next(iter(read_batches(placed_batch))).assign(offset, epoch)
    return bytes(placed_batch)


def fetched(
    records: bytes = b"", high_watermark: int = 0, log_start: int = 0, error: int = 0
) -> PartitionData:
    return PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start,
        records=records,
    )


def diverging(epoch: int, end_offset: int) -> PartitionData:
    made = fetched(batch(0, 5), high_watermark=1)
    made.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return made


def test_records_are_appended_before_the_offsets_of_the_leader(bench: Bench) -> None:
    bench.follow()
    assert bench.asked() == (0, -1)
    assert bench.step() == IDLE_MS  # one request is in flight
    bench.respond(fetched(batch(0, 3) + batch(1, 5, 4), high_watermark=3, log_start=2))
    log = bench.log
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (5, 3, 2)
    assert bench.changed == [PARTITION]
    assert bench.asked() == (5, 5)
    bench.respond(fetched(high_watermark=9))
    assert log.high_watermark == 5
    assert bench.asked() == (-1, -1)  # the session knows the position


def test_follower_is_read_up_to_its_own_last_stable_offset(bench: Bench) -> None:
    """The end of a transaction is stable when the high watermark has passed its marker."""
    bench.follow()
    bench.step()
    committed = FetchIsolation.TXN_COMMITTED
    opening = bytes(make_batch(producer=(7, 0, 0), transactional=True))
    end = TransactionEnd(ProducerIdAndEpoch(7, 0), True, 0)
    bench.respond(fetched(placed(opening, 0, 5) + batch(1, 5), high_watermark=2))
    assert bench.partition.readable_end(committed) == 0
    assert bench.asked() == (2, 5)
    bench.respond(fetched(placed(end.batch(NOW_MS), 2, 5), high_watermark=2))
    assert bench.partition.readable_end(committed) == 0
    bench.changed.clear()
    assert bench.asked() == (3, 5)
    bench.respond(fetched(high_watermark=3))
    assert bench.partition.readable_end(committed) == 3
    assert bench.changed == [PARTITION]  # completes the delayed fetches of its consumers


def test_request_has_replica_and_limits(bench: Bench) -> None:
    bench.follow()
    bench.step()
    request, version, _ = bench.requests[0]
    assert isinstance(request, FetchRequest)
    assert version == 17
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (1, 44)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)
    assert request.topics[0].partitions[0].partition_max_bytes == 1 << 20
    bench.respond()
    bench.metadata_version = 8
    bench.step()
    request, version, _ = bench.requests[1]
    assert isinstance(request, FetchRequest)
    assert (version, request.replica_id, request.replica_state.replica_id) == (13, 1, -1)


@pytest.mark.parametrize(
    ("level", "fetch", "list_offsets"),
    [(7, 13, 7), (9, 14, 8), (10, 15, 8), (19, 16, 8), (21, 17, 9), (25, 17, 10), (30, 18, 11)],
)
def test_versions_follow_the_metadata_version(level: int, fetch: int, list_offsets: int) -> None:
    assert (fetch_version(level), list_offsets_version(level)) == (fetch, list_offsets)


def fill(bench: Bench) -> None:
    """Append offsets 0 to 9: epoch 1 from 0 on, 3 from 4 on, 4 from 8 on."""
    for offset in range(10):
        epoch = 1 if offset < 4 else 3 if offset < 8 else 4
        bench.log.append_as_follower(batch(offset, epoch), 4)
    bench.log.high_watermark = 6


@pytest.mark.parametrize(
    ("epoch", "end", "expected"),
    [(3, 6, 6), (3, 9, 8), (3, 20, 8), (2, 5, 4), (1, 2, 2), (4, 9, 9), (0, 0, 0)],
)
def test_truncation_offset_is_the_end_of_the_common_epoch(
    bench: Bench, epoch: int, end: int, expected: int
) -> None:
    fill(bench)
    assert truncation_offset(bench.log, epoch, end) == expected


def test_diverging_log_is_truncated_and_nothing_else(bench: Bench) -> None:
    fill(bench)
    bench.follow()
    assert bench.asked() == (10, 4)
    bench.respond(diverging(3, 5))
    assert (bench.log.log_end_offset, bench.log.high_watermark) == (5, 5)
    assert bench.asked() == (5, 3)


def test_log_without_epochs_is_truncated_to_the_high_watermark(bench: Bench) -> None:
    for offset in range(4):
        bench.log.append_as_follower(batch(offset, -1), 4)
    bench.log.high_watermark = 2
    bench.follow()
    assert bench.asked() == (2, -1)


@pytest.mark.parametrize("error", [75, 6, 103, 100, 3])
def test_pause_is_short_until_the_leader_has_the_metadata(bench: Bench, error: int) -> None:
    bench.follow()
    pauses = []
    for _ in range(8):
        assert bench.step() == 0
        bench.respond(fetched(error=error))
        pauses.append(bench.step())
        bench.clock.elapsed_ms += int(pauses[-1])
    assert pauses == [20, 40, 80, 160, 320, 640, BACKOFF_MS, BACKOFF_MS]
    bench.step()
    bench.respond(fetched(batch(0, 5)))
    bench.step()
    bench.respond(fetched(error=error))
    assert bench.step() == 20


@pytest.mark.parametrize("error", [2, 56])
def test_partition_with_an_error_is_fetched_again_later(bench: Bench, error: int) -> None:
    bench.follow()
    bench.step()
    bench.respond(fetched(batch(0, 5), error=error))
    assert bench.step() == BACKOFF_MS
    assert (len(bench.requests), bench.log.log_end_offset) == (1, 0)
    bench.clock.elapsed_ms = 1000
    bench.step()
    assert len(bench.requests) == 2


def test_corrupt_records_are_fetched_again_later(bench: Bench) -> None:
    bench.follow()
    bench.step()
    damaged = bytearray(batch(0, 5))
    damaged[-1] ^= 1
    bench.respond(fetched(bytes(damaged)))
    assert (bench.step(), bench.log.log_end_offset) == (BACKOFF_MS, 0)


@pytest.mark.parametrize(("failure", "pause"), [("disconnected", BACKOFF_MS), ("session", 0.0)])
def test_failed_request_is_repeated_in_full(bench: Bench, failure: str, pause: float) -> None:
    bench.follow()
    bench.step()
    bench.respond(fetched(batch(0, 5)))
    bench.step()
    if failure == "session":
        bench.respond(error=71)
    else:
        bench.requests[-1][2](DisconnectedError("lost"))
    assert bench.step() == pause
    bench.clock.elapsed_ms = 1000
    if pause:
        assert bench.asked() == (1, 5)
    request = bench.requests[-1][0]
    assert isinstance(request, FetchRequest)
    assert request.session_epoch == 0


def test_fenced_partition_waits_for_metadata(bench: Bench) -> None:
    bench.follow()
    bench.step()
    bench.respond(fetched(error=74))
    assert (bench.step(), bench.fetcher.partitions()) == (IDLE_MS, [])
    bench.follow(epoch=6)
    assert bench.fetcher.partitions() == [PARTITION]


@pytest.mark.parametrize("change", ["removed", "leader", "new epoch"])
def test_response_of_an_earlier_epoch_is_not_applied(bench: Bench, change: str) -> None:
    bench.follow()
    bench.step()
    if change == "removed":
        bench.fetcher.remove([PARTITION])
    elif change == "leader":  # before the fetcher gets it
        bench.partition.apply(PartitionRegistration((1, 2), (1, 2), 1, 6, 9))
    else:
        bench.follow(epoch=6)
    bench.respond(fetched(batch(0, 5), high_watermark=1))
    assert (bench.log.log_end_offset, bench.log.high_watermark) == (0, 0)


def test_log_beyond_the_end_of_the_leader_is_truncated_there(bench: Bench) -> None:
    fill(bench)
    bench.follow()
    bench.step()
    bench.respond(fetched(error=1))
    bench.step()
    assert bench.respond_offset(7) == -1
    assert offsets(bench.log) == list(range(7))
    assert bench.asked() == (7, 3)


@pytest.mark.parametrize(("start", "expected"), [(15, (15, -1)), (3, (10, 4))])
def test_log_before_the_start_of_the_leader_begins_there(
    bench: Bench, start: int, expected: tuple[int, int]
) -> None:
    fill(bench)
    bench.follow()
    bench.step()
    bench.respond(fetched(error=1))
    bench.step()
    assert bench.respond_offset(20) == -1
    assert bench.step() == IDLE_MS
    assert bench.respond_offset(start) == -2
    assert (bench.log.log_end_offset, bench.log.latest_epoch is None) == (
        expected[0],
        start == 15,
    )
    if start == 15:
        assert bench.asked() == expected


def test_failed_look_up_is_repeated_later(bench: Bench) -> None:
    fill(bench)
    bench.follow()
    bench.step()
    bench.respond(fetched(error=1))
    bench.step()
    bench.respond_offset(-1, error=74)
    assert bench.step() == BACKOFF_MS
    bench.clock.elapsed_ms = 1000
    bench.step()
    assert isinstance(bench.requests[-1][0], ListOffsetsRequest)
    assert bench.log.log_end_offset == 10
