"""Planted bugs of the quorum: each replaces one method, and the checker has to find it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from kclient.broker.raft.epoch_state import CandidateState
from kclient.broker.raft.follower_fetch import FollowerFetch
from kclient.broker.raft.leader_state import LeaderState, ReplicaState
from kclient.broker.raft.quorum_state import QuorumState
from kclient.broker.raft.quorum_state_store import ElectionState
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.raft.voter_changes import VoterChanges
from kclient.broker.raft.voter_set import ReplicaKey
from kclient.common.errors import KafkaError
from kclient.protocol.messages.fetch import PartitionData
from tests.support.quorum.world import CheckedStore


def _unflushed_store(self: CheckedStore, state: ElectionState, kraft_version: int) -> None:
    """1: the quorum state reaches the disk some time after the response."""
    world = self._node.world
    self.pending = state  # type: ignore[attr-defined]

    def write() -> None:
        if self.pending is state and self._node.client is client:  # type: ignore[attr-defined]
            self._inner.write(state, kraft_version)

    client = self._node.client
    world.after(2_000.0, write)


def _second_vote(
    self: QuorumState, replica: ReplicaKey, *, up_to_date: bool, pre_vote: bool
) -> bool:
    """2: a vote for another replica in the same epoch."""
    if isinstance(self.state, LeaderState | CandidateState):
        return False
    return up_to_date


def _add_second_vote(self: QuorumState, replica: ReplicaKey) -> None:
    if hasattr(self.state, "voted") and not isinstance(self.state, LeaderState | CandidateState):
        self.state.voted = replica


def _longer_log(self: OffsetAndEpoch, other: OffsetAndEpoch) -> bool:
    """3: the length of the log decides, not its last epoch."""
    return self.offset >= other.offset


def _any_epoch(self: LeaderState) -> bool:
    """4: records of earlier epochs are committed by counting replicas."""
    states = self.voter_states()
    offsets = sorted((state.end_offset or -1 for state in states), reverse=True)
    offset = offsets[len(offsets) // 2]
    if offset <= (self.high_watermark or 0):
        return False
    self.high_watermark = offset
    return True


def _observers_count(self: LeaderState) -> list[ReplicaState]:
    """5: observers are counted in the majority."""
    best = sorted(self._replicas.values(), key=lambda state: -(state.end_offset or 0))
    return best[: len(self._voters)] or [ReplicaState(voter.key) for voter in self._voters]


_initialize = QuorumState.initialize


def _leads_again(self: QuorumState, log_end: OffsetAndEpoch, now_ms: float, listener: str) -> None:
    """6: a restarted leader leads its epoch again."""
    stored = self._store.read()
    _initialize(self, log_end, now_ms, listener)
    if stored is not None and stored.leader_id == self.local.id and self.is_voter:
        from kclient.broker.raft.epoch_state import EpochElection  # noqa: PLC0415

        election = EpochElection(self.voters, self.local)
        for voter in self.voters.ids:
            election.record(voter, granted=True)
        self.state = CandidateState(stored.epoch, self.local, now_ms + 1_000, election)


def _no_wait(self: VoterChanges, what: str) -> KafkaError | None:
    """7: the next change of the voters does not wait for the last one."""
    self._context.leader().change = None
    return None


_apply = FollowerFetch._apply


def _truncate_to_high_watermark(
    self: FollowerFetch, data: PartitionData, node: Any, now_ms: float
) -> None:
    """8: a diverging log is cut at the high watermark instead of the end of the common epoch."""
    if data.diverging_epoch.epoch >= 0:
        log = self._context.log
        offset = max(log.high_watermark or 0, log.start_offset, log.end_offset - 1)
        log._log.truncate_to(offset)
        self._context.control.truncate_to(log.end_offset)
        log._log.start_epoch = self._context.quorum.epoch  # type: ignore[attr-defined]
        return
    _apply(self, data, node, now_ms)


def _acceptable(self: RaftLog, offset: int, epoch: int) -> Any:
    """8: positions are not checked at the leader."""
    from kclient.broker.raft.raft_log import VALID, Position  # noqa: PLC0415

    if offset < self.start_offset or offset > self.end_offset:
        return Position(snapshot=self.latest_snapshot_id or OffsetAndEpoch(0, 0))
    return VALID


def _snapshot_at_end(self: RaftLog, snapshot_id: OffsetAndEpoch) -> Any:
    """10: a snapshot of records above the high watermark."""
    return None if snapshot_id in self.snapshots else self.snapshots.write(snapshot_id)


PLANTS: dict[int, list[tuple[type, str, Callable[..., Any]]]] = {
    1: [(CheckedStore, "write", _unflushed_store)],
    2: [
        (QuorumState, "can_grant_vote", _second_vote),
        (QuorumState, "add_vote", _add_second_vote),
    ],
    3: [(OffsetAndEpoch, "is_up_to_date_with", _longer_log)],
    4: [(LeaderState, "update_high_watermark", _any_epoch)],
    5: [(LeaderState, "voter_states", _observers_count)],
    6: [(QuorumState, "initialize", _leads_again)],
    7: [(VoterChanges, "_change_error", _no_wait)],
    8: [(RaftLog, "validate", _acceptable)],
    10: [(RaftLog, "create_snapshot", _snapshot_at_end)],
}


@contextmanager
def planted(number: int) -> Iterator[None]:
    """Plant a bug by its number; 0 for none."""
    patches = [patch.object(owner, name, bug) for owner, name, bug in PLANTS.get(number, [])]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
