"""Fetch, FetchSnapshot and DescribeQuorum at the leader and at other nodes."""

import pytest

from kclient.broker.raft.raft_messages import fetch_snapshot_request
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    FetchSnapshotRequest,
)
from tests.support.quorum.bench import Bench, key
from tests.support.quorum.requests import START, begin, catch_up, elect, fetch, partition, sender


def snapshot_request(
    offset: int, epoch: int, position: int, size: int = 100
) -> FetchSnapshotRequest:
    return fetch_snapshot_request(sender(2), 1, OffsetAndEpoch(offset, epoch), position, size)


@pytest.fixture
def bench() -> Bench:
    """Leader of epoch 1 with one record of it, committed."""
    bench = Bench(1, 2, 3)
    elect(bench)
    catch_up(bench, 2)
    return bench


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (fetch(2, 0, START), 74),
        (fetch(2, 2, START), 75),
        (fetch(2, 1, OffsetAndEpoch(0, 2)), 42),
        (fetch(2, 1, OffsetAndEpoch(-1, 0)), 42),
        (fetch(2, 1, START, wait_ms=-1), 42),
        (fetch(2, 1, START), 0),
    ],
)
def test_fetch_errors_name_the_leader(bench: Bench, request_: FetchRequest, error: int) -> None:
    response = bench.handle(request_)[0]
    data = partition(response)
    assert data.error_code == error
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 1)
    assert [each.node_id for each in response.node_endpoints] == [1]
    assert bench.context.quorum.epoch == 1


def test_fetch_of_another_topic_or_cluster(bench: Bench) -> None:
    other = fetch(2, 1, START)
    other.topics[0].topic_id = bytes([1]) * 16
    assert bench.handle(other)[0].error_code == 42
    other = fetch(2, 1, START)
    other.cluster_id = "other"
    assert bench.handle(other)[0].error_code == 104


def test_follower_names_its_leader() -> None:
    bench = Bench(1, 2, 3)
    bench.handle(begin(3, 4))
    response = bench.handle(fetch(2, 4, START))[0]
    assert partition(response).error_code == 6
    assert (response.node_endpoints[0].node_id, response.node_endpoints[0].host) == (3, "node3")


def test_fetch_returns_records_and_commits_what_the_follower_has(bench: Bench) -> None:
    assert bench.client.high_watermark == 1
    data = partition(bench.handle(fetch(3, 1, START))[0])
    assert (data.high_watermark, data.log_start_offset) == (1, 0)
    assert len(data.records) > 60


def test_diverging_follower_does_not_count(bench: Bench) -> None:
    bench.client.append([b"a"], 1, bench.clock.now_ms)
    bench.advance(10)
    data = partition(bench.handle(fetch(2, 1, OffsetAndEpoch(9, 0)))[0])
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 0)
    assert bench.client.high_watermark == 1


def test_fetch_without_records_is_parked(bench: Bench) -> None:
    parked = catch_up(bench, 2)
    bench.advance(499)
    assert parked == []
    bench.advance(1)
    assert partition(parked[0]).records == b""
    assert partition(bench.handle(fetch(2, 1, OffsetAndEpoch(1, 1), wait_ms=0))[0]).error_code == 0
    assert bench.handle(fetch(3, 1, OffsetAndEpoch(1, 1), known=0)) != []


def test_parked_fetch_learns_of_the_high_watermark(bench: Bench) -> None:
    bench.client.append([b"a"], 1, bench.clock.now_ms)
    bench.advance(10)
    parked = bench.handle(fetch(2, 1, OffsetAndEpoch(2, 1), known=2))
    assert bench.client.high_watermark == 2
    bench.client.append([b"b"], 1, bench.clock.now_ms)
    assert parked == []
    bench.advance(10)
    assert partition(parked[0]).high_watermark == 2


def make_snapshot(bench: Bench) -> OffsetAndEpoch:
    writer = bench.client.create_snapshot(OffsetAndEpoch(1, 1), 1_000)
    assert writer is not None
    writer.append([b"state"])
    writer.freeze()
    return writer.snapshot_id


def test_empty_follower_gets_a_snapshot(bench: Bench) -> None:
    snapshot_id = make_snapshot(bench)
    data = partition(bench.handle(fetch(3, 1, START))[0])
    named = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    assert named == snapshot_id
    size = bench.context.log.snapshots.size(snapshot_id)
    received = b""
    while len(received) < size:
        part = partition(bench.handle(snapshot_request(1, 1, len(received), 50))[0])
        assert (part.error_code, part.size, part.position) == (0, size, len(received))
        received += part.unaligned_records
    assert received == bench.context.log.snapshots.read(snapshot_id, 0, size)


@pytest.mark.parametrize(
    ("offset", "epoch", "position", "error"),
    [(2, 1, 0, 98), (0, 0, 0, 98), (1, 1, -1, 99), (1, 1, 1 << 20, 99)],
)
def test_fetch_snapshot_errors(
    bench: Bench, offset: int, epoch: int, position: int, error: int
) -> None:
    make_snapshot(bench)
    assert partition(bench.handle(snapshot_request(offset, epoch, position))[0]).error_code == error


def test_bootstrap_snapshot_is_not_served() -> None:
    bench = Bench(1, dynamic=True)
    bench.advance()
    assert partition(bench.handle(snapshot_request(0, 0, 0))[0]).error_code == 98
    assert partition(bench.handle(fetch(2, 1, START))[0]).snapshot_id.epoch == -1


def describe() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata",
        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
    )
    return DescribeQuorumRequest(topics=[topic])


def test_describe_quorum(bench: Bench) -> None:
    bench.handle(fetch(9, 1, START))
    bench.advance(300)
    response = bench.handle(describe())[0]
    data = partition(response)
    assert (data.leader_id, data.leader_epoch, data.high_watermark) == (1, 1, 1)
    voters = {each.replica_id: each for each in data.current_voters}
    assert {each: voters[each].log_end_offset for each in voters} == {1: 1, 2: 1, 3: -1}
    now = bench.clock.wall_ms()
    assert (voters[1].last_fetch_timestamp, voters[2].last_fetch_timestamp) == (now, now - 300)
    assert voters[3].last_fetch_timestamp == -1
    assert [each.replica_directory_id for each in data.observers] == [key(9).directory_id]
    assert [each.node_id for each in response.nodes] == [1, 2, 3]
    assert response.encode_bytes(2)


def test_describe_quorum_of_another_topic_or_node(bench: Bench) -> None:
    request = describe()
    request.topics[0].topic_name = "other"
    assert partition(bench.handle(request)[0]).error_code == 3
    assert Bench(1, 2).handle(describe())[0].error_code == 6
