"""Listeners of the metadata log: committed batches, snapshots and leaders (Kafka: RaftClient).

A listener sees each committed batch once, in order. It gets a snapshot instead of records that the
log does not have any more. A leader is reported to the node that leads only after its listener has
received all records before its epoch.
"""

from collections.abc import Sequence
from typing import Protocol

from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_types import (
    BOOTSTRAP_SNAPSHOT,
    NO_LEADER,
    NO_NODE,
    CommittedBatch,
    LeaderAndEpoch,
)
from kclient.broker.raft.snapshots import SnapshotReader, committed_batch

_BATCHES_BYTES = 8 * 1024 * 1024


class RaftListener(Protocol):
    """Receives what is committed. Called by the thread that drives the client."""

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Handle committed batches; those of control records have no records."""
        ...

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        """Replace the state by a snapshot; the next batch starts at its end offset."""
        ...

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Handle a new leader or epoch."""
        ...

    def begin_shutdown(self) -> None:
        """Handle the start of the shutdown of the client."""
        ...


class _Context:
    """Progress of one listener (Kafka: ListenerContext)."""

    def __init__(self, listener: RaftListener) -> None:
        self.listener = listener
        self.next_offset = 0
        self.leader = NO_LEADER


class RaftListeners:
    """The listeners of a client, and what they have received.

    Args:
        log: The metadata log.
        local_id: Id of this node.
    """

    def __init__(self, log: RaftLog, local_id: int) -> None:
        self._log = log
        self._local_id = local_id
        self._contexts: list[_Context] = []
        self._recent: dict[int, CommittedBatch] = {}
        self._is_firing = False

    def register(self, listener: RaftListener) -> None:
        """Add a listener; it receives everything from the start."""
        self._contexts.append(_Context(listener))

    def unregister(self, listener: RaftListener) -> None:
        """Remove a listener."""
        self._contexts = [each for each in self._contexts if each.listener is not listener]

    def begin_shutdown(self) -> None:
        """Report the start of the shutdown."""
        for context in self._contexts:
            context.listener.begin_shutdown()

    def remember(self, batches: Sequence[CommittedBatch]) -> None:
        """Keep batches that this leader wrote, so that they need not be read when committed."""
        if self._contexts:
            self._recent.update((batch.base_offset, batch) for batch in batches)

    def forget_recent(self) -> None:
        """Discard the batches that were kept, at the end of an epoch."""
        self._recent.clear()

    def fire(self, leader: LeaderAndEpoch, epoch_start_offset: int) -> None:
        """Report what has changed, also by appends of the listeners that are called.

        A call from within a listener has no effect: this one reports what the listener has changed.

        Args:
            leader: Present leader and epoch.
            epoch_start_offset: First offset of the epoch if this node leads.
        """
        if self._is_firing:
            return
        self._is_firing = True
        try:
            while self._report(leader, epoch_start_offset):
                pass
            self._forget_reported()
        finally:
            self._is_firing = False

    def _report(self, leader: LeaderAndEpoch, epoch_start_offset: int) -> bool:
        """Report to each listener what it has not received; return whether there was anything."""
        reported = False
        for context in list(self._contexts):
            reported |= self._report_commits(context)
            reported |= self._report_leader(context, leader, epoch_start_offset)
        return reported

    def _report_leader(self, context: _Context, leader: LeaderAndEpoch, start: int) -> bool:
        if leader.leader_id == self._local_id and context.next_offset <= start:
            leader = LeaderAndEpoch(NO_NODE, leader.epoch)
        if leader == context.leader:
            return False
        context.leader = leader
        context.listener.handle_leader_change(leader)
        return True

    def _report_commits(self, context: _Context) -> bool:
        log = self._log
        before = context.next_offset
        while context.next_offset < (log.high_watermark or 0):
            latest = log.latest_snapshot_id
            needs_snapshot = context.next_offset < log.start_offset or (
                context.next_offset == 0 and latest != BOOTSTRAP_SNAPSHOT
            )
            if latest is not None and latest.offset > context.next_offset and needs_snapshot:
                context.listener.handle_load_snapshot(log.snapshots.reader(latest))
                context.next_offset = latest.offset
                continue
            batches = self._next_batches(context.next_offset, log.high_watermark or 0)
            if not batches:
                break
            context.next_offset = batches[-1].last_offset + 1
            context.listener.handle_commit(batches)
        return context.next_offset > before

    def _forget_reported(self) -> None:
        lowest = min((each.next_offset for each in self._contexts), default=0)
        while self._recent and (first := next(iter(self._recent))) < lowest:
            del self._recent[first]

    def _next_batches(self, offset: int, end_offset: int) -> list[CommittedBatch]:
        found: list[CommittedBatch] = []
        size = 0
        while (recent := self._recent.get(offset)) is not None and recent.last_offset < end_offset:
            found.append(recent)
            offset = recent.last_offset + 1
        if found:
            return found
        for batch in self._log.batches(offset, end_offset):
            if batch.base_offset in self._recent or size > _BATCHES_BYTES:
                break
            found.append(committed_batch(batch))
            size += batch.size_in_bytes
        return found
