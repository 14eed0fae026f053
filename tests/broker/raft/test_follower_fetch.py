"""Fetches of a follower: the responses of a leader that is another bench."""

import pytest

from kclient.broker.raft.raft_types import FatalRaftError, OffsetAndEpoch
from kclient.common.errors import DisconnectedError
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import FetchSnapshotRequest
from tests.support.quorum.bench import Bench
from tests.support.quorum.requests import START, begin, catch_up, elect, partition


def leader() -> Bench:
    bench = Bench(1, 2)
    epoch = elect(bench)
    bench.client.append([b"a", b"b"], epoch, bench.clock.now_ms)
    bench.advance(10)
    catch_up(bench, 2)
    assert bench.client.high_watermark == 3
    return bench


def exchange(source: Bench, target: Bench, rounds: int = 1) -> None:
    """Deliver the fetches of a node to the leader, and the responses."""
    for _ in range(rounds):
        sent = source.take(FetchRequest) + source.take(FetchSnapshotRequest)
        for _, request, on_response in sent:
            responses = target.handle(request)
            if not responses:
                target.advance(500)
            source.respond(on_response, responses[0])


def test_follower_copies_log_and_high_watermark() -> None:
    source = leader()
    follower = Bench(1, 2, node_id=2)
    follower.handle(begin(1, 1, to=2))
    exchange(follower, source, 2)
    assert follower.context.log.end == source.context.log.end
    assert [each.data for each in follower.log.batches] == [
        each.data for each in source.log.batches
    ]
    assert follower.log.durable_end == 3
    assert follower.client.high_watermark == 3
    assert follower.listener.values == [b"a", b"b"]


def test_fetch_resets_the_timeout() -> None:
    source = leader()
    follower = Bench(1, 2, node_id=2)
    follower.handle(begin(1, 1, to=2))
    for _ in range(5):
        follower.advance(1_900)
        exchange(follower, source)
        source.advance()
    assert follower.state == "Follower"
    follower.take(FetchRequest)
    follower.advance(2_001)
    assert follower.state == "Prospective"


def test_unattached_node_finds_the_leader() -> None:
    source = leader()
    node = Bench(1, 2, node_id=2)
    node.advance()
    exchange(node, source, 3)
    assert node.state == "Follower"
    assert node.context.log.end == source.context.log.end


def test_diverging_log_is_truncated() -> None:
    source = leader()
    source.context.observe(-1, 4, {}, source.clock.now_ms)
    elect(source)
    other = Bench(1, 2, node_id=2)
    other.context.observe(-1, 2, {}, 0.0)
    elect(other)
    for _ in range(3):
        other.client.append([b"lost"], 3, other.clock.now_ms)
        other.advance(10)
    epoch = source.client.leader_and_epoch.epoch
    assert epoch > 3
    other.handle(begin(1, epoch, to=2))
    exchange(other, source, 4)
    assert other.context.log.end == source.context.log.end
    assert b"lost" not in other.listener.values


def test_diverging_below_the_high_watermark_is_fatal() -> None:
    source = leader()
    follower = Bench(1, 2, node_id=2)
    follower.handle(begin(1, 1, to=2))
    exchange(follower, source, 2)
    (_, _, on_response), *_ = follower.take(FetchRequest)
    response = catch_up(source, 2)
    source.advance(500)
    partition(response[0]).diverging_epoch.epoch = 0
    partition(response[0]).diverging_epoch.end_offset = 0
    with pytest.raises(FatalRaftError, match="below the high watermark"):
        follower.respond(on_response, response[0])


def test_snapshot_is_downloaded() -> None:
    source = leader()
    writer = source.client.create_snapshot(OffsetAndEpoch(3, 1), 1_000)
    assert writer is not None
    writer.append([b"state" * 100])
    writer.freeze()
    source.context.log.delete_before_snapshot(OffsetAndEpoch(3, 1), 0.0)
    node = Bench(1, 2, node_id=2)
    node.handle(begin(1, 1, to=2))
    exchange(node, source)
    assert node.take(FetchRequest) == []
    assert len(node.sent) == 1
    exchange(node, source, 2)
    assert node.context.log.end == (3, 1)
    assert node.client.latest_snapshot_id == (3, 1)
    assert node.listener.values == [b"state" * 100]


def test_removed_snapshot_leads_back_to_fetch() -> None:
    source = leader()
    node = Bench(1, 2, node_id=2)
    node.handle(begin(1, 1, to=2))
    node.take(FetchRequest)
    node.context.requests.reset_all()
    node.client._fetch._start_download(OffsetAndEpoch(2, 1))
    node.advance()
    exchange(node, source)
    node.advance(20)
    assert len(node.take(FetchRequest)) == 1
    assert node.context.log.snapshots.ids == []


def test_unreachable_leader_makes_a_follower_ask_the_others() -> None:
    node = Bench(1, 2, 3, node_id=2)
    node.handle(begin(1, 1, to=2))
    (sent, _, on_response), *_ = node.take(FetchRequest)
    assert sent.id == 1
    node.respond(on_response, DisconnectedError("refused"))
    assert [each.id for each, _, _ in node.take(FetchRequest)] == [3]
    assert node.context.log.end == START
