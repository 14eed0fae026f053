"""Requests to the other nodes."""

import random
from math import inf

from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.raft_types import RaftNode
from kclient.broker.raft.request_manager import OnResponse, Outcome, RequestManager
from kclient.common.errors import DisconnectedError
from kclient.protocol.message import Request
from kclient.protocol.messages.quorum import VoteRequest, VoteResponse

NODE = RaftNode(2, "a", 1)
OTHER = RaftNode(3, "b", 1)


class Channel:
    def __init__(self) -> None:
        self.sent: list[OnResponse] = []

    def send(
        self, node: RaftNode, request: Request, timeout_ms: float, on_response: OnResponse
    ) -> None:
        self.sent.append(on_response)


def manager() -> tuple[RequestManager, Channel, list[Outcome]]:
    channel = Channel()
    return RequestManager(channel, QuorumConfig(), random.Random(1)), channel, []


def send(requests: RequestManager, outcomes: list[Outcome], now_ms: float) -> None:
    request = VoteRequest(cluster_id=None, voter_id=2, topics=[])
    requests.send(NODE, request, lambda outcome, _: outcomes.append(outcome), now_ms)


def response() -> VoteResponse:
    return VoteResponse(error_code=0, topics=[], node_endpoints=[])


def test_one_request_in_flight_until_the_timeout() -> None:
    requests, channel, outcomes = manager()
    assert requests.is_ready(NODE, 0.0)
    send(requests, outcomes, 0.0)
    assert not requests.is_ready(NODE, 1_999)
    assert requests.ready_ms(NODE) == 2_000
    assert requests.is_backing_off(NODE, 2_000)
    send(requests, outcomes, 2_000)
    channel.sent[0](response(), 2_001)
    assert outcomes == []
    channel.sent[1](response(), 2_002)
    channel.sent[1](response(), 2_003)
    assert len(outcomes) == 1
    assert requests.is_ready(NODE, 2_003)


def test_error_starts_the_backoff() -> None:
    requests, channel, outcomes = manager()
    send(requests, outcomes, 0.0)
    channel.sent[0](DisconnectedError("refused"), 10.0)
    assert len(outcomes) == 1
    assert requests.is_backing_off(NODE, 29.0)
    assert requests.ready_ms(NODE) == 30.0


def test_reset_drops_responses() -> None:
    requests, channel, outcomes = manager()
    send(requests, outcomes, 0.0)
    requests.reset_all()
    channel.sent[0](response(), 10.0)
    assert outcomes == []
    assert requests.is_ready(NODE, 10.0)


def test_one_bootstrap_server_is_asked_at_a_time() -> None:
    requests, channel, outcomes = manager()
    assert requests.ready_bootstrap(0.0) is None
    assert requests.bootstrap_ready_ms(0.0) == inf
    requests.bootstrap = [NODE, OTHER]
    assert requests.ready_bootstrap(0.0) in {NODE, OTHER}
    send(requests, outcomes, 0.0)
    assert requests.ready_bootstrap(0.0) is None
    assert requests.bootstrap_ready_ms(0.0) == 2_000
    channel.sent[0](DisconnectedError("refused"), 10.0)
    assert requests.ready_bootstrap(10.0) == OTHER
