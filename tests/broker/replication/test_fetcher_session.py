"""Fetch session of a follower: changes, forgotten partitions, the end of a session."""

from kclient.broker.replication.fetcher_session import FetcherSession
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

A, B = (b"a" * 16, 0), (b"b" * 16, 3)


def wanted(**offsets: int) -> dict[tuple[bytes, int], FetchPartition]:
    keys = {"a": A, "b": B}
    return {
        keys[name]: FetchPartition(partition=keys[name][1], fetch_offset=offset)
        for name, offset in offsets.items()
    }


def request(session: FetcherSession, **offsets: int) -> FetchRequest:
    made = FetchRequest()
    session.fill(made, wanted(**offsets))
    return made


def sent(made: FetchRequest) -> list[tuple[bytes, int]]:
    return [
        (topic.topic_id, part.fetch_offset) for topic in made.topics for part in topic.partitions
    ]


def test_request_of_a_session_names_only_the_changes() -> None:
    session = FetcherSession()
    first = request(session, a=1, b=2)
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert sent(first) == [(A[0], 1), (B[0], 2)]
    assert session.take(FetchResponse(session_id=9)) == {}
    second = request(session, a=1, b=5)
    assert (second.session_id, second.session_epoch, sent(second)) == (9, 1, [(B[0], 5)])
    session.take(FetchResponse(session_id=9))
    third = request(session, a=1)
    assert (third.session_epoch, sent(third)) == (2, [])
    (forgotten,) = third.forgotten_topics_data
    assert (forgotten.topic_id, forgotten.partitions) == (B[0], [3])


def test_leader_without_session_gets_full_requests() -> None:
    session = FetcherSession()
    for _ in range(2):
        made = request(session, a=1)
        assert (made.session_epoch, sent(made)) == (0, [(A[0], 1)])
        session.take(FetchResponse(session_id=0))


def test_session_that_ended_is_replaced_by_a_full_request() -> None:
    session = FetcherSession()
    request(session, a=1)
    session.take(FetchResponse(session_id=9))
    request(session, a=1)
    assert session.take(FetchResponse(error_code=71, session_id=9)) is None
    again = request(session, a=1)
    assert (again.session_id, again.session_epoch, sent(again)) == (9, 0, [(A[0], 1)])
    session.reset()
    assert request(session, b=1).forgotten_topics_data == []


def test_partitions_of_a_response_have_topic_id_and_number() -> None:
    session = FetcherSession()
    request(session, b=1)
    part = PartitionData(partition_index=3, high_watermark=4)
    response = FetchResponse(
        session_id=9, responses=[FetchableTopicResponse(topic_id=B[0], partitions=[part])]
    )
    assert session.take(response) == {B: part}
