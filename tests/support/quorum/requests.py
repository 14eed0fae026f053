"""Requests and responses of other nodes, for a `Bench`."""

from typing import Any

from kclient.broker.raft.raft_messages import (
    LeaderInfo,
    Sender,
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
    fetch_request,
    vote_request,
    vote_response,
)
from kclient.broker.raft.raft_types import LeaderAndEpoch, OffsetAndEpoch
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from tests.support.quorum.bench import Bench, endpoints, key
from tests.support.quorum.world import CLUSTER

START = OffsetAndEpoch(0, 0)


def sender(node_id: int) -> Sender:
    return Sender(CLUSTER, key(node_id))


def vote(
    node_id: int, epoch: int, end: OffsetAndEpoch = START, *, pre_vote: bool = False, to: int = 1
) -> VoteRequest:
    return vote_request(sender(node_id), key(to), epoch, end, pre_vote=pre_vote)


def granted(epoch: int, *, yes: bool = True, leader_id: int = -1) -> VoteResponse:
    return vote_response(0, LeaderInfo(LeaderAndEpoch(leader_id, epoch), None), granted=yes)


def begin(leader_id: int, epoch: int, to: int = 1) -> BeginQuorumEpochRequest:
    return begin_quorum_epoch_request(sender(leader_id), key(to), epoch, endpoints(leader_id))


def end(leader_id: int, epoch: int, *successors: int) -> EndQuorumEpochRequest:
    keys = [key(each) for each in successors]
    return end_quorum_epoch_request(sender(leader_id), epoch, keys, endpoints(leader_id))


def fetch(
    node_id: int, epoch: int, position: OffsetAndEpoch, *, wait_ms: int = 500, known: int = -1
) -> FetchRequest:
    return fetch_request(sender(node_id), epoch, position, known, wait_ms, 1 << 20)


def partition(response: Any) -> Any:
    """Return the one partition of a response."""
    topics = response.responses if hasattr(response, "responses") else response.topics
    return topics[0].partitions[0]


def elect(bench: Bench) -> int:
    """Make the node the leader; return the epoch."""
    bench.advance(2_001)
    for _, request, on_response in bench.take(VoteRequest):
        bench.respond(on_response, granted(request.topics[0].partitions[0].replica_epoch))
    for _, request, on_response in bench.take(VoteRequest):
        bench.respond(on_response, granted(request.topics[0].partitions[0].replica_epoch))
    assert bench.state == "Leader"
    return bench.client.leader_and_epoch.epoch


def catch_up(bench: Bench, node_id: int) -> Any:
    """Fetch from the end of the leader's log, as a replica that has all of it."""
    known = bench.client.high_watermark
    end = bench.context.log.end
    epoch = bench.context.quorum.epoch
    return bench.handle(fetch(node_id, epoch, end, known=-1 if known is None else known))
