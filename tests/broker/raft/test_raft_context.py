"""Transitions and appends of a node."""

import pytest

from kclient.broker.raft.raft_types import FatalRaftError, RaftNode
from kclient.broker.raft.voter_set import Endpoint
from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.record import ControlRecordType
from tests.support.quorum.bench import Bench, endpoints, key
from tests.support.quorum.requests import START, catch_up, elect, fetch, partition
from tests.support.quorum.world import LISTENER


def test_leader_and_epoch_of_a_message() -> None:
    bench = Bench(1, 2, 3)
    bench.context.observe(-1, 4, {}, 0.0)
    assert (bench.state, bench.context.quorum.leader) == ("Unattached", (-1, 4))
    bench.context.observe(2, 3, endpoints(2), 0.0)
    assert bench.context.quorum.leader == (-1, 4)
    bench.context.observe(2, 4, {}, 0.0)
    assert (bench.state, bench.context.quorum.leader) == ("Follower", (2, 4))
    with pytest.raises(FatalRaftError, match="has the leaders"):
        bench.context.observe(3, 4, {}, 0.0)
    bench.context.observe(8, 5, {}, 0.0)
    assert (bench.state, bench.context.quorum.leader) == ("Unattached", (8, 5))
    bench.context.observe(8, 5, endpoints(8), 0.0)
    assert bench.context.leader_info(LISTENER).endpoint == Endpoint("node8", 9008)


def test_bootstrap_nodes_are_the_other_voters() -> None:
    bench = Bench(1, 2, 3)
    assert bench.context.bootstrap_nodes() == [
        RaftNode(2, "node2", 9002),
        RaftNode(3, "node3", 9003),
    ]


@pytest.mark.parametrize("dynamic", [False, True])
def test_first_batch_of_an_epoch(dynamic: bool) -> None:
    """Voters that are only in the bootstrap snapshot are written to the log."""
    bench = Bench(1, dynamic=dynamic)
    bench.advance()
    first = next(bench.context.log.batches(0, 1))
    kinds = [ControlRecordType.parse(record.key).name for record in first.records()]
    assert kinds == ["LEADER_CHANGE", *(["KRAFT_VERSION", "KRAFT_VOTERS"] if dynamic else [])]
    assert first.partition_leader_epoch == 1


def test_appends_wait_for_the_linger_time_and_the_followers() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    catch_up(bench, 2)
    committed = bench.client.high_watermark
    waiting = catch_up(bench, 2)
    assert bench.client.append([b"a"], epoch, bench.clock.now_ms) == 1
    bench.client.append([b"b"], epoch, bench.clock.now_ms)
    assert bench.client.log_end_offset == 1
    bench.advance(10)
    assert bench.client.log_end_offset == 3
    assert len(partition(waiting[0]).records) > 0
    assert bench.client.high_watermark == committed
    catch_up(bench, 3)
    assert bench.client.high_watermark == 3
    assert bench.listener.values == [b"a", b"b"]


def test_lost_leadership_refuses_appends_and_ends_parked_fetches() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    catch_up(bench, 2)
    parked = catch_up(bench, 2)
    bench.client.append([b"lost"], epoch, bench.clock.now_ms)
    assert parked == []
    bench.context.observe(2, epoch + 1, {}, bench.clock.now_ms)
    assert partition(parked[0]).error_code == 74
    with pytest.raises(NotLeaderOrFollowerError):
        bench.client.append([b"a"], epoch, bench.clock.now_ms)
    bench.advance(50)
    assert bench.listener.values == []


def test_observer_does_not_commit() -> None:
    bench = Bench(1, 2, 3)
    elect(bench)
    bench.handle(fetch(9, 1, START))
    bench.handle(fetch(9, 1, bench.context.log.end))
    assert bench.client.high_watermark is None
    assert not bench.context.quorum.voters.is_voter(key(9))
