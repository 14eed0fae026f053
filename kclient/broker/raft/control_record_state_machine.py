"""Voters and kraft.version by offset, read from the log and its latest snapshot (KIP-853).

Both take effect when their record is appended, before it is committed, and are undone when it is
truncated. (Kafka: KRaftControlRecordStateMachine)
"""

from kclient.broker.raft.control_batches import (
    ControlRecord,
    control_records,
    kraft_version,
    parse_kraft_version,
    parse_voters,
    voters_record,
)
from kclient.broker.raft.offset_history import OffsetHistory
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.raft.voter_set import VoterSet
from kclient.common.files import WireBytes
from kclient.record.batch_header import CONTROL_FLAG
from kclient.record.control_records import ControlRecordType


class KRaftControlRecordStateMachine:
    """Voters and kraft.version of the log.

    Args:
        log: The metadata log, loaded.
        static_voters: ``controller.quorum.voters``; empty if the voters are in the log.

    Attributes:
        voter_sets: Sets of voters by offset.
        kraft_versions: Levels of kraft.version by offset.
    """

    def __init__(self, log: RaftLog, static_voters: VoterSet) -> None:
        self._log = log
        self._next_offset = 0
        self.voter_sets: OffsetHistory[VoterSet] = OffsetHistory(static_voters)
        self.kraft_versions: OffsetHistory[int] = OffsetHistory(0)

    @property
    def voters(self) -> VoterSet:
        """Latest set of voters, committed or not."""
        return self.voter_sets.last_value

    @property
    def former_voters(self) -> VoterSet:
        """Set of voters before the latest one while that is not known to be committed."""
        latest = self.voter_sets.last
        if latest.offset < max(self._log.high_watermark or 0, self._log.start_offset):
            return latest.value
        return self.voter_sets.value_at(latest.offset - 1).value

    @property
    def voters_offset(self) -> int:
        """Offset of the latest set of voters; negative if it is in no record of the log."""
        return self.voter_sets.last_offset

    @property
    def kraft_version(self) -> int:
        """Latest level of kraft.version."""
        return self.kraft_versions.last_value

    def load(self) -> None:
        """Read the latest snapshot and the log.

        Raises:
            CorruptRecordError: The snapshot or the log is damaged.
        """
        self.voter_sets.clear()
        self.kraft_versions.clear()
        self._next_offset = self._log.start_offset
        latest, snapshots = self._log.latest_snapshot_id, self._log.snapshots
        if latest is not None:
            for kind, value in snapshots.reader(latest).control_records():
                self._add(latest.offset - 1, kind, value)
            self._next_offset = max(latest.offset, self._log.start_offset)
        self.update()

    def update(self) -> None:
        """Read what was appended to the log.

        Raises:
            CorruptRecordError: A batch is damaged.
        """
        for batch in self._log.batches(self._next_offset, self._log.end_offset):
            if batch.attributes & CONTROL_FLAG:
                for offset, kind, value in control_records(batch):
                    if offset >= self._next_offset:
                        self._add(offset, kind, value)
            self._next_offset = batch.next_offset

    def skip_to(self, offset: int) -> None:
        """Skip records that are known not to be control records."""
        self._next_offset = max(self._next_offset, offset)

    def truncate_to(self, end_offset: int) -> None:
        """Forget the records at and above an offset."""
        self.voter_sets.truncate_from_end(end_offset)
        self.kraft_versions.truncate_from_end(end_offset)
        self._next_offset = min(self._next_offset, end_offset)

    def at(self, snapshot_id: OffsetAndEpoch) -> list[ControlRecord]:
        """Return the control records of a snapshot: none with kraft.version 0."""
        level = self.kraft_versions.value_at(snapshot_id.offset - 1).value
        if level == 0:
            return []
        voters = self.voter_sets.value_at(snapshot_id.offset - 1).value
        return [kraft_version(level), *([voters_record(voters)] if voters else [])]

    def _add(self, offset: int, kind: ControlRecordType, value: WireBytes) -> None:
        if kind == ControlRecordType.KRAFT_VERSION:
            self.kraft_versions.add(offset, parse_kraft_version(value))
        elif kind == ControlRecordType.KRAFT_VOTERS:
            self.voter_sets.add(offset, parse_voters(value))
