"""Incremental fetch sessions, against a broker's side written down beside them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kclient.common.broker_errors import (
    FetchSessionIdNotFoundError,
    InvalidFetchSessionEpochError,
)
from kclient.common.types import TopicPartition
from kclient.consumer.fetch_session_handler import (
    FetchPartitionData,
    FetchRequestData,
    FetchSessionHandler,
)
from kclient.protocol.types import ZERO_UUID

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
ID, OTHER_ID = b"1" * 16, b"2" * 16


def at(offset: int, topic_id: bytes = ID) -> FetchPartitionData:
    return FetchPartitionData(topic_id, offset, 1000)


def opened(wanted: dict[TopicPartition, FetchPartitionData]) -> FetchSessionHandler:
    handler = FetchSessionHandler(1)
    handler.build(wanted)
    assert handler.handle_response(77, set(wanted), throttled=False) is None
    return handler


def test_the_first_request_is_full_and_opens_a_session() -> None:
    handler = FetchSessionHandler(1)
    data = handler.build({P0: at(0), P1: at(5)})
    assert (data.session_id, data.session_epoch) == (0, 0)
    assert data.to_send == {P0: at(0), P1: at(5)}
    assert data.to_forget == {}
    assert data.can_use_topic_ids


def test_later_requests_name_what_changed() -> None:
    handler = opened({P0: at(0), P1: at(5)})
    data = handler.build({P0: at(0), P1: at(6), P2: at(1)})
    assert (data.session_id, data.session_epoch) == (77, 1)
    assert data.to_send == {P1: at(6), P2: at(1)}
    assert handler.handle_response(77, {P1}, throttled=False) is None
    data = handler.build({P2: at(1)})
    assert (data.session_epoch, data.to_send) == (2, {})
    assert data.to_forget == {P0: ID, P1: ID}
    assert dict(handler.partitions) == {P2: at(1)}


def test_a_topic_made_anew_is_replaced() -> None:
    data = opened({P0: at(3)}).build({P0: at(0, OTHER_ID)})
    assert data.to_send == {P0: at(0, OTHER_ID)}
    assert data.to_forget == {P0: ID}


def test_one_unknown_id_means_names_for_all() -> None:
    assert not FetchSessionHandler(1).build({P0: at(0), P1: at(0, ZERO_UUID)}).can_use_topic_ids


def test_a_broker_without_sessions_is_asked_in_full_each_time() -> None:
    handler = FetchSessionHandler(1)
    for offset in range(3):
        data = handler.build({P0: at(offset)})
        assert (data.session_id, data.session_epoch, len(data.to_send)) == (0, 0, 1)
        assert handler.handle_response(0, {P0}, throttled=False) is None


def test_a_session_that_the_broker_ended_is_opened_again() -> None:
    handler = opened({P0: at(0)})
    handler.build({P0: at(1)})
    assert handler.handle_response(0, {P0}, throttled=False) is None
    assert handler.build({P0: at(2)}).session_epoch == 0


def test_a_lost_session_starts_over() -> None:
    handler = opened({P0: at(0)})
    handler.build({P0: at(1)})
    handler.handle_error_code(FetchSessionIdNotFoundError())
    data = handler.build({P0: at(1)})
    assert (data.session_id, data.session_epoch, data.to_send) == (0, 0, {P0: at(1)})


def test_any_other_doubt_closes_the_session_and_opens_another() -> None:
    doubts: list[Callable[[FetchSessionHandler], object]] = [
        lambda handler: handler.handle_error_code(InvalidFetchSessionEpochError()),
        lambda handler: handler.handle_failure(),
        lambda handler: handler.handle_response(77, {P2}, throttled=False),
    ]
    for doubt in doubts:
        handler = opened({P0: at(0)})
        handler.build({P0: at(1)})
        doubt(handler)
        data = handler.build({P0: at(1)})
        assert (data.session_id, data.session_epoch, data.to_send) == (77, 0, {P0: at(1)})


def test_answers_that_do_not_fit_are_not_used() -> None:
    full = FetchSessionHandler(1)
    full.build({P0: at(0), P1: at(0)})
    assert full.handle_response(77, {P0, P2}, throttled=False) == "not asked for: t-2; missing: t-1"
    assert full.build({P0: at(0)}).session_id == 0
    throttled = FetchSessionHandler(1)
    throttled.build({P0: at(0)})
    assert "throttled" in str(throttled.handle_response(0, set(), throttled=True))


def test_the_epoch_starts_over_before_it_overflows() -> None:
    handler = opened({P0: at(0)})
    handler._epoch = 2**31 - 1
    handler.build({P0: at(0)})
    assert handler.handle_response(77, set(), throttled=False) is None
    assert handler.build({P0: at(0)}).session_epoch == 1


def test_a_session_is_ended_at_the_end() -> None:
    assert FetchSessionHandler(1).build_close() is None
    data = opened({P0: at(0)}).build_close()
    assert data is not None
    assert (data.session_id, data.session_epoch, data.to_send) == (77, -1, {})


class BrokerSide:
    """What a broker remembers of a session."""

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
                st.builds(at, st.integers(0, 3), st.sampled_from([ID, OTHER_ID])),
                min_size=1,
            ),
            st.sampled_from(["answered", "lost", "refused"]),
        ),
        max_size=20,
    )
)
def test_both_sides_always_agree(
    steps: list[tuple[dict[TopicPartition, FetchPartitionData], str]],
) -> None:
    handler, broker = FetchSessionHandler(1), BrokerSide()
    for wanted, outcome in steps:
        data = handler.build(wanted)
        if outcome == "lost":
            handler.handle_failure()
            continue
        if outcome == "refused" and data.session_epoch > 0:
            handler.handle_error_code(InvalidFetchSessionEpochError())
            continue
        broker.take(data)
        assert broker.session == wanted
        answered = set(wanted) if data.session_epoch == 0 else set(data.to_send)
        assert handler.handle_response(broker.session_id, answered, throttled=False) is None
