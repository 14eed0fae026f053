"""Changes of the voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter (KIP-853).

One change at a time: the next one is refused until the last Voters record is committed, and until
a record of the leader's own epoch is.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf

from kclient.broker.raft.control_batches import voters_record
from kclient.broker.raft.elections import cluster_error, error_code
from kclient.broker.raft.epoch_state import FollowerState
from kclient.broker.raft.follower_fetch import FollowerFetch
from kclient.broker.raft.leader_requests import LeaderRequests
from kclient.broker.raft.leader_state import LeaderState, VoterChange
from kclient.broker.raft.raft_context import RaftContext
from kclient.broker.raft.raft_types import RaftNode
from kclient.broker.raft.request_manager import Outcome
from kclient.broker.raft.voter_set import (
    NO_DIRECTORY,
    Endpoint,
    ReplicaKey,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.common.broker_errors import (
    DuplicateVoterError,
    InconsistentClusterIdError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnsupportedVersionError,
    VoterNotFoundError,
)
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterListener,
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    KRaftVersionFeature,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterCurrentLeader,
    UpdateRaftVoterListener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

_log = logging.getLogger(__name__)

KRAFT_VERSION_FEATURE = "kraft.version"
_CAUGHT_UP_MS = 3_600_000.0
"""A new voter has been caught up within the last hour (Kafka: KafkaRaftClient)."""


class VoterChanges:
    """Request handlers of a leader, and requests of a follower about its own entry.

    Args:
        context: State of the node.
        leader: Checks of the leader.
        fetch: Knows the leader's address.
    """

    def __init__(self, context: RaftContext, leader: LeaderRequests, fetch: FollowerFetch) -> None:
        self._context = context
        self._quorum = context.quorum
        self._config = context.config
        self._identity = context.identity
        self._requests = context.requests
        self._leader = leader
        self._fetch = fetch

    def handle_add(
        self,
        request: AddRaftVoterRequest,
        now_ms: float,
        on_response: Callable[[AddRaftVoterResponse], None],
    ) -> None:
        """Add a voter, after it was asked for its versions and found to have all records."""

        def respond(error: KafkaError | None) -> None:
            on_response(
                AddRaftVoterResponse(
                    throttle_time_ms=0,
                    error_code=_code(error),
                    error_message=None if error is None else str(error),
                )
            )

        voter = VoterNode(
            ReplicaKey(request.voter_id, request.voter_directory_id),
            {each.name: Endpoint(each.host, each.port) for each in request.listeners},
        )
        error = (
            self._leader_error(request.cluster_id)
            or self._endpoint_error(voter)
            or self._change_error("adding")
            or self._add_error(voter)
        )
        if error is not None:
            respond(error)
            return
        leader = self._context.leader()
        change = VoterChange(respond, now_ms + min(request.timeout_ms, 2**31))
        leader.change = change
        host, port = voter.endpoints[self._identity.listener]
        node = RaftNode(voter.key.id, host, port)
        early = not request.ack_when_committed

        def received(outcome: Outcome, received_ms: float) -> None:
            self._on_api_versions(leader, change, voter, outcome, received_ms, early=early)

        if self._requests.is_ready(node, now_ms):
            self._requests.send(node, _api_versions_request(), received, now_ms)
        else:
            self._context.end_change(leader, RequestTimedOutError("another request is in flight"))

    def _leader_error(self, cluster_id: str | None) -> KafkaError | None:
        """Return why a request is not one for this node."""
        context, own = self._context, self._identity.cluster_id
        if cluster_error(context, cluster_id):
            return InconsistentClusterIdError(
                f'The given id "{cluster_id:.250}" doesn\'t match the cluster id "{own}"'
            )
        if not isinstance(context.quorum.state, LeaderState) or context.is_shutting_down:
            return NotLeaderOrFollowerError("this node is not the leader of the quorum")
        return None

    def _change_error(self, what: str) -> KafkaError | None:
        """Return why the leader makes no change at present; the texts are Kafka's."""
        control, leader = self._context.control, self._context.leader()
        timed_out, high_watermark = "Request timed out waiting for", leader.high_watermark
        if leader.change is not None:
            return RequestTimedOutError(
                f"{timed_out} leader to handle previous voter change request"
            )
        if high_watermark is None:
            return RequestTimedOutError(
                f"{timed_out} leader to establish HWM and fence previous voter changes"
            )
        if control.kraft_version == 0:
            return UnsupportedVersionError(
                f"Cluster doesn't support {what} voter because the kraft.version feature is 0"
            )
        if control.voters_offset >= high_watermark:
            return RequestTimedOutError(
                f"{timed_out} voters to commit the latest voter change at {control.voters_offset}"
                f" with HWM {high_watermark}"
            )
        return None

    def _endpoint_error(self, voter: VoterNode) -> KafkaError | None:
        listener = self._identity.listener
        if listener in voter.endpoints:
            return None
        return InvalidRequestError(
            f"Add voter request didn't include the endpoint ({voter.endpoints}) for the default"
            f" listener {listener}"
        )

    def _add_error(self, voter: VoterNode) -> KafkaError | None:
        voters = self._quorum.voters
        if voter.key.id in voters.ids:
            return DuplicateVoterError(f"voter {voter.key.id} is in the set of voters")
        if voter.key.directory_id == NO_DIRECTORY:
            return InvalidRequestError("the directory id is missing")
        return None

    def _on_api_versions(
        self,
        leader: LeaderState,
        change: VoterChange,
        voter: VoterNode,
        outcome: Outcome,
        now_ms: float,
        *,
        early: bool,
    ) -> None:
        context = self._context
        if context.quorum.state is not leader or leader.change is not change:
            return
        versions = _supported_versions(outcome)
        oldest_ms = now_ms - _CAUGHT_UP_MS
        if versions is None:
            error: KafkaError | None = RequestTimedOutError("the new voter did not respond")
        elif not versions.lowest <= context.control.kraft_version <= versions.highest:
            error = InvalidRequestError(f"voter {voter.key.id} does not support kraft.version")
        elif not leader.is_caught_up(voter.key, context.log.end_offset, oldest_ms):
            error = RequestTimedOutError(f"voter {voter.key.id} does not have all records yet")
        else:
            error = None
        if error is not None or versions is None:
            context.end_change(leader, error)
            return
        voters = context.voters.with_voter(VoterNode(voter.key, voter.endpoints, versions))
        if voters is None:
            context.end_change(leader, DuplicateVoterError(f"voter {voter.key.id}"))
            return
        self._append(leader, voters, now_ms, early=early)

    def _append(self, leader: LeaderState, voters: VoterSet, now_ms: float, *, early: bool) -> None:
        """Append a set of voters; it takes effect at once."""
        context = self._context
        change = leader.change
        if change is not None:
            # The end offset before: a sole voter commits within the append.
            context.write_waiting(now_ms)
            change.offset = context.log.end_offset
        _log.info("voters are changed to %s", sorted(voters.ids))
        context.append_control([voters_record(voters)], now_ms)
        if leader.update_high_watermark():
            # A smaller set may have a majority at once.
            context.high_watermark_raised(leader)
        if early:
            context.end_change(leader, None)

    def handle_remove(
        self,
        request: RemoveRaftVoterRequest,
        now_ms: float,
        on_response: Callable[[RemoveRaftVoterResponse], None],
    ) -> None:
        """Remove a voter; a leader that removes itself resigns when that is committed."""

        def respond(error: KafkaError | None) -> None:
            on_response(
                RemoveRaftVoterResponse(
                    throttle_time_ms=0,
                    error_code=_code(error),
                    error_message=None if error is None else str(error),
                )
            )

        error = self._leader_error(request.cluster_id) or self._change_error("removing")
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        current = self._quorum.voters
        voters = current.without_voter(key)
        if error is None and voters is None:
            error = VoterNotFoundError(f"{key.id} is no voter with this directory, or the last one")
        if error is not None or voters is None:
            respond(error)
            return
        leader = self._context.leader()
        leader.change = VoterChange(respond, now_ms + self._config.request_timeout_ms)
        self._append(leader, voters, now_ms, early=False)

    def handle_update(
        self, request: UpdateRaftVoterRequest, listener: str, now_ms: float
    ) -> UpdateRaftVoterResponse:
        """Replace endpoints and versions of a voter; the response does not wait for the commit."""
        feature = request.k_raft_version_feature
        voter = VoterNode(
            ReplicaKey(request.voter_id, request.voter_directory_id),
            {each.name: Endpoint(each.host, each.port) for each in request.listeners},
            SupportedVersions(feature.min_supported_version, feature.max_supported_version),
        )
        failed = cluster_error(self._context, request.cluster_id) or self._leader.leader_error(
            request.current_leader_epoch
        )
        if not failed:
            failed = self._update(voter, now_ms)
        info = self._context.leader_info(listener)
        host, port = info.endpoint or Endpoint("", 0)
        return UpdateRaftVoterResponse(
            throttle_time_ms=0,
            error_code=failed,
            current_leader=UpdateRaftVoterCurrentLeader(
                leader_id=info.leader.leader_id,
                leader_epoch=info.leader.epoch,
                host=host,
                port=port,
            ),
        )

    def _update(self, voter: VoterNode, now_ms: float) -> int:
        context, leader = self._context, self._context.leader()
        if context.control.kraft_version == 0:
            leader.updated[voter.key.id] = voter
            return 0
        error = self._change_error("updating")
        if error is not None:
            return _code(error)
        level = context.control.kraft_version
        if (
            context.identity.listener not in voter.endpoints
            or not voter.versions.lowest <= level <= voter.versions.highest
        ):
            return error_code(InvalidRequestError)
        voters = context.voters.with_updated(voter)
        if voters is None:
            return error_code(VoterNotFoundError)
        if voters != context.quorum.voters:
            leader.change = VoterChange(lambda _: None, inf)
            self._append(leader, voters, now_ms, early=False)
        return 0

    def poll(self, now_ms: float) -> float:
        """Ask the leader to update or add the own entry if that is due.

        Returns:
            The time of the next check.
        """
        context = self._context
        state = context.quorum.state
        if not isinstance(state, FollowerState) or not context.identity.endpoints:
            return inf
        node = self._fetch.leader_node(state)
        if state.update_voter_ms > now_ms or node is None:
            return state.update_voter_ms
        if not context.requests.is_ready(node, now_ms):
            return context.requests.ready_ms(node)
        state.update_voter_ms = now_ms + context.config.update_voter_period_ms
        request = self._own_request(state)
        if request is not None:

            def received(outcome: Outcome, _: float) -> None:
                if isinstance(outcome, UnsupportedVersionError) or (
                    getattr(outcome, "error_code", -1) == 0
                ):
                    state.has_updated_leader = True

            context.requests.send(node, request, received, now_ms)
        return state.update_voter_ms

    def _own_request(self, state: FollowerState) -> Request | None:
        context = self._context
        local, level = context.local_voter, context.control.kraft_version
        voters = context.quorum.voters
        if context.quorum.is_voter:
            entry = voters.node(local.key.id)
            is_current = state.has_updated_leader if level == 0 else entry == local
            return None if is_current else self._update_request(local, state.epoch)
        if not context.config.auto_join or level == 0:
            return None
        cluster_id = context.identity.cluster_id
        other = voters.node(local.key.id)
        if other is not None:
            return RemoveRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=other.key.id,
                voter_directory_id=other.key.directory_id,
            )
        return AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=int(context.config.request_timeout_ms),
            voter_id=local.key.id,
            voter_directory_id=local.key.directory_id,
            listeners=[
                AddRaftVoterListener(name=name, host=host, port=port)
                for name, (host, port) in local.endpoints.items()
            ],
            ack_when_committed=False,
        )

    def _update_request(self, local: VoterNode, epoch: int) -> UpdateRaftVoterRequest:
        return UpdateRaftVoterRequest(
            cluster_id=self._identity.cluster_id,
            current_leader_epoch=epoch,
            voter_id=local.key.id,
            voter_directory_id=local.key.directory_id,
            listeners=[
                UpdateRaftVoterListener(name=name, host=host, port=port)
                for name, (host, port) in local.endpoints.items()
            ],
            k_raft_version_feature=KRaftVersionFeature(
                min_supported_version=local.versions.lowest,
                max_supported_version=local.versions.highest,
            ),
        )


def _code(error: KafkaError | None) -> int:
    return 0 if error is None else (error.code or -1)


def _api_versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="kclient-raft", client_software_version="1")


def _supported_versions(outcome: Outcome) -> SupportedVersions | None:
    """Return the versions of kraft.version in a response; None without a response."""
    if not isinstance(outcome, ApiVersionsResponse) or outcome.error_code:
        return None
    features: Sequence[SupportedVersions] = [
        SupportedVersions(each.min_version, each.max_version)
        for each in outcome.supported_features
        if each.name == KRAFT_VERSION_FEATURE
    ]
    return features[0] if features else SupportedVersions(0, 0)
