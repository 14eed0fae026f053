"""Node of the quorum as its caller sees it."""

import pytest

from kclient.broker.raft.raft_types import LeaderAndEpoch, OffsetAndEpoch
from kclient.common.broker_errors import (
    KafkaStorageError,
    NotLeaderOrFollowerError,
    UnsupportedVersionError,
)
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.quorum import EndQuorumEpochRequest
from tests.support.quorum.bench import Bench
from tests.support.quorum.requests import elect, end, fetch, partition


@pytest.mark.parametrize("dynamic", [False, True])
def test_sole_voter_leads_at_once_and_commits_before_append_returns(dynamic: bool) -> None:
    bench = Bench(1, dynamic=dynamic)
    bench.advance()
    assert bench.client.leader_and_epoch == LeaderAndEpoch(1, 1)
    start = bench.client.log_end_offset
    offset = bench.client.append([b"a", b"b"], 1, bench.clock.now_ms)
    assert offset == start + 1
    assert bench.client.high_watermark == bench.log.durable_end == offset + 1
    assert bench.listener.values == [b"a", b"b"]
    assert bench.sent == []


@pytest.mark.parametrize("step", ["append_as_leader", "flush"])
def test_failed_append_of_sole_voter_is_not_reported_as_committed(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    bench = Bench(1)
    bench.advance()
    high_watermark = bench.client.high_watermark

    def fail(*_arguments: object, **_options: object) -> None:
        raise KafkaStorageError("no space left")

    monkeypatch.setattr(bench.log, step, fail)
    with pytest.raises(KafkaStorageError):
        bench.client.append([b"lost"], 1, bench.clock.now_ms)
    assert bench.client.high_watermark == high_watermark
    assert bench.listener.values == []


def test_restarted_sole_voter_leads_the_next_epoch() -> None:
    bench = Bench(1)
    bench.advance()
    bench.client.append([b"a"], 1, 0.0)
    bench.start()
    bench.advance()
    assert bench.client.leader_and_epoch == LeaderAndEpoch(1, 2)
    assert bench.listener.values == [b"a"]
    assert bench.client.epoch_start_offset == 2


def test_next_offset_counts_batches_that_are_not_written() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    assert (bench.client.next_offset, bench.client.log_end_offset) == (1, 1)
    bench.client.append([b"a", b"b"], epoch, bench.clock.now_ms)
    assert (bench.client.next_offset, bench.client.log_end_offset) == (3, 1)


def test_append_without_leadership() -> None:
    bench = Bench(1, 2)
    with pytest.raises(NotLeaderOrFollowerError):
        bench.client.append([b"a"], 0, 0.0)
    assert bench.client.epoch_start_offset is None


def test_request_that_is_not_of_the_quorum() -> None:
    request = ApiVersionsRequest(client_software_name="", client_software_version="")
    with pytest.raises(UnsupportedVersionError):
        Bench(1).handle(request)


def test_snapshot_of_committed_records() -> None:
    bench = Bench(1, dynamic=True)
    bench.advance()
    end_offset = bench.client.append([b"a"], 1, 0.0) + 1
    snapshot_id = OffsetAndEpoch(end_offset, 1)
    writer = bench.client.create_snapshot(snapshot_id, 1_000)
    assert writer is not None
    writer.append([b"state"])
    writer.freeze()
    assert bench.client.latest_snapshot_id == snapshot_id
    assert bench.client.create_snapshot(snapshot_id, 1_000) is None
    assert len(list(bench.context.log.snapshots.reader(snapshot_id).control_records())) == 3


def test_shutdown_of_a_leader_hands_over() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    bench.client.start_shutdown()
    assert bench.listener.is_shutting_down
    assert not bench.client.is_shut_down()
    bench.advance()
    assert partition(bench.handle(fetch(2, epoch, OffsetAndEpoch(0, 0)))[0]).error_code == 8
    for _, _, on_response in bench.take(EndQuorumEpochRequest):
        assert not bench.client.is_shut_down()
        follower = Bench(1, 2, 3, node_id=2)
        bench.respond(on_response, follower.handle(end(1, epoch, 2, 3))[0])
    assert bench.client.is_shut_down()


def test_shutdown_of_others_is_immediate() -> None:
    follower = Bench(1, 2, 3)
    follower.client.start_shutdown()
    assert follower.client.is_shut_down()
    single = Bench(1)
    single.advance()
    single.client.start_shutdown()
    single.advance()
    assert single.client.is_shut_down()
