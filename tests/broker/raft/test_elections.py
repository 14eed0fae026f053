"""Vote, BeginQuorumEpoch and EndQuorumEpoch, from both sides."""

import pytest

from kclient.broker.raft.epoch_state import FollowerState
from kclient.broker.raft.quorum_state_store import ElectionState
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import DisconnectedError
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from tests.support.quorum.bench import Bench, key
from tests.support.quorum.requests import (
    begin,
    catch_up,
    elect,
    end,
    fetch,
    granted,
    partition,
    vote,
)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(2, 3, to=9), 125),
        (vote(2, 3, OffsetAndEpoch(0, 3)), 42),
        (vote(2, 3, OffsetAndEpoch(-1, 0)), 42),
        (vote(2, 3, OffsetAndEpoch(0, 3), pre_vote=True), 0),
        (vote(2, 3, OffsetAndEpoch(0, 4), pre_vote=True), 42),
        (vote(2, 1), 74),
        (vote(2, 3), 0),
    ],
)
def test_vote_errors(request_: VoteRequest, error: int) -> None:
    bench = Bench(1, 2, 3, stored=ElectionState(2))
    response = partition(bench.handle(request_)[0])
    assert response.error_code == error
    assert response.vote_granted == (error == 0)
    assert response.leader_epoch == (2 if error in {42, 74} else 3)


def test_request_of_another_cluster() -> None:
    bench = Bench(1, 2, 3)
    for request in (vote(2, 3), begin(2, 3), end(2, 3)):
        request.cluster_id = "other"
        assert bench.handle(request)[0].error_code == 104
    assert bench.context.quorum.epoch == 0


def test_vote_is_stored_before_the_response() -> None:
    bench = Bench(1, 2, 3)
    stored = []
    bench.client.handle_request(
        vote(2, 3), "CONTROLLER", 0.0, lambda _: stored.append(bench.store.read())
    )
    assert stored[0] is not None
    assert (stored[0].epoch, stored[0].voted and stored[0].voted.id) == (3, 2)


def test_second_candidate_of_an_epoch_is_refused() -> None:
    bench = Bench(1, 2, 3)
    assert partition(bench.handle(vote(2, 3))[0]).vote_granted
    assert not partition(bench.handle(vote(3, 3))[0]).vote_granted
    assert partition(bench.handle(vote(2, 3))[0]).vote_granted


def test_election_with_pre_vote() -> None:
    bench = Bench(1, 2, 3)
    bench.advance(2_001)
    assert bench.state == "Prospective"
    requests = bench.take(VoteRequest)
    assert [node.id for node, _, _ in requests] == [2, 3]
    asked = requests[0][1].topics[0].partitions[0]
    assert (asked.pre_vote, asked.replica_epoch) == (True, 0)
    assert bench.context.quorum.epoch == 0
    bench.respond(requests[0][2], granted(0))
    assert (bench.state, bench.context.quorum.epoch) == ("Candidate", 1)
    bench.respond(requests[1][2], granted(0))
    requests = bench.take(VoteRequest)
    bench.respond(requests[0][2], granted(1))
    assert bench.state == "Leader"
    assert {node.id for node, _, _ in bench.take(BeginQuorumEpochRequest)} == {2, 3}


def test_voter_without_pre_vote() -> None:
    bench = Bench(1, 2, 3)
    bench.advance(2_001)
    bench.respond(bench.take(VoteRequest)[0][2], UnsupportedVersionError("Vote 1"))
    assert bench.state == "Candidate"


def test_refused_pre_vote_returns_to_the_leader() -> None:
    bench = Bench(1, 2, 3)
    bench.handle(begin(2, 4))
    bench.advance(2_001)
    assert bench.state == "Prospective"
    for _, _, on_response in bench.take(VoteRequest):
        bench.respond(on_response, granted(4, yes=False, leader_id=2))
    assert (bench.state, bench.context.quorum.leader) == ("Follower", (2, 4))


def test_candidate_waits_out_its_timeout() -> None:
    bench = Bench(1, 2, 3)
    bench.advance(2_001)
    bench.respond(bench.take(VoteRequest)[0][2], granted(0))
    for _, _, on_response in bench.take(VoteRequest):
        bench.respond(on_response, granted(1, yes=False))
    assert bench.state == "Candidate"
    bench.advance(2_001)
    assert (bench.state, bench.context.quorum.epoch) == ("Prospective", 1)


def test_failed_request_is_repeated_after_the_backoff() -> None:
    bench = Bench(1, 2, 3)
    bench.advance(2_001)
    bench.respond(bench.take(VoteRequest)[0][2], DisconnectedError("refused"))
    assert bench.take(VoteRequest) == []
    bench.advance(20)
    assert [node.id for node, _, _ in bench.take(VoteRequest)] == [2]


def test_higher_epoch_in_a_response() -> None:
    bench = Bench(1, 2, 3)
    bench.advance(2_001)
    bench.respond(bench.take(VoteRequest)[0][2], granted(9, yes=False, leader_id=3))
    assert (bench.state, bench.context.quorum.leader) == ("Follower", (3, 9))


def test_begin_quorum_epoch() -> None:
    bench = Bench(1, 2, 3)
    response = partition(bench.handle(begin(2, 4))[0])
    assert (response.error_code, response.leader_id, response.leader_epoch) == (0, 2, 4)
    assert partition(bench.handle(begin(3, 3))[0]).error_code == 74
    assert partition(bench.handle(begin(3, 5, to=9))[0]).error_code == 125
    assert bench.context.quorum.leader == (3, 5)
    assert bench.store.read() == ElectionState(5, 3)


@pytest.mark.parametrize(
    ("successors", "delay_ms"), [((1, 3), 0), ((3, 1), 500), ((3, 4, 1), 500), ((3,), 1_000)]
)
def test_end_quorum_epoch(successors: tuple[int, ...], delay_ms: float) -> None:
    bench = Bench(1, 2, 3)
    bench.handle(begin(2, 4))
    responses: list[object] = []
    bench.client.handle_request(end(2, 4, *successors), "CONTROLLER", 0.0, responses.append)
    assert partition(responses[0]).error_code == 0
    state = bench.context.quorum.state
    assert isinstance(state, FollowerState)
    assert state.deadline_ms == delay_ms


def test_check_quorum() -> None:
    bench = Bench(1, 2, 3)
    elect(bench)
    bench.advance(2_900)
    catch_up(bench, 2)
    bench.advance(2_900)
    assert bench.state == "Leader"
    bench.advance(101)
    assert bench.state == "Resigned"


def test_resigned_leader_informs_the_voters() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    bench.client.resign(epoch - 1)
    bench.advance()
    assert bench.state == "Leader"
    bench.client.resign(epoch)
    bench.advance()
    assert bench.state == "Resigned"
    requests = bench.take(EndQuorumEpochRequest)
    assert {node.id for node, _, _ in requests} == {2, 3}
    assert not partition(bench.handle(vote(2, epoch))[0]).vote_granted
    assert partition(bench.handle(fetch(2, epoch, OffsetAndEpoch(0, 0)))[0]).error_code == 6
    bench.advance(2_001)
    assert (bench.state, bench.context.quorum.epoch) == ("Prospective", epoch + 1) or (
        bench.state == "Unattached"
    )


def test_restarted_leader_does_not_lead_its_epoch_again() -> None:
    bench = Bench(1, 2, 3)
    epoch = elect(bench)
    bench.start()
    assert bench.state == "Resigned"
    assert bench.client.leader_and_epoch == (-1, epoch)


def test_unattached_node_asks_for_the_leader() -> None:
    bench = Bench(2, 3)
    bench.advance()
    (node, _, _), *_ = bench.take(FetchRequest)
    assert node.id in {2, 3}
    bench.advance(60_000)
    assert bench.state == "Unattached"
    assert not bench.context.quorum.voters.is_voter(key(1))
