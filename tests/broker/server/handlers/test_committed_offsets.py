"""OffsetCommit and OffsetFetch requests."""

import pytest

from kclient.common.broker_errors import (
    NONE,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from tests.support.clients.wire import Wire


def commit(
    wire: Wire,
    group: str,
    version: int,
    *parts: tuple[int, int],
    topic: str = "",
    topic_id: bytes = bytes(16),
) -> list[int]:
    """Commit pairs of partition and offset; return an error code for each."""
    wire.metadata("__consumer_offsets", create=True)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=f"at {offset}",
                    )
                    for index, offset in parts
                ],
            )
        ],
    )
    (found,) = wire.ask(request, version, OffsetCommitResponse).topics
    return [part.error_code for part in found.partitions]


def fetch(
    wire: Wire, group: str, version: int, topics: list[OffsetFetchRequestTopics] | None
) -> OffsetFetchResponseGroup:
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    response = wire.ask(OffsetFetchRequest(groups=[asked]), version, OffsetFetchResponse)
    (found,) = response.groups
    assert (found.group_id, found.error_code) == (group, NONE)
    return found


def offsets(found: OffsetFetchResponseGroup) -> list[tuple[int, int]]:
    (topic,) = found.topics
    return [(part.partition_index, part.committed_offset) for part in topic.partitions]


def test_committed_offset_has_leader_epoch_and_metadata(wire: Wire, topic: str) -> None:
    assert commit(wire, topic, 8, (0, 5), (1, 6), topic=topic) == [NONE, NONE]
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[1])]
    (part,) = fetch(wire, topic, 8, wanted).topics[0].partitions
    assert (part.partition_index, part.committed_offset) == (1, 6)
    assert (part.committed_leader_epoch, part.metadata) == (3, "at 6")


def test_partition_without_an_offset_has_minus_one(wire: Wire, topic: str) -> None:
    commit(wire, topic, 8, (1, 6), topic=topic)
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1, 7])]
    assert offsets(fetch(wire, topic, 8, wanted)) == [(0, -1), (1, 6), (7, -1)]


def test_request_without_topics_returns_all_offsets(wire: Wire, topic: str) -> None:
    commit(wire, topic, 8, (1, 6), (0, 5), topic=topic)
    assert offsets(fetch(wire, topic, 8, None)) == [(0, 5), (1, 6)]
    old = wire.ask(OffsetFetchRequest(group_id=topic, topics=None), 7, OffsetFetchResponse)
    (found,) = old.topics
    assert [(part.partition_index, part.committed_offset) for part in found.partitions] == [
        (0, 5),
        (1, 6),
    ]
    assert fetch(wire, "unknown", 8, None).topics == []


def test_offset_of_unknown_partition_is_refused(wire: Wire, topic: str) -> None:
    unknown = code_of(UnknownTopicOrPartitionError)
    assert commit(wire, topic, 8, (0, 5), (2, 6), topic=topic) == [NONE, unknown]
    assert commit(wire, topic, 8, (0, 5), topic="missing") == [unknown]
    assert offsets(fetch(wire, topic, 8, None)) == [(0, 5)]


def test_version_10_uses_topic_ids(wire: Wire, topic: str) -> None:
    topic_id = wire.metadata(topic).topics[0].topic_id
    assert commit(wire, topic, 10, (1, 9), topic_id=topic_id) == [NONE]
    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[1])]
    found = fetch(wire, topic, 10, wanted)
    assert (found.topics[0].topic_id, offsets(found)) == (topic_id, [(1, 9)])
    assert fetch(wire, topic, 10, None).topics[0].topic_id == topic_id


def test_unknown_topic_id_is_an_error_of_its_partitions(wire: Wire, topic: str) -> None:
    unknown, other = code_of(UnknownTopicIdError), b"\7" * 16
    assert commit(wire, topic, 10, (0, 5), (1, 5), topic_id=other) == [unknown, unknown]
    wanted = [OffsetFetchRequestTopics(topic_id=other, partition_indexes=[0])]
    (part,) = fetch(wire, topic, 10, wanted).topics[0].partitions
    assert (part.committed_offset, part.error_code) == (-1, unknown)


@pytest.mark.parametrize("group", ["a", ""])
def test_failed_commit_has_the_error_of_every_partition(wire: Wire, topic: str, group: str) -> None:
    wire.metadata("__consumer_offsets", create=True)
    part = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=4,
        member_id="stale",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    (found,) = wire.ask(request, 8, OffsetCommitResponse).topics
    assert found.name == topic
    assert found.partitions[0].error_code != NONE
