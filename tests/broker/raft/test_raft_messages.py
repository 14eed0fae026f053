"""Requests and responses survive their encoding, in the versions of Apache Kafka 4.3."""

import pytest

from kclient.broker.raft.raft_messages import (
    FetchResult,
    LeaderInfo,
    SnapshotChunk,
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    response_head,
    vote_response,
)
from kclient.broker.raft.raft_types import LeaderAndEpoch, OffsetAndEpoch
from kclient.broker.raft.voter_set import Endpoint
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.quorum import VoteResponse
from tests.support.quorum.requests import begin, end, fetch, sender, vote

INFO = LeaderInfo(LeaderAndEpoch(3, 7), Endpoint("node3", 9003))
ID = OffsetAndEpoch(42, 3)


@pytest.mark.parametrize(
    ("request_", "versions"),
    [
        (vote(2, 5), (0, 1, 2)),
        (vote(2, 5, pre_vote=True), (2,)),
        (begin(2, 5), (0, 1)),
        (end(2, 5, 3, 1), (0, 1)),
        (fetch(2, 5, ID), (15, 17, 18)),
        (fetch_snapshot_request(sender(2), 5, ID, 100, 1000), (0, 1)),
    ],
)
def test_requests(request_: Request, versions: tuple[int, ...]) -> None:
    for version in versions:
        data = request_.encode_bytes(version)
        assert type(request_).decode(data, version).encode_bytes(version) == data


def test_pre_vote_needs_version_2() -> None:
    with pytest.raises(UnsupportedVersionError):
        vote(2, 5, pre_vote=True).encode(1)


@pytest.mark.parametrize(
    ("response", "version"),
    [
        (vote_response(74, INFO, granted=False), 2),
        (begin_quorum_epoch_response(74, INFO), 1),
        (end_quorum_epoch_response(74, INFO), 1),
        (fetch_response(FetchResult(74, 5, 0, records=b"abc"), INFO), 18),
        (fetch_snapshot_response(74, ID, SnapshotChunk(10, 5, b"abcde"), INFO), 1),
    ],
)
def test_every_response_names_leader_epoch_and_endpoint(response: Response, version: int) -> None:
    decoded = type(response).decode(response.encode_bytes(version), version)
    head = response_head(decoded)
    assert (head.error_code, head.leader, head.endpoint) == (74, (3, 7), ("node3", 9003))
    assert not head.is_whole


def test_unknown_leader_has_no_endpoint() -> None:
    info = LeaderInfo(LeaderAndEpoch(-1, 7), Endpoint("node3", 9003))
    assert fetch_response(FetchResult(6), info).node_endpoints == []


def test_error_of_the_whole_response() -> None:
    head = response_head(VoteResponse(error_code=104, topics=[], node_endpoints=[]))
    assert (head.error_code, head.is_whole) == (104, True)
