"""DescribeTopicPartitions requests."""

import pytest

from kclient.common.broker_errors import InvalidTopicError, UnknownTopicOrPartitionError, code_of
from kclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsTopicRequest,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire

Page = list[tuple[str, list[int]]]


def describe(
    wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    topics = [DescribeTopicPartitionsTopicRequest(name=name) for name in names]
    request = DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=limit, cursor=cursor
    )
    return wire.ask(request, 0, DescribeTopicPartitionsResponse)


@pytest.fixture(scope="module")
def names(cluster: EmbeddedCluster) -> tuple[str, str]:
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("paged-a", 3)
        wire.create_topic("paged-b", 2)
    return "paged-a", "paged-b"


@pytest.mark.parametrize(
    ("limit", "pages"),
    [
        (2000, [[("paged-a", [0, 1, 2]), ("paged-b", [0, 1])]]),
        (2, [[("paged-a", [0, 1])], [("paged-a", [2]), ("paged-b", [0])], [("paged-b", [1])]]),
        (3, [[("paged-a", [0, 1, 2])], [("paged-b", [0, 1])]]),
        (0, [[("paged-a", [n])] for n in range(3)] + [[("paged-b", [n])] for n in range(2)]),
    ],
)
def test_pages_continue_at_the_cursor(
    wire: Wire, names: tuple[str, str], limit: int, pages: list[Page]
) -> None:
    found: list[Page] = []
    cursor: Cursor | None = None
    while not found or cursor is not None:
        response = describe(wire, *reversed(names), limit=limit, cursor=cursor)
        found.append(
            [
                (topic.name or "", [part.partition_index for part in topic.partitions])
                for topic in response.topics
            ]
        )
        cursor = response.next_cursor
    assert found == pages


def test_partition_has_leader_and_replicas(wire: Wire, names: tuple[str, str]) -> None:
    (topic,) = describe(wire, names[0]).topics
    part = topic.partitions[0]
    assert part.replica_nodes == part.isr_nodes == [part.leader_id]
    assert (part.eligible_leader_replicas, part.last_known_elr, part.offline_replicas) == (
        [],
        [],
        [],
    )


def test_missing_topics_have_errors(wire: Wire) -> None:
    codes = [topic.error_code for topic in describe(wire, "in/valid", "missing").topics]
    assert codes == [code_of(InvalidTopicError), code_of(UnknownTopicOrPartitionError)]


def test_all_topics_are_described_without_names(wire: Wire, names: tuple[str, str]) -> None:
    assert set(names) <= {topic.name for topic in describe(wire).topics}
    after = describe(wire, cursor=Cursor(topic_name=names[1], partition_index=0))
    assert names[0] not in {topic.name for topic in after.topics}


def test_cursor_has_to_be_at_a_named_topic(wire: Wire, topic: str) -> None:
    response = describe(wire, topic, cursor=Cursor(topic_name="other", partition_index=0))
    assert [(each.error_code, each.name) for each in response.topics] == [(42, topic)]
