"""Fetch sessions: content of responses, epochs, forgotten partitions, eviction."""

import random

import pytest

from kclient.broker.replication.fetch_params import FetchResult
from kclient.broker.server import fetch_session
from kclient.broker.server.fetch_session import FetchContext, FetchSessionCache, Selected
from kclient.common.broker_errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    OffsetOutOfRangeError,
    code_of,
)
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.support.disks.log_bench import ManualClock

TOPIC_ID = b"t" * 16
OTHER_ID = b"o" * 16
NAMES = {TOPIC_ID: "t"}
EMPTY = FetchResult(None, 0, 0, 0)


class Sessions:
    """A cache and the clients of its sessions."""

    def __init__(self, slots: int = 10) -> None:
        self.clock = ManualClock()
        self.cache = FetchSessionCache(
            slots, self.clock, random.Random(1), SystemTasks().condition()
        )

    def request(
        self,
        session_id: int = 0,
        epoch: int = 0,
        *,
        partitions: range | list[int] = range(0),
        forgotten: tuple[int, ...] = (),
        topic_id: bytes = TOPIC_ID,
        version: int = 17,
        follower: bool = False,
        reads_all: bool = False,
    ) -> FetchContext:
        wanted = [FetchPartition(partition=index, fetch_offset=7) for index in partitions]
        body = FetchRequest(
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic_id=topic_id, topic="t", partitions=wanted)] if wanted else [],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, topic="t", partitions=list(forgotten))
            ],
        )
        return self.cache.context(
            body,
            version,
            lambda topic_id: NAMES.get(topic_id, ""),
            is_privileged=follower,
            reads_all=reads_all,
        )

    def change(self, *indexes: int) -> list[bool]:
        """Report changes of partitions; return whether each is in an open session."""
        return [
            len(self.cache.partition_changed(TopicPartition("t", index))) > 0 for index in indexes
        ]

    def start(self, size: int, *, follower: bool = False) -> int:
        """Fetch so many partitions; return the session id."""
        context = self.request(partitions=range(size), follower=follower)
        return select(context, {}).session_id

    def is_open(self, session_id: int) -> bool:
        """Return whether a session exists, by a request in a wrong epoch."""
        refused = select(self.request(session_id, 99), {})
        return refused.error_code == code_of(InvalidFetchSessionEpochError())


def select(context: FetchContext, results: dict[int, FetchResult]) -> Selected:
    """Return the content of the response if the other partitions have no record."""
    return context.select([(each, results.get(each.index, EMPTY)) for each in context.take()])


def taken(context: FetchContext) -> list[int]:
    """Return the partitions that a fetch reads."""
    return [each.index for each in context.take()]


def indexes(selected: Selected) -> list[int]:
    assert selected.error_code == 0
    return [partition.index for partition, _ in selected.partitions]


def test_full_fetch_returns_all_partitions_and_creates_a_session() -> None:
    selected = select(Sessions().request(partitions=range(3)), {})
    assert (indexes(selected), selected.session_id > 0) == ([0, 1, 2], True)


def test_fetch_with_final_epoch_creates_no_session_and_closes_one() -> None:
    sessions = Sessions()
    assert select(sessions.request(epoch=-1, partitions=range(2)), {}).session_id == 0
    session_id = sessions.start(2)
    assert indexes(select(sessions.request(session_id, -1), {})) == []
    assert not sessions.is_open(session_id)


def test_full_fetch_in_a_session_replaces_it() -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    second = select(sessions.request(session_id, 0, partitions=[5]), {})
    assert indexes(second) == [5]
    assert (sessions.is_open(session_id), sessions.is_open(second.session_id)) == (False, True)


@pytest.mark.parametrize(
    "changed",
    [
        EMPTY._replace(records=b"records"),
        EMPTY._replace(high_watermark=1),
        EMPTY._replace(log_start_offset=1),
        EMPTY._replace(diverging_epoch=(1, 2)),
        FetchResult(OffsetOutOfRangeError("")),
    ],
)
def test_incremental_fetch_returns_changed_partitions(changed: FetchResult) -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    assert indexes(select(sessions.request(session_id, 1), {})) == []
    sessions.change(1)
    assert indexes(select(sessions.request(session_id, 2), {1: changed})) == [1]


def test_partition_is_sent_again_when_its_error_has_ended() -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    failed = FetchResult(OffsetOutOfRangeError(""))
    assert indexes(select(sessions.request(session_id, 1), {1: failed})) == [1]
    assert indexes(select(sessions.request(session_id, 2), {1: failed})) == [1]
    assert indexes(select(sessions.request(session_id, 3), {})) == [1]
    assert indexes(select(sessions.request(session_id, 4), {})) == []


def test_partitions_with_records_move_to_the_end() -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    select(sessions.request(session_id, 1), {0: EMPTY._replace(records=b"records")})
    assert taken(sessions.request(session_id, 2, partitions=[2, 1, 0])) == [1, 2, 0]


def test_partitions_with_records_are_read_after_those_beyond_the_limit() -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    unread = EMPTY._replace(high_watermark=8)
    select(sessions.request(session_id, 1), {0: EMPTY._replace(records=b"records"), 2: unread})
    assert taken(sessions.request(session_id, 2, partitions=[0])) == [2, 0]


def test_first_fetch_of_a_session_reads_all_and_later_ones_what_changed() -> None:
    sessions = Sessions()
    session_id = sessions.start(4)
    first = sessions.request(session_id, 1)
    assert taken(first) == [0, 1, 2, 3]
    select(first, {})
    assert taken(sessions.request(session_id, 2)) == []
    sessions.change(3, 1, 3)
    assert taken(sessions.request(session_id, 3)) == [1, 3]


@pytest.mark.parametrize(
    "result",
    [
        EMPTY._replace(records=b"records"),
        EMPTY._replace(high_watermark=8),  # the limit of the response excluded its records
        EMPTY._replace(diverging_epoch=(1, 2)),
        FetchResult(OffsetOutOfRangeError("")),
    ],
)
def test_partition_is_read_until_the_client_is_at_its_end(result: FetchResult) -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    select(sessions.request(session_id, 1), {1: result})
    select(sessions.request(session_id, 2), {1: result})
    last = sessions.request(session_id, 3)
    assert taken(last) == [1]
    select(last, {})
    assert taken(sessions.request(session_id, 4)) == []


def test_change_during_a_read_is_read_by_the_next_fetch() -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    context = sessions.request(session_id, 1)
    found = [(each, EMPTY) for each in context.take()]
    sessions.change(2)
    assert [each.topic_partition.partition for each in context.waiting()] == [0, 1, 2]
    context.select(found)
    assert taken(sessions.request(session_id, 2)) == [2]


def test_waiting_fetch_reads_what_changed_meanwhile() -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    select(sessions.request(session_id, 1), {})
    context = sessions.request(session_id, 2)
    assert (taken(context), len(context.watch_keys())) == ([], 1)
    sessions.change(1)
    assert [each.topic_partition.partition for each in context.waiting()] == [1]
    assert taken(context) == [1]


def test_superseded_fetch_leaves_changes_to_its_successor() -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    select(sessions.request(session_id, 1), {})
    sessions.change(0)
    superseded = sessions.request(session_id, 2)
    assert taken(superseded) == [0]
    successor = sessions.request(session_id, 3)
    found = [(each, EMPTY) for each in successor.take()]
    sessions.change(0)
    select(superseded, {})
    successor.select(found)
    assert taken(sessions.request(session_id, 4)) == [0]


def test_followers_and_offline_directories_read_all_partitions() -> None:
    sessions = Sessions()
    consumer, follower = sessions.start(2), sessions.start(2, follower=True)
    for session_id in (consumer, follower):
        select(sessions.request(session_id, 1), {})
    assert taken(sessions.request(follower, 2)) == [0, 1]
    assert taken(sessions.request(consumer, 2, reads_all=True)) == [0, 1]


def test_partitions_of_ended_sessions_and_forgotten_ones_are_not_watched() -> None:
    sessions = Sessions()
    first, second = sessions.start(2), sessions.start(1)
    assert sessions.change(0, 1, 2) == [True, True, False]
    select(sessions.request(first, 1, forgotten=(1,)), {})
    assert sessions.change(0, 1) == [True, False]
    sessions.request(first, -1)
    assert sessions.change(0) == [True]
    sessions.request(second, -1)
    assert sessions.change(0) == [False]


def test_requests_add_change_and_forget_partitions() -> None:
    sessions = Sessions()
    session_id = sessions.start(3)
    context = sessions.request(session_id, 1, partitions=[1, 8], forgotten=(0, 6))
    assert taken(context) == [1, 2, 8]
    assert indexes(select(context, {})) == [8]


def test_session_without_partitions_ends() -> None:
    sessions = Sessions()
    session_id = sessions.start(1)
    assert select(sessions.request(session_id, 1, forgotten=(0,)), {}).session_id == 0
    assert not sessions.is_open(session_id)


def test_unknown_session_wrong_epoch_and_other_topic_keys_are_refused() -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    refused = [
        select(sessions.request(session_id + 1, 1), {}),
        select(sessions.request(session_id, 2), {}),
        select(sessions.request(session_id, 1, version=12), {}),
    ]
    errors = [FetchSessionIdNotFoundError, InvalidFetchSessionEpochError, FetchSessionTopicIdError]
    assert refused == [Selected(code_of(error()), 0, []) for error in errors]
    assert indexes(select(sessions.request(session_id, 1), {})) == []


def test_response_of_a_superseded_request_is_refused() -> None:
    sessions = Sessions()
    session_id = sessions.start(2)
    waiting = sessions.request(session_id, 1)
    select(sessions.request(session_id, 2), {})
    late = select(waiting, {0: EMPTY._replace(records=b"records")})
    assert late == Selected(code_of(InvalidFetchSessionEpochError()), session_id, [])


def test_epochs_wrap_to_one() -> None:
    assert [fetch_session.next_epoch(epoch) for epoch in (0, 1, 2**31 - 1)] == [1, 2, 1]


def test_topic_id_gets_its_name_once_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions()
    first = sessions.request(partitions=[0], topic_id=OTHER_ID)
    assert [each.name for each in first.take()] == [""]
    session_id = select(first, {}).session_id
    monkeypatch.setitem(NAMES, OTHER_ID, "o")
    assert [each.name for each in sessions.request(session_id, 1).take()] == ["o"]


def test_without_slots_every_fetch_is_full() -> None:
    assert Sessions(slots=0).start(3) == 0


def test_new_session_evicts_none_that_is_young() -> None:
    sessions = Sessions(slots=2)
    assert (sessions.start(1) > 0, sessions.start(1) > 0, sessions.start(100)) == (True, True, 0)


def test_new_session_evicts_the_least_recently_used_that_is_idle() -> None:
    sessions = Sessions(slots=2)
    first, second = sessions.start(1), sessions.start(5)
    select(sessions.request(first, 1), {})
    sessions.clock.elapsed_ms += 120_001
    select(sessions.request(first, 2), {})
    third = sessions.start(1)
    assert [sessions.is_open(each) for each in (first, second, third)] == [True, False, True]


def test_larger_session_evicts_the_smallest_of_the_old() -> None:
    sessions = Sessions(slots=3)
    opened = [sessions.start(size) for size in (2, 1, 3)]
    sessions.clock.elapsed_ms += 120_000
    for session_id in opened:
        select(sessions.request(session_id, 1), {})
    sessions.clock.elapsed_ms += 1
    assert sessions.start(1) == 0
    assert sessions.start(2) > 0
    assert [sessions.is_open(each) for each in opened] == [True, False, True]


def test_follower_evicts_consumers_and_is_not_evicted_by_them() -> None:
    sessions = Sessions(slots=1)
    consumer = sessions.start(9)
    follower = sessions.start(1, follower=True)
    sessions.clock.elapsed_ms += 120_000
    select(sessions.request(follower, 1), {})
    sessions.clock.elapsed_ms += 1
    assert (sessions.start(9), sessions.is_open(consumer), sessions.is_open(follower)) == (
        0,
        False,
        True,
    )


def test_partitions_of_all_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_session, "MAX_CACHED_PARTITIONS", 10)
    sessions = Sessions()
    small, large = sessions.start(2), sessions.start(8)
    assert sessions.start(1) == 0
    grown = select(sessions.request(small, 1, partitions=[7]), {})
    assert (grown.session_id, indexes(grown)) == (0, [0, 1, 7])
    assert (sessions.is_open(small), sessions.is_open(large)) == (False, True)
    assert sessions.start(2) > 0
