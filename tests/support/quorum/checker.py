"""Invariants Q1 to Q7 of the quorum, checked after every event from outside the system."""

from itertools import pairwise
from typing import TYPE_CHECKING

from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_state_store import ElectionState
from kclient.broker.raft.raft_types import NO_NODE
from kclient.broker.raft.voter_set import ReplicaKey, VoterSet
from kclient.record import RecordBatch
from kclient.record.batch_header import CONTROL_FLAG
from tests.support.quorum.memory_log import StoredBatch

if TYPE_CHECKING:
    from tests.support.quorum.world import SimulatedNode


class InvariantViolatedError(Exception):
    """An invariant does not hold; the text starts with its number."""


def check(condition: object, text: str) -> None:
    if not condition:
        raise InvariantViolatedError(text)


class Checker:
    """Ground truth of one run."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], ReplicaKey] = {}
        self.epochs: dict[int, int] = {}
        self.batches: dict[tuple[int, int], tuple[StoredBatch, tuple[int, int] | None]] = {}
        self.committed: list[StoredBatch] = []
        self.committed_end = 0
        self.commits = 0

    def voted(self, node_id: int, epoch: int, candidate: ReplicaKey) -> None:
        """Q2: a node votes for one candidate in an epoch, over restarts too."""
        known = self.votes.setdefault((node_id, epoch), candidate)
        # A file of kraft.version 0 has no directory id.
        same = known.id == candidate.id and (
            known == candidate or not any(known.directory_id) or not any(candidate.directory_id)
        )
        check(same, f"Q2: node {node_id} votes in {epoch} for {known.id} and {candidate.id}")

    def persisted(self, node_id: int, state: ElectionState) -> None:
        """Q1 and Q2 of the file quorum-state."""
        before = self.epochs.get(node_id, 0)
        check(state.epoch >= before, f"Q2: epoch of {node_id} falls from {before} to {state.epoch}")
        self.epochs[node_id] = state.epoch
        if state.voted is not None:
            self.voted(node_id, state.epoch, state.voted)
        if state.leader_id != NO_NODE:
            self.leads(state.leader_id, state.epoch)

    def leads(self, leader_id: int, epoch: int) -> None:
        known = self.leaders.setdefault(epoch, leader_id)
        check(known == leader_id, f"Q1: epoch {epoch} has the leaders {known} and {leader_id}")

    def appended(
        self, node: "SimulatedNode", batch: StoredBatch, before: StoredBatch | None
    ) -> None:
        """Q4: equal offset and epoch, equal batch and equal predecessor."""
        previous = None if before is None else (before.base_offset, before.epoch)
        key = (batch.base_offset, batch.epoch)
        known, known_previous = self.batches.setdefault(key, (batch, previous))
        check(
            known.crc == batch.crc and known.last_offset == batch.last_offset,
            f"Q4: node {node.id} has another batch at {key}",
        )
        if known_previous is None:
            self.batches[key] = (batch, previous)
        elif previous is not None:
            check(
                previous == known_previous,
                f"Q4: before {key} node {node.id} has {previous}, others {known_previous}",
            )

    def after_event(self, node: "SimulatedNode", nodes: "dict[int, SimulatedNode]") -> None:
        """Check what an event may have changed at a node."""
        if node.client is None:
            return
        log = node.log
        for batch in log.appended:
            index = log.index_of(batch.base_offset)
            if index >= 0 and log.batches[index] == batch:
                self.appended(node, batch, log.batches[index - 1] if index else None)
        log.appended.clear()
        state = node.client._context.quorum.state
        if isinstance(state, LeaderState):
            self.leads(node.id, state.epoch)
            if state is not node.seen_leader_state:
                node.seen_leader_state = state
                self._check_complete(node)
        self._check_high_watermark(node, nodes, state)
        self._check_snapshots(node)
        self._check_voters(node, state)

    def _check_complete(self, node: "SimulatedNode") -> None:
        """Q5: a new leader has all that was ever committed."""
        log = node.log
        check(
            log.log_end_offset >= self.committed_end,
            f"Q5: leader {node.id} ends at {log.log_end_offset}, committed {self.committed_end}",
        )
        for batch in log.batches:
            self._check_committed(node, batch)

    def _check_committed(self, node: "SimulatedNode", batch: StoredBatch) -> None:
        if batch.last_offset < self.committed_end:
            at = self.committed_at(batch.base_offset)
            check(
                at is not None and (at.base_offset, at.epoch) == (batch.base_offset, batch.epoch),
                f"Q5: node {node.id} has {batch[:3]} where {at and at[:3]} is committed",
            )

    def committed_at(self, offset: int) -> StoredBatch | None:
        low, high = 0, len(self.committed)
        while low < high:
            middle = (low + high) // 2
            if self.committed[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return self.committed[low] if low < len(self.committed) else None

    def _check_high_watermark(
        self, node: "SimulatedNode", nodes: "dict[int, SimulatedNode]", state: object
    ) -> None:
        """Q3: it never falls, and a majority of the voters has what is below it."""
        assert node.client is not None
        offset = node.client.high_watermark or 0
        if offset == node.seen_high_watermark:
            return
        check(offset > node.seen_high_watermark, f"Q3: high watermark of {node.id} falls")
        before = node.seen_high_watermark
        node.seen_high_watermark = offset
        log = node.log
        if isinstance(state, LeaderState):
            self._check_majority(node, nodes, offset)
        for batch in log.batches[max(0, log.index_of(before)) :]:
            if batch.last_offset >= offset:
                break
            if batch.last_offset < self.committed_end:
                self._check_committed(node, batch)
            elif batch.base_offset == self.committed_end:
                self.committed.append(batch)
                self.committed_end = batch.last_offset + 1
                self.commits += 1
        check(
            offset <= self.committed_end,
            f"Q3: node {node.id} has high watermark {offset}, committed {self.committed_end}",
        )

    def _check_majority(
        self, node: "SimulatedNode", nodes: "dict[int, SimulatedNode]", offset: int
    ) -> None:
        assert node.client is not None
        voters = node.client.voters
        last = node.log.batches[node.log.index_of(offset - 1)]
        holding = 0
        for voter in voters.ids:
            log = nodes[voter].log
            same = [
                batch
                for batch in log.durable_batches
                if batch.base_offset == last.base_offset and batch.epoch == last.epoch
            ]
            holding += bool(same) or log.start >= offset
        check(
            holding * 2 > len(voters),
            f"Q3: {holding} of the voters {sorted(voters.ids)} have what is below {offset}",
        )

    def _check_snapshots(self, node: "SimulatedNode") -> None:
        """Q6: what the log does not have is in a snapshot, and that is committed."""
        assert node.client is not None
        latest = node.client.latest_snapshot_id
        start = node.log.start
        if start:
            check(
                latest is not None and latest.offset >= start,
                f"Q6: log of {node.id} starts at {start}, snapshot {latest}",
            )
        if latest is not None:
            check(
                latest.offset <= self.committed_end,
                f"Q6: snapshot {latest} of {node.id} above {self.committed_end}",
            )

    def _check_voters(self, node: "SimulatedNode", state: object) -> None:
        """Q7: sets of voters differ by one voter, and one of them is uncommitted."""
        assert node.client is not None
        entries = node.client._context.control.voter_sets.entries
        if len(entries) == node.seen_voter_sets:
            return
        node.seen_voter_sets = len(entries)
        sets: list[VoterSet] = [entry.value for entry in entries]
        for before, after in pairwise(sets):
            check(
                before.has_overlapping_majority(after),
                f"Q7: voters of {node.id} change from {before.keys} to {after.keys}",
            )
        if isinstance(state, LeaderState):
            offset = max(state.high_watermark or 0, state.epoch_start_offset + 3)
            changes = [
                after
                for before, after in pairwise(entries)
                if after.offset >= offset and before.value.keys != after.value.keys
            ]
            check(len(changes) <= 1, f"Q7: {len(changes)} changes of voters are uncommitted")

    def state_of(self, values: list[bytes], next_offset: int) -> None:
        """Q6: a state from snapshot and log equals that of the whole log."""
        expected = [
            value
            for batch in self.committed
            if batch.last_offset < next_offset
            for value in values_of(batch)
        ]
        check(values == expected, f"Q6: state at {next_offset} differs from that of the log")


_values: dict[bytes, list[bytes]] = {}


def values_of(batch: StoredBatch) -> list[bytes]:
    """Return the data records of a batch."""
    found = _values.get(batch.data)
    if found is None:
        parsed = RecordBatch(batch.data)
        found = []
        if not parsed.attributes & CONTROL_FLAG:
            found = [bytes(record.value or b"") for record in parsed.records()]
        if len(_values) > 20_000:
            _values.clear()
        _values[batch.data] = found
    return found
