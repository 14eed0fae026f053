"""Bugs planted in the nodes, one at a time; the simulation must find each.

Each is a small change that a review might miss. `planted` applies it for a ``with`` block.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from kclient.broker.controller import alter_partition
from kclient.broker.controller.partition_change_builder import PartitionChangeBuilder, _Choice
from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.coordinator.runtime.coordinator_loader import CoordinatorLoader, LoadProgress
from kclient.broker.coordinator.transaction.transaction_shard import TransactionShard
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.raft.kafka_raft_client import KafkaRaftClient
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_state import QuorumState
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.replication.fetch_params import FetchIsolation
from kclient.broker.replication.in_sync_replicas import InSyncReplicas
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replica_fetcher import ReplicaFetcher

Replace = Callable[[Any, str, Any], None]
"""Replaces a function or a property, by its owner and name."""


@dataclass(frozen=True)
class PlantedBug:
    """A planted bug.

    Attributes:
        summary: Description.
        plant: Applies it.
        invariants: Invariants of which it violates one first.
    """

    summary: str
    plant: Callable[[Replace], None]
    invariants: Sequence[str]


@contextmanager
def planted(bug: PlantedBug) -> Iterator[None]:
    """Apply a bug for a ``with`` block."""
    with ExitStack() as stack:

        def replace(owner: Any, name: str, function: Any) -> None:
            stack.enter_context(patch.object(owner, name, function))

        bug.plant(replace)
        yield


def _forget_decisions(replace: Replace) -> None:
    replace(TransactionShard, "on_loaded", lambda _self: None)


def _read_open_transactions(replace: Replace) -> None:
    end = Partition._readable_end

    def readable_end(self: Partition, bounds: Any, isolation: FetchIsolation) -> int:
        is_committed = isolation is FetchIsolation.TXN_COMMITTED
        return end(self, bounds, FetchIsolation.HIGH_WATERMARK if is_committed else isolation)

    replace(Partition, "_readable_end", readable_end)


def _vote_twice(replace: Replace) -> None:
    replace(QuorumState, "can_grant_vote", lambda _self, _candidate, **_facts: True)
    replace(QuorumState, "add_vote", lambda _self, _candidate: None)


def _vote_for_any_log(replace: Replace) -> None:
    replace(OffsetAndEpoch, "is_up_to_date_with", lambda _self, _other: True)


def _count_one_voter(replace: Replace) -> None:
    def update(self: LeaderState) -> bool:
        ends = [-1 if each.end_offset is None else each.end_offset for each in self.voter_states()]
        offset = max(ends)
        if offset <= self.epoch_start_offset or offset <= (self.high_watermark or 0):
            return False
        self.high_watermark = offset
        return True

    replace(LeaderState, "update_high_watermark", update)


def _respond_before_commit(replace: Replace) -> None:
    append = QuorumController._append

    def append_and_respond(self: Any, result: Any, on_committed: Any, level: Any = None) -> None:
        append(self, result, lambda _error: None, level)
        on_committed(None)

    replace(QuorumController, "_append", append_and_respond)


def _repeat_broker_epochs(replace: Replace) -> None:
    replace(KafkaRaftClient, "next_offset", property(lambda self: self.log_end_offset))


def _elect_any_replica(replace: Replace) -> None:
    choose = PartitionChangeBuilder._choose

    def choose_any(self: Any) -> Any:
        for replica in self.target_replicas:
            if self._is_acceptable(replica):
                return _Choice(replica)
        return choose(self)

    replace(PartitionChangeBuilder, "_choose", choose_any)


def _accept_fenced_members(replace: Replace) -> None:
    replace(alter_partition, "_check_members", lambda _view, _proposed: None)
    replace(InSyncReplicas, "has_caught_up", _has_caught_up_fenced)


def _has_caught_up_fenced(self: Any, replica: int, high_watermark: int) -> bool:
    if self.pending is not None or replica in self.isr:
        return False
    end: int = self.replicas[replica].log_end_offset
    has_all: bool = end >= max(high_watermark, self.epoch_start_offset)
    return has_all


def _count_committed_isr(replace: Replace) -> None:
    def committed_end(self: Any, _log_end_offset: int) -> int:
        if self.is_under_min_isr:
            return -1
        ends = [self.replicas[each].log_end_offset for each in self.isr if each != self._node_id]
        end: int = min((self._local.log_end_offset, *ends))
        return end

    replace(InSyncReplicas, "committed_end", committed_end)


def _count_shrink_at_once(replace: Replace) -> None:
    propose = InSyncReplicas.propose

    def propose_at_once(self: Any, isr: Any, build: Any) -> Any:
        members = tuple(isr)
        item = propose(self, members, build)
        self.maximal_isr = frozenset(members)
        return item

    replace(InSyncReplicas, "propose", propose_at_once)


def _join_at_high_watermark(replace: Replace) -> None:
    def has_caught_up(self: Any, replica: int, high_watermark: int) -> bool:
        if self.pending is not None or replica in self.isr:
            return False
        state = self.replicas[replica]
        if state.log_end_offset < high_watermark // 2:
            return False
        return bool(self._context.may_join_isr(replica, state.broker_epoch))

    replace(InSyncReplicas, "has_caught_up", has_caught_up)


def _ignore_divergence(replace: Replace) -> None:
    replace(Partition, "_diverging", lambda _self, _wanted: None)


def _acknowledge_at_append(replace: Replace) -> None:
    replace(Partition, "is_committed", lambda _self, _end_offset, _leader_epoch: True)


def _truncate_to_high_watermark(replace: Replace) -> None:
    add = ReplicaFetcher.add

    def truncate_and_add(self: Any, partitions: Any) -> None:
        followed = list(partitions)
        for partition, _, epoch in followed:
            offset = partition.log.high_watermark
            partition.truncate_follower(
                lambda log, to=offset: self._logs.truncate_to(log.partition, to), epoch
            )
        add(self, followed)

    replace(ReplicaFetcher, "add", truncate_and_add)


def _load_without_end(replace: Replace) -> None:
    step = CoordinatorLoader.step

    def skip(self: Any) -> LoadProgress:
        bounds = self._log.bounds(self._partition, self._leader_epoch)
        if self.end_offset < 0 and bounds.log_end_offset:
            self.end_offset = bounds.log_end_offset
        return step(self)

    replace(CoordinatorLoader, "step", skip)


def _wait_after_failure(replace: Replace) -> None:
    fail = InterBrokerSender._fail

    def fail_and_wait(self: Any, item: Any, error: Any) -> None:
        fail(self, item, error)
        self._has_failed = False

    replace(InterBrokerSender, "_fail", fail_and_wait)


BUGS = {
    "double-vote": PlantedBug(
        "a voter votes for every candidate of an epoch", _vote_twice, ("Q1",)
    ),
    "any-log": PlantedBug(
        "a voter votes for a candidate that lacks committed records",
        _vote_for_any_log,
        ("Q5", "Q3"),
    ),
    "lone-commit": PlantedBug(
        "the high watermark of the metadata log is the end of one voter", _count_one_voter, ("Q3",)
    ),
    "early-response": PlantedBug(
        "the controller responds before a change is committed", _respond_before_commit, ("Q8",)
    ),
    "repeated-epoch": PlantedBug(
        "a broker epoch is an offset that batches in memory are missing from",
        _repeat_broker_epochs,
        ("C", "Q8", "Q5"),
    ),
    "any-leader": PlantedBug(
        "a leader is elected from all replicas", _elect_any_replica, ("C", "R7")
    ),
    "fenced-member": PlantedBug(
        "fenced brokers are accepted as in-sync replicas", _accept_fenced_members, ("C", "R7")
    ),
    "ignored-newcomer": PlantedBug(
        "the high watermark does not wait for a follower that is joining",
        _count_committed_isr,
        ("R3", "R7"),
    ),
    "early-shrink": PlantedBug(
        "a member that is to leave does not count before the controller agrees",
        _count_shrink_at_once,
        ("R3", "R4"),
    ),
    "early-join": PlantedBug(
        "a follower joins before it has what is committed", _join_at_high_watermark, ("R7", "R3")
    ),
    "no-divergence": PlantedBug(
        "a leader does not notice that a follower's log diverges", _ignore_divergence, ("R2", "R5")
    ),
    "early-acknowledgement": PlantedBug(
        "acks=all is acknowledged at the append", _acknowledge_at_append, ("R9", "R1")
    ),
    "truncation": PlantedBug(
        "a follower truncates to its high watermark, as before KIP-101",
        _truncate_to_high_watermark,
        ("R3", "R7"),
    ),
    "empty-coordinator": PlantedBug(
        "a coordinator starts without the commits in its partition",
        _load_without_end,
        ("G2", "TimeIsUpError"),
    ),
    "forgotten-decision": PlantedBug(
        "a new coordinator does not write the markers of decided transactions",
        _forget_decisions,
        ("TimeIsUpError",),
    ),
    "open-read": PlantedBug(
        "committed readers read up to the high watermark", _read_open_transactions, ("T2", "T1")
    ),
    "lasting-wait": PlantedBug(
        "a fetcher waits for a minute after a request that could not be sent",
        _wait_after_failure,
        ("TimeIsUpError",),
    ),
}
"""The bugs by name."""
