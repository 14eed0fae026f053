"""Elections: Vote, BeginQuorumEpoch and EndQuorumEpoch, from both sides (KIP-595, KIP-996)."""

import logging
from collections.abc import Callable
from math import inf

from kclient.broker.raft.epoch_state import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.raft_context import RaftContext
from kclient.broker.raft.raft_messages import (
    TOPIC,
    ResponseHead,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    candidate_key,
    end_quorum_epoch_request,
    end_quorum_epoch_response,
    response_head,
    vote_request,
    vote_response,
)
from kclient.broker.raft.raft_types import NO_NODE, OffsetAndEpoch, RaftNode
from kclient.broker.raft.request_manager import Outcome
from kclient.broker.raft.voter_set import NO_DIRECTORY, Endpoint, Endpoints, ReplicaKey
from kclient.common.broker_errors import (
    BrokerNotAvailableError,
    FencedLeaderEpochError,
    InconsistentClusterIdError,
    InvalidRequestError,
    InvalidVoterKeyError,
    RequestTimedOutError,
    UnknownLeaderEpochError,
    UnsupportedVersionError,
    error_of_code,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteRequestPartitionData,
    VoteResponse,
)

_log = logging.getLogger(__name__)


def error_code(error: type[KafkaError]) -> int:
    """Return the code of an error class."""
    return error.code or 0


def cluster_error(context: RaftContext, cluster_id: str | None) -> int:
    """Return the error of a request of another cluster, else 0; no cluster id is accepted."""
    if cluster_id in {None, context.identity.cluster_id}:
        return 0
    return error_code(InconsistentClusterIdError)


def accept_response(context: RaftContext, response: Outcome, now_ms: float) -> ResponseHead | None:
    """Process leader and epoch of a response.

    Returns:
        The common fields if the rest of the response applies to the present state; None if it has
        to be ignored.
    """
    if isinstance(response, KafkaError):
        return None
    head = response_head(response)
    ignored = (UnknownLeaderEpochError.code, BrokerNotAvailableError.code)
    if head.is_whole or head.leader.epoch < context.quorum.epoch or head.error_code in ignored:
        if head.is_whole:
            _report_error(context, type(response).__name__, head.error_code)
        return None
    context.reported_errors.clear()
    before = context.quorum.epoch
    endpoints = {} if head.endpoint is None else {context.identity.listener: head.endpoint}
    context.observe(head.leader.leader_id, head.leader.epoch, endpoints, now_ms)
    return head if context.quorum.epoch == before else None


def _report_error(context: RaftContext, response: str, code: int) -> None:
    """Log an error of a whole response; a repetition is of level DEBUG."""
    is_new = (response, code) not in context.reported_errors
    context.reported_errors.add((response, code))
    name = type(error_of_code(code)).__name__
    level = logging.WARNING if is_new else logging.DEBUG
    _log.log(level, "%s: error %d (%s)", response, code, name)


class Elections:
    """Request handlers and periodic work of elections.

    Args:
        context: State of the node.
    """

    def __init__(self, context: RaftContext) -> None:
        self._context = context
        self._quorum = context.quorum
        self._log = context.log
        self._config = context.config

    def handle_vote(self, request: VoteRequest, listener: str, now_ms: float) -> VoteResponse:
        """Respond to a candidate; a vote is on the disk before this returns."""
        partition = _single_partition(request)
        failed = cluster_error(self._context, request.cluster_id)
        if failed or partition is None:
            return VoteResponse(
                error_code=failed or error_code(InvalidRequestError), topics=[], node_endpoints=[]
            )
        quorum = self._quorum
        failed = _vote_error(partition, quorum.epoch)
        granted = False
        if not failed:
            if partition.replica_epoch > quorum.epoch:
                self._context.to_unattached(partition.replica_epoch, NO_NODE, now_ms)
            voter = ReplicaKey(request.voter_id, partition.voter_directory_id)
            if self._is_addressed(voter):
                granted = self._decide(partition)
            else:
                failed = error_code(InvalidVoterKeyError)
        return vote_response(failed, self._context.leader_info(listener), granted=granted)

    def _decide(self, partition: VoteRequestPartitionData) -> bool:
        quorum = self._quorum
        candidate = candidate_key(partition)
        end = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
        granted = quorum.can_grant_vote(
            candidate,
            up_to_date=end.is_up_to_date_with(self._log.end),
            pre_vote=partition.pre_vote,
        )
        if granted and not partition.pre_vote:
            quorum.add_vote(candidate)
        return granted

    def handle_begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest, listener: str, now_ms: float
    ) -> BeginQuorumEpochResponse:
        """Follow the leader of an epoch."""
        failed = cluster_error(self._context, request.cluster_id)
        topics = request.topics
        if failed or not (topics and topics[0].topic_name == TOPIC and topics[0].partitions):
            return BeginQuorumEpochResponse(
                error_code=failed or error_code(InvalidRequestError), topics=[], node_endpoints=[]
            )
        partition = topics[0].partitions[0]
        failed = self._leader_error(partition.leader_id, partition.leader_epoch)
        if not failed:
            endpoints = {
                each.name: Endpoint(each.host, each.port) for each in request.leader_endpoints
            }
            self._context.observe(
                partition.leader_id, partition.leader_epoch, endpoints, now_ms, from_leader=True
            )
            voter = ReplicaKey(request.voter_id, partition.voter_directory_id)
            if not self._is_addressed(voter):
                failed = error_code(InvalidVoterKeyError)
        return begin_quorum_epoch_response(failed, self._context.leader_info(listener))

    def handle_end_quorum_epoch(
        self, request: EndQuorumEpochRequest, listener: str, now_ms: float
    ) -> EndQuorumEpochResponse:
        """Ask for an election soon: the leader resigned."""
        failed = cluster_error(self._context, request.cluster_id)
        topics = request.topics
        if failed or not (topics and topics[0].topic_name == TOPIC and topics[0].partitions):
            return EndQuorumEpochResponse(
                error_code=failed or error_code(InvalidRequestError), topics=[], node_endpoints=[]
            )
        partition = topics[0].partitions[0]
        failed = self._leader_error(partition.leader_id, partition.leader_epoch)
        if not failed:
            endpoints = {
                each.name: Endpoint(each.host, each.port) for each in request.leader_endpoints
            }
            self._context.observe(partition.leader_id, partition.leader_epoch, endpoints, now_ms)
            state = self._quorum.state
            if isinstance(state, FollowerState) and state.leader_id == partition.leader_id:
                keys = [
                    ReplicaKey(each.candidate_id, each.candidate_directory_id)
                    for each in partition.preferred_candidates
                ] or [ReplicaKey(each) for each in partition.preferred_successors]
                state.deadline_ms = now_ms + self._succession_delay(keys)
                state.has_fetched = False  # the other voters may be granted their pre-votes
        return end_quorum_epoch_response(failed, self._context.leader_info(listener))

    def _succession_delay(self, successors: list[ReplicaKey]) -> float:
        """Return the delay before an election: the first successor has none."""
        longest = int(self._config.election_backoff_max_ms)
        local = self._quorum.local
        position = next(
            (
                index
                for index, key in enumerate(successors)
                if key.id == local.id and key.directory_id in {NO_DIRECTORY, local.directory_id}
            ),
            len(successors),
        )
        if position == 0:
            return 0
        exponent = min(len(successors) - 1, 20)
        return min(longest, (longest >> exponent) << (position - 1))

    def _leader_error(self, leader_id: int, epoch: int) -> int:
        if leader_id < 0 or epoch < 0:
            return error_code(InvalidRequestError)
        return error_code(FencedLeaderEpochError) if epoch < self._quorum.epoch else 0

    def _is_addressed(self, voter: ReplicaKey) -> bool:
        local = self._quorum.local
        return voter.id in {NO_NODE, local.id} and voter.directory_id in {
            NO_DIRECTORY,
            local.directory_id,
        }

    def poll(self, now_ms: float) -> float:
        """Do what is due in the present state; return when more is due.

        The state may change several times: a sole voter leads when this returns.
        """
        while True:
            state = self._quorum.state
            deadline_ms = self._poll_state(now_ms)
            if self._quorum.state is state:
                return deadline_ms

    def _poll_state(self, now_ms: float) -> float:
        context = self._context
        state = context.quorum.state
        match state:
            case UnattachedState():
                context.quorum.start_timeouts(now_ms)
                if context.quorum.is_only_voter or self._expired(state.deadline_ms, now_ms):
                    context.to_prospective(now_ms)
                return state.deadline_ms
            case FollowerState():
                if self._expired(state.deadline_ms, now_ms):
                    context.to_prospective(now_ms)
                return state.deadline_ms if context.quorum.is_electable else inf
            case ProspectiveState():
                return self._poll_prospective(state, now_ms)
            case CandidateState():
                return self._poll_candidate(state, now_ms)
            case LeaderState():
                return self._poll_leader(state, now_ms)
            case ResignedState():
                return self._poll_resigned(state, now_ms)

    def _expired(self, deadline_ms: float, now_ms: float) -> bool:
        return deadline_ms <= now_ms and self._quorum.is_electable

    def _poll_prospective(self, state: ProspectiveState, now_ms: float) -> float:
        if state.election.is_granted:
            self._context.to_candidate(now_ms)
        elif (
            state.election.is_rejected
            or state.deadline_ms <= now_ms
            or not self._quorum.is_electable
        ):
            self._end_pre_vote(state, now_ms)
        else:
            return min(state.deadline_ms, self._request_votes(state, now_ms))
        return now_ms

    def _end_pre_vote(self, state: ProspectiveState, now_ms: float) -> None:
        voters = self._quorum.voters
        voter = voters.node(state.leader_id)
        endpoints: Endpoints = state.leader_endpoints
        if not endpoints and voter is not None:
            endpoints = voter.endpoints
        if state.leader_id not in {NO_NODE, self._quorum.local_id} and endpoints:
            self._context.to_follower(state.leader_id, endpoints, now_ms)
        else:
            self._context.to_unattached(state.epoch, state.leader_id, now_ms)

    def _poll_candidate(self, state: CandidateState, now_ms: float) -> float:
        if state.election.is_granted:
            self._context.to_leader(now_ms)
        elif state.deadline_ms <= now_ms:
            if self._quorum.is_electable:
                self._context.to_prospective(now_ms)
            else:
                self._context.to_unattached(state.epoch + 1, NO_NODE, now_ms)
        elif not state.election.is_rejected:
            return min(state.deadline_ms, self._request_votes(state, now_ms))
        return state.deadline_ms

    def _request_votes(self, state: ProspectiveState | CandidateState, now_ms: float) -> float:
        context = self._context

        def send(node: RaftNode, voter: ReplicaKey) -> None:
            request = vote_request(
                context.identity.sender,
                voter,
                state.epoch,
                context.log.end,
                pre_vote=isinstance(state, ProspectiveState),
            )
            context.requests.send(
                node, request, lambda *outcome: self._on_vote(state, node, *outcome), now_ms
            )

        return self._send_to(state.election.unrecorded, send, now_ms)

    def _on_vote(
        self,
        state: ProspectiveState | CandidateState,
        node: RaftNode,
        outcome: Outcome,
        now_ms: float,
    ) -> None:
        context = self._context
        if context.quorum.state is not state:
            return
        if isinstance(outcome, UnsupportedVersionError) and isinstance(state, ProspectiveState):
            # The voter does not know pre-votes.
            context.to_candidate(now_ms)
            return
        head = accept_response(context, outcome, now_ms)
        if not isinstance(outcome, VoteResponse) or context.quorum.state is not state:
            return
        if head is None or head.error_code:
            context.requests.back_off(node, now_ms)
            return
        granted = outcome.topics[0].partitions[0].vote_granted
        state.election.record(node.id, granted=granted)

    def _poll_leader(self, state: LeaderState, now_ms: float) -> float:
        context = self._context
        if state.resign_requested or context.is_shutting_down:
            context.resign(now_ms)
            return now_ms
        if state.check_quorum_deadline() <= now_ms:
            _log.warning("leader of epoch %d: no fetches of a majority", state.epoch)
            context.resign(now_ms)
            return now_ms
        if state.change is not None and state.change.deadline_ms <= now_ms:
            context.end_change(state, RequestTimedOutError("the voters were not changed in time"))

        def send(node: RaftNode, voter: ReplicaKey) -> None:
            request = begin_quorum_epoch_request(
                context.identity.sender, voter, state.epoch, context.identity.endpoints
            )
            state.begin_quorum_sent(voter.id, now_ms)
            context.requests.send(node, request, self._on_begin_quorum_epoch, now_ms)

        ready_ms = self._send_to(state.begin_quorum_due(now_ms), send, now_ms)
        change_ms = inf if state.change is None else state.change.deadline_ms
        begin_ms = max(state.begin_quorum_deadline(), now_ms + 1)
        return min(ready_ms, begin_ms, state.check_quorum_deadline(), change_ms)

    def _on_begin_quorum_epoch(self, outcome: Outcome, now_ms: float) -> None:
        accept_response(self._context, outcome, now_ms)

    def _poll_resigned(self, state: ResignedState, now_ms: float) -> float:
        context = self._context
        if state.deadline_ms <= now_ms or context.quorum.is_only_voter:
            if context.is_shutting_down:
                return inf
            if context.quorum.is_only_voter:
                context.to_prospective(now_ms)
            else:
                context.to_unattached(state.epoch + 1, NO_NODE, now_ms)
            return now_ms

        def send(node: RaftNode, voter: ReplicaKey) -> None:
            request = end_quorum_epoch_request(
                context.identity.sender,
                state.epoch,
                state.successors,
                context.identity.endpoints,
            )
            context.requests.send(
                node,
                request,
                lambda *outcome: self._on_end_quorum_epoch(state, voter.id, *outcome),
                now_ms,
            )

        ready_ms = self._send_to(sorted(state.unacknowledged), send, now_ms)
        return min(state.deadline_ms, ready_ms)

    def _on_end_quorum_epoch(
        self, state: ResignedState, voter_id: int, outcome: Outcome, now_ms: float
    ) -> None:
        head = accept_response(self._context, outcome, now_ms)
        if head is not None and not head.error_code:
            state.unacknowledged.discard(voter_id)

    def _send_to(
        self, voter_ids: list[int], send: Callable[[RaftNode, ReplicaKey], None], now_ms: float
    ) -> float:
        """Send a request to each voter that is ready; return when another one is."""
        context = self._context
        next_ms = inf
        for voter_id in voter_ids:
            node, voter = context.voter_node(voter_id), context.voters.node(voter_id)
            if node is None or voter is None or voter_id == context.quorum.local_id:
                continue
            if context.requests.is_ready(node, now_ms):
                send(node, voter.key)
            next_ms = min(next_ms, context.requests.ready_ms(node))
        return next_ms


def _single_partition(request: VoteRequest) -> VoteRequestPartitionData | None:
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_name != TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == 0 else None


def _vote_error(partition: VoteRequestPartitionData, epoch: int) -> int:
    last_epoch, asked = partition.last_offset_epoch, partition.replica_epoch
    is_later = last_epoch > asked if partition.pre_vote else last_epoch >= asked
    if min(partition.last_offset, last_epoch, asked, partition.replica_id) < 0 or is_later:
        return error_code(InvalidRequestError)
    return error_code(FencedLeaderEpochError) if asked < epoch else 0
