"""Buffered fetches: chains of a partition, pauses, and fetches that are stale."""

import pytest

from kclient.client.metadata import LeaderAndEpoch
from kclient.common.types import Node
from kclient.consumer.completed_fetch import CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.messages.fetch import PartitionData
from tests.consumer.conftest import ORDERS_0, ORDERS_1
from tests.support.virtual.virtual_log_broker import VirtualLog

CONFIG = CONSUMER_CONFIG.parse({"bootstrap_servers": "h:1"})
LEADER = LeaderAndEpoch(Node(1, "h", 1), 4)


class Buffered:
    """A buffer, and fetches of three records each."""

    def __init__(self) -> None:
        self.buffer = FetchBuffer()
        self.backlog = NodeBacklog(1, {})
        self.orders_0 = TopicPartitionState(ORDERS_0, {})
        self.orders_1 = TopicPartitionState(ORDERS_1, {})
        for state in (self.orders_0, self.orders_1):
            state.seek(FetchPosition(0, 1, LEADER))

    def fetch(
        self, state: TopicPartitionState, offset: int, *, error_code: int = 0
    ) -> CompletedFetch:
        log = VirtualLog(start_offset=offset, end_offset=offset)
        if not error_code:
            log.append(b"a", b"b", b"c")
        data = PartitionData(error_code=error_code, records=log.read(offset, 1000, 0))
        fetch = CompletedFetch(
            state, data, FetchPosition(offset, 1), self.backlog, CONFIG, deserializes=False
        )
        self.backlog.add(fetch.size)
        return fetch

    def pause(self, state: TopicPartitionState, *, paused: bool) -> None:
        state.set_paused(paused=paused)
        self.buffer.follow_pause(state)

    def add(self, state: TopicPartitionState, *offsets: int) -> list[CompletedFetch]:
        fetches = [self.fetch(state, offset) for offset in offsets]
        for fetch in fetches:
            assert self.buffer.add(fetch)
        return fetches


@pytest.fixture
def buffered() -> Buffered:
    return Buffered()


def test_fetches_of_a_partition_form_a_chain(buffered: Buffered) -> None:
    buffer, state = buffered.buffer, buffered.orders_0
    assert buffer.is_empty()
    assert buffer.next_position(state) == state.position
    buffered.add(state, 0, 3)
    assert len(buffer) == 2
    assert buffer.next_position(state) == FetchPosition(6, 1, LEADER)
    assert buffer.next_position(buffered.orders_1) == buffered.orders_1.position


def test_fetch_that_does_not_continue_the_chain_is_dropped(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0)
    size = buffered.backlog.bytes
    assert not buffered.buffer.add(buffered.fetch(buffered.orders_0, 0))
    assert not buffered.buffer.add(buffered.fetch(buffered.orders_0, 4))
    assert (len(buffered.buffer), buffered.backlog.bytes) == (1, size)


def test_chain_has_the_leader_of_the_latest_metadata(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0)
    newer = LeaderAndEpoch(Node(2, "h2", 1), 5)
    buffered.orders_0.take_leader(newer, can_validate=False)
    assert buffered.buffer.next_position(buffered.orders_0) == FetchPosition(3, 1, newer)


def test_chain_with_an_error_at_its_end_is_not_continued(buffered: Buffered) -> None:
    assert buffered.buffer.add(buffered.fetch(buffered.orders_0, 0, error_code=6))
    assert buffered.buffer.next_position(buffered.orders_0) is None
    assert not buffered.buffer.add(buffered.fetch(buffered.orders_0, 0))


def test_seek_makes_the_chain_stale(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0, 3)
    buffered.orders_0.seek(FetchPosition(1, 1, LEADER))
    assert buffered.buffer.next_position(buffered.orders_0) == FetchPosition(1, 1, LEADER)
    assert buffered.buffer.is_empty()
    assert buffered.backlog.bytes == 0


def test_new_assignment_makes_the_chain_stale(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0)
    again = TopicPartitionState(ORDERS_0, {})
    again.seek(FetchPosition(0, 1, LEADER))
    assert buffered.buffer.next_position(again) == FetchPosition(0, 1, LEADER)
    assert buffered.buffer.is_empty()


def test_first_fetch_is_that_of_a_partition_that_is_not_paused(buffered: Buffered) -> None:
    (paused,) = buffered.add(buffered.orders_0, 0)
    (other,) = buffered.add(buffered.orders_1, 0)
    assert buffered.buffer.first() is paused
    buffered.pause(buffered.orders_0, paused=True)
    assert buffered.buffer.first() is other
    buffered.buffer.remove(other)
    assert buffered.buffer.first() is None
    assert not buffered.buffer.is_empty()
    buffered.pause(buffered.orders_0, paused=False)
    assert buffered.buffer.first() is paused


def test_paused_data_is_no_backlog_and_comes_first_in_order_after_resume(
    buffered: Buffered,
) -> None:
    first, second = buffered.add(buffered.orders_0, 0, 3)
    (other,) = buffered.add(buffered.orders_1, 0)
    whole = buffered.backlog.bytes
    for _ in range(2):  # the second call changes nothing
        buffered.pause(buffered.orders_0, paused=True)
        assert buffered.backlog.bytes == other.size
    (third,) = buffered.add(buffered.orders_0, 6)  # its fetch was in flight
    assert buffered.backlog.bytes == other.size
    assert (len(buffered.buffer), buffered.buffer.first()) == (4, other)
    buffered.pause(buffered.orders_0, paused=False)
    assert buffered.backlog.bytes == whole + third.size
    for fetch in (first, second, third, other):
        assert buffered.buffer.first() is fetch
        buffered.buffer.remove(fetch)
    assert (buffered.buffer.is_empty(), buffered.backlog.bytes) == (True, 0)


def test_paused_fetches_can_be_dropped(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0, 3)
    buffered.pause(buffered.orders_0, paused=True)
    buffered.buffer.drop(ORDERS_0)
    assert (buffered.buffer.is_empty(), buffered.backlog.bytes) == (True, 0)
    buffered.pause(buffered.orders_0, paused=False)
    assert buffered.buffer.first() is None


def test_removed_fetch_leaves_the_rest_of_its_chain(buffered: Buffered) -> None:
    first, second = buffered.add(buffered.orders_0, 0, 3)
    buffered.buffer.remove(first)
    buffered.orders_0.seek(FetchPosition(3, 1, LEADER))
    assert buffered.buffer.first() is second
    assert buffered.buffer.next_position(buffered.orders_0) == FetchPosition(6, 1, LEADER)
    buffered.buffer.remove(second)
    assert buffered.buffer.is_empty()
    assert buffered.backlog.bytes == 0


def test_drop_and_clear_release_the_backlog(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0, 3)
    buffered.add(buffered.orders_1, 0)
    buffered.buffer.drop(ORDERS_0)
    assert [fetch.state for fetch in iter_first(buffered.buffer)] == [buffered.orders_1]
    buffered.buffer.clear()
    assert buffered.buffer.is_empty()
    assert buffered.backlog.bytes == 0


def test_only_fetches_of_the_assignment_are_retained(buffered: Buffered) -> None:
    buffered.add(buffered.orders_0, 0)
    buffered.add(buffered.orders_1, 0)
    buffered.buffer.retain(
        {ORDERS_0: TopicPartitionState(ORDERS_0, {}), ORDERS_1: buffered.orders_1}
    )
    assert [fetch.state for fetch in iter_first(buffered.buffer)] == [buffered.orders_1]


def iter_first(buffer: FetchBuffer) -> list[CompletedFetch]:
    first = buffer.first()
    return [] if first is None else [first]
