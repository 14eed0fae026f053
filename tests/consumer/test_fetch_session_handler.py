"""Incremental fetch sessions, against a model of the broker's side."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kclient.client.metadata import LeaderAndEpoch
from kclient.common.broker_errors import (
    FetchSessionIdNotFoundError,
    InvalidFetchSessionEpochError,
)
from kclient.common.types import Node, TopicPartition
from kclient.consumer.fetch_session_handler import (
    FetchPartitionData,
    FetchRequestData,
    FetchSessionHandler,
)
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.types import ZERO_UUID

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
ID, OTHER_ID = b"1" * 16, b"2" * 16


STATE = TopicPartitionState(P0, {})
LEADERS = [LeaderAndEpoch(Node(1, "h", 9092), epoch) for epoch in range(2)]


def at(offset: int, topic_id: bytes = ID, epoch: int = 0) -> FetchPartitionData:
    return FetchPartitionData(topic_id, FetchPosition(offset, leader=LEADERS[epoch]), STATE)


def build(
    handler: FetchSessionHandler, wanted: dict[TopicPartition, FetchPartitionData]
) -> FetchRequestData:
    """Build a request as if any partition may have changed."""
    return handler.build(wanted, handler.partitions.keys() | wanted.keys())


def opened(wanted: dict[TopicPartition, FetchPartitionData]) -> FetchSessionHandler:
    handler = FetchSessionHandler(1)
    build(handler, wanted)
    assert handler.handle_response(77, set(wanted), throttled=False) is None
    return handler


def test_first_request_is_full_and_opens_a_session() -> None:
    handler = FetchSessionHandler(1)
    data = build(handler, {P0: at(0), P1: at(5)})
    assert (data.session_id, data.session_epoch) == (0, 0)
    assert data.to_send == {P0: at(0), P1: at(5)}
    assert data.to_forget == {}
    assert data.can_use_topic_ids


def test_later_requests_contain_changes_only() -> None:
    handler = opened({P0: at(0), P1: at(5)})
    data = build(handler, {P0: at(0), P1: at(6), P2: at(1)})
    assert (data.session_id, data.session_epoch) == (77, 1)
    assert data.to_send == {P1: at(6), P2: at(1)}
    assert handler.handle_response(77, {P1}, throttled=False) is None
    data = build(handler, {P2: at(1)})
    assert (data.session_epoch, data.to_send) == (2, {})
    assert data.to_forget == {P0: ID, P1: ID}
    assert dict(handler.partitions) == {P2: at(1)}


def test_recreated_topic_is_replaced_in_the_session() -> None:
    data = build(opened({P0: at(3)}), {P0: at(0, OTHER_ID)})
    assert data.to_send == {P0: at(0, OTHER_ID)}
    assert data.to_forget == {P0: ID}


def test_topic_names_are_used_if_one_id_is_unknown() -> None:
    unknown = at(0, ZERO_UUID)
    assert not build(FetchSessionHandler(1), {P0: at(0), P1: unknown}).can_use_topic_ids
    handler = opened({P0: at(0)})
    assert not build(handler, {P0: at(0), P1: unknown}).can_use_topic_ids
    assert not build(handler, {P0: at(0)}).can_use_topic_ids  # it names the topic to forget
    assert build(handler, {P0: at(0)}).can_use_topic_ids


def test_every_request_is_full_without_session_support() -> None:
    handler = FetchSessionHandler(1)
    for offset in range(3):
        data = build(handler, {P0: at(offset)})
        assert (data.session_id, data.session_epoch, len(data.to_send)) == (0, 0, 1)
        assert handler.handle_response(0, {P0}, throttled=False) is None


def test_session_closed_by_broker_is_reopened() -> None:
    handler = opened({P0: at(0)})
    build(handler, {P0: at(1)})
    assert handler.handle_response(0, {P0}, throttled=False) is None
    assert build(handler, {P0: at(2)}).session_epoch == 0


def test_unknown_session_is_reopened() -> None:
    handler = opened({P0: at(0)})
    build(handler, {P0: at(1)})
    handler.handle_error_code(FetchSessionIdNotFoundError())
    data = build(handler, {P0: at(1)})
    assert (data.session_id, data.session_epoch, data.to_send) == (0, 0, {P0: at(1)})


def test_other_errors_replace_the_session() -> None:
    doubts: list[Callable[[FetchSessionHandler], object]] = [
        lambda handler: handler.handle_error_code(InvalidFetchSessionEpochError()),
        lambda handler: handler.handle_failure(),
        lambda handler: handler.handle_response(77, {P2}, throttled=False),
    ]
    for doubt in doubts:
        handler = opened({P0: at(0)})
        build(handler, {P0: at(1)})
        doubt(handler)
        data = build(handler, {P0: at(1)})
        assert (data.session_id, data.session_epoch, data.to_send) == (77, 0, {P0: at(1)})


def test_mismatching_responses_are_not_used() -> None:
    full = FetchSessionHandler(1)
    build(full, {P0: at(0), P1: at(0)})
    assert full.handle_response(77, {P0, P2}, throttled=False) == "not asked for: t-2; missing: t-1"
    assert build(full, {P0: at(0)}).session_id == 0
    throttled = FetchSessionHandler(1)
    build(throttled, {P0: at(0)})
    assert "throttled" in str(throttled.handle_response(0, set(), throttled=True))


def test_session_epoch_wraps_to_one() -> None:
    handler = opened({P0: at(0)})
    handler._epoch = 2**31 - 1
    build(handler, {P0: at(0)})
    assert handler.handle_response(77, set(), throttled=False) is None
    assert build(handler, {P0: at(0)}).session_epoch == 1


def test_close_request_ends_the_session() -> None:
    assert FetchSessionHandler(1).build_close() is None
    data = opened({P0: at(0)}).build_close()
    assert data is not None
    assert (data.session_id, data.session_epoch, data.to_send) == (77, -1, {})


class BrokerSide:
    """Session state of a broker."""

    def __init__(self) -> None:
        self.session: dict[TopicPartition, FetchPartitionData] = {}
        self.session_id = 0
        self.epoch = 0

    def take(self, data: FetchRequestData) -> None:
        if data.session_epoch == 0:
            self.session = dict(data.to_send)
            self.session_id += 1
            self.epoch = 1
            return
        assert (data.session_id, data.session_epoch) == (self.session_id, self.epoch)
        for partition, topic_id in data.to_forget.items():
            if self.session[partition].topic_id == topic_id:
                del self.session[partition]
        self.session |= data.to_send
        self.epoch += 1


@given(
    st.lists(
        st.tuples(
            st.dictionaries(
                st.sampled_from([P0, P1, P2]),
                st.builds(
                    at, st.integers(0, 3), st.sampled_from([ID, OTHER_ID]), st.integers(0, 1)
                ),
                min_size=1,
            ),
            st.sampled_from(["responded", "lost", "refused"]),
        ),
        max_size=20,
    )
)
def test_client_and_broker_sessions_agree(
    steps: list[tuple[dict[TopicPartition, FetchPartitionData], str]],
) -> None:
    handler, broker = FetchSessionHandler(1), BrokerSide()
    before: dict[TopicPartition, FetchPartitionData] = {}
    for wanted, outcome in steps:
        data = handler.build(
            wanted, [each for each in (P0, P1, P2) if before.get(each) != wanted.get(each)]
        )
        before = wanted
        assert handler.partitions == wanted
        assert handler.topics.items() >= {(each.topic_id, "t") for each in wanted.values()}
        if outcome == "lost":
            handler.handle_failure()
            continue
        if outcome == "refused" and data.session_epoch > 0:
            handler.handle_error_code(InvalidFetchSessionEpochError())
            continue
        broker.take(data)
        assert broker.session == wanted
        responded = set(wanted) if data.session_epoch == 0 else set(data.to_send)
        assert handler.handle_response(broker.session_id, responded, throttled=False) is None
