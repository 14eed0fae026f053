"""Times of polls: which records belong to which poll, and when their processing ends."""

from collections.abc import Callable
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.client.client_request import ClientResponse
from kclient.common.converters import DataOnly
from kclient.common.types import OffsetAndMetadata
from kclient.consumer.collected import CollectedRecords
from kclient.consumer.completed_fetch import CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.journey.consumer_tracer import ConsumerTracer, FetchMarks, PolledRecords
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.fetch import PartitionData
from tests.support.virtual.virtual_log_broker import VirtualLog

ORDERS = TopicPartition("orders", 0)
FETCH = FetchMarks(7, 100, 200)


class Reading:
    """A tracer with a clock of its own, and polls of one partition."""

    def __init__(self, *, traces_all: bool = False, deserializer: Any = None) -> None:
        self.now_ns = 1000
        self.tracer = ConsumerTracer(lambda: self.now_ns, 100, traces_all=traces_all)
        self.config = CONSUMER_CONFIG.parse(
            {"bootstrap_servers": "h:1", "value_deserializer": deserializer}
        )

    def fetch(self, first: int, count: int, marks: FetchMarks | None) -> CompletedFetch:
        log = VirtualLog(end_offset=first)
        log.append(*[b"v"] * count)
        return CompletedFetch(
            TopicPartitionState(ORDERS, {}),
            PartitionData(records=log.read(first, 1 << 20, 0)),
            FetchPosition(first),
            NodeBacklog(1, {}),
            self.config,
            deserializes=self.config.has_deserializers(),
            trace=marks,
        )

    def poll(self, first: int, count: int, *, marks: FetchMarks | None = FETCH) -> None:
        self.tracer.poll_started()
        self.tracer.take(CollectedRecords(100), self.fetch(first, count, marks))
        self.now_ns += 10
        self.tracer.poll_returned()
        self.now_ns += 100

    def commit(self, offset: int) -> None:
        offsets = {ORDERS: OffsetAndMetadata(offset)}
        self.tracer.commit_queued(offsets)
        self.now_ns += 1000
        self.tracer.committed(offsets)

    def ranges(self) -> list[tuple[int, int]]:
        return [(each.first, each.end) for each in self.tracer.polled()]


def test_next_poll_ends_the_processing() -> None:
    reading = Reading()
    reading.poll(0, 3)
    assert reading.ranges() == []
    reading.poll(3, 2)
    assert reading.ranges() == [(0, 3)]
    reading.tracer.end()
    assert reading.ranges() == [(0, 3), (3, 5)]
    first, second = reading.tracer.polled()
    assert (first.returned_ns - first.taken_ns, first.processed_ns - first.returned_ns) == (10, 100)
    assert first.committed_ns == second.committed_ns == 0


def test_commit_ends_the_processing_of_the_records_before_its_offset() -> None:
    reading = Reading()
    reading.poll(0, 10)
    reading.commit(4)
    assert reading.ranges() == [(0, 4)]
    (before,) = reading.tracer.polled()
    assert before.committed_ns - before.processed_ns == 1000
    reading.commit(10)
    assert sorted(reading.ranges()) == [(0, 4), (4, 10)]
    assert all(each.committed_ns for each in reading.tracer.polled())


def test_commit_of_earlier_records_or_of_other_partitions_ends_nothing() -> None:
    reading = Reading()
    reading.poll(5, 5)
    reading.commit(5)
    offsets = {TopicPartition("other", 0): OffsetAndMetadata(99)}
    reading.tracer.commit_queued(offsets)
    reading.tracer.committed(offsets)
    assert reading.ranges() == []
    reading.poll(10, 1)
    reading.commit(8)  # inside of records that were processed together
    assert [each.committed_ns for each in reading.tracer.polled()] == [0]


def test_records_that_are_returned_again_belong_to_the_later_poll() -> None:
    reading = Reading()
    reading.poll(0, 10)
    reading.poll(6, 4)  # of an iteration, which put them back
    reading.tracer.end()
    assert reading.ranges() == [(0, 6), (6, 10)]
    reading.poll(6, 4)  # after a seek
    reading.tracer.end()
    assert reading.ranges() == [(0, 6), (6, 10)]


def test_records_of_a_fetch_that_is_not_traced_have_no_times() -> None:
    reading = Reading()
    reading.poll(0, 10, marks=None)
    reading.tracer.end()
    assert reading.ranges() == []


def test_poll_that_fails_after_a_take_leaves_no_records() -> None:
    reading = Reading()
    reading.poll(0, 2)
    reading.tracer.poll_started()
    reading.tracer.take(CollectedRecords(100), reading.fetch(2, 2, FETCH))
    reading.tracer.poll_started()
    reading.tracer.poll_returned()
    reading.tracer.end()
    assert reading.ranges() == [(0, 2)]


def response(correlation_id: int) -> ClientResponse:
    return ClientResponse(ApiKey.FETCH, 17, correlation_id, "1", 5.0, 6.5)


def test_only_the_next_fetch_is_traced_on_request() -> None:
    tracer = Reading().tracer
    traced = []
    for number in range(6):
        if number == 3:
            tracer.trace_next()
        traced.append(tracer.fetched(response(number)))
    first, second = FetchMarks(0, 5_000_000, 6_500_000), FetchMarks(3, 5_000_000, 6_500_000)
    assert traced == [first, None, None, second, None, None]
    everything = Reading(traces_all=True).tracer
    assert all(everything.fetched(response(number)) for number in range(3))


def _full(inner: Callable[[], Any]) -> Any:
    return lambda topic, headers, data: inner()


@pytest.mark.parametrize("form", [lambda inner: DataOnly(lambda data: inner()), _full])
def test_time_in_deserializers_is_not_part_of_decoding(form: Any) -> None:
    reading = Reading()

    def slow() -> str:
        reading.now_ns += 50
        return "text"

    timed = reading.tracer.timed(form(slow))
    assert timed is not None
    assert isinstance(timed, DataOnly) == isinstance(form(slow), DataOnly)
    reading.config = CONSUMER_CONFIG.parse({"bootstrap_servers": "h:1"})
    object.__setattr__(reading.config, "value_deserializer", timed)
    reading.poll(0, 4)
    reading.tracer.end()
    (records,) = reading.tracer.polled()
    assert records.decoded_ns == records.taken_ns
    assert records.deserialized_ns - records.decoded_ns == 4 * 50


def test_slow_deserializers_are_timed_in_few_fetches() -> None:
    reading = Reading()

    def slow(data: bytes | None) -> str:
        reading.now_ns += 50
        return "text"

    object.__setattr__(reading.config, "value_deserializer", reading.tracer.timed(DataOnly(slow)))
    reading.poll(0, 4)
    reading.tracer.trace_next()
    assert reading.tracer.fetched(response(1)) is None
    reading.now_ns += 20 * 4 * 50
    assert reading.tracer.fetched(response(2)) is not None


def test_error_of_a_deserializer_is_raised() -> None:
    def fail(data: bytes | None) -> Any:
        raise RuntimeError("bad")

    timed = Reading().tracer.timed(DataOnly(fail))
    assert timed is not None
    with pytest.raises(RuntimeError, match="bad"):
        timed("orders", [], b"v")
    assert Reading().tracer.timed(None) is None


def test_split_keeps_the_later_records() -> None:
    records = PolledRecords(ORDERS, 0, 10, FETCH, 1, 2, 3, 4)
    before = records.split(6)
    assert (before.first, before.end, before.returned_ns) == (0, 6, 4)
    assert (records.first, records.end) == (6, 10)
