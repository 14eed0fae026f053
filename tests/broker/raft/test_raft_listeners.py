"""Listeners of the metadata log."""

from kclient.broker.raft.raft_types import LeaderAndEpoch, OffsetAndEpoch
from tests.support.quorum.bench import Bench, RecordingListener
from tests.support.quorum.requests import elect


def single() -> Bench:
    bench = Bench(1)
    bench.advance()
    return bench


def test_listener_of_the_leader_learns_of_it_after_all_earlier_records() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    assert bench.listener.leaders == [LeaderAndEpoch(-1, 0), LeaderAndEpoch(-1, epoch)]


def test_late_listener_receives_everything() -> None:
    bench = single()
    bench.client.append([b"a", b"b"], 1, 0.0)
    late = RecordingListener()
    bench.client.register(late)  # type: ignore[arg-type]
    bench.advance()
    assert late.values == bench.listener.values == [b"a", b"b"]
    assert late.leaders == [LeaderAndEpoch(1, 1)]
    bench.client.unregister(late)  # type: ignore[arg-type]
    bench.client.append([b"c"], 1, 0.0)
    assert late.values == [b"a", b"b"]


def test_append_from_within_a_listener_is_reported_afterwards() -> None:
    bench = single()

    def append_once() -> None:
        bench.listener.on_commit = lambda: None
        bench.client.append([b"second"], 1, 0.0)
        assert bench.listener.values == [b"first"]

    bench.listener.on_commit = append_once
    bench.client.append([b"first"], 1, 0.0)
    assert bench.listener.values == [b"first", b"second"]


def test_append_at_a_leader_change_is_reported_by_the_same_poll() -> None:
    bench = Bench(1)

    def append_first(leader: LeaderAndEpoch) -> None:
        if leader.leader_id == 1:
            bench.client.append([b"first"], leader.epoch, 0.0)

    def append_second() -> None:
        if bench.listener.values == [b"first"]:
            bench.client.append([b"second"], 1, 0.0)

    bench.listener.on_leader = append_first
    bench.listener.on_commit = append_second
    bench.client.poll(bench.clock.now_ms)
    assert bench.listener.values == [b"first", b"second"]


def test_snapshot_in_place_of_removed_records() -> None:
    bench = single()
    end_offset = bench.client.append([b"a", b"b"], 1, 0.0) + 1
    writer = bench.client.create_snapshot(OffsetAndEpoch(end_offset, 1), 1_000)
    assert writer is not None
    writer.append([b"state"])
    writer.freeze()
    bench.context.log.delete_before_snapshot(OffsetAndEpoch(end_offset, 1), 0.0)
    bench.client.append([b"c"], 1, 0.0)
    late = RecordingListener()
    bench.client.register(late)  # type: ignore[arg-type]
    bench.advance()
    assert (late.snapshots, late.values) == ([end_offset], [b"state", b"c"])
