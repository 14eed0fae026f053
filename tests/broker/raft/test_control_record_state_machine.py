"""Voters and kraft.version by offset."""

from pathlib import Path

import pytest

from kclient.broker.raft.control_batches import control_batch, kraft_version, voters_record
from kclient.broker.raft.control_record_state_machine import KRaftControlRecordStateMachine
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.raft.snapshots import SnapshotFiles, SnapshotWriter, write_bootstrap_snapshot
from kclient.common.system_files import SystemFiles
from tests.support.quorum.bench import static_voters, voter_set
from tests.support.quorum.memory_log import MemoryLog


@pytest.fixture
def log(tmp_path: Path) -> RaftLog:
    write_bootstrap_snapshot(SystemFiles(), tmp_path, voter_set(1, 2), 0)
    log = RaftLog(MemoryLog(), SnapshotFiles(SystemFiles(), tmp_path))
    log.load()
    return log


@pytest.fixture
def machine(log: RaftLog) -> KRaftControlRecordStateMachine:
    machine = KRaftControlRecordStateMachine(log, static_voters())
    machine.load()
    return machine


def test_static_voters(tmp_path: Path) -> None:
    log = RaftLog(MemoryLog(), SnapshotFiles(SystemFiles(), tmp_path))
    log.load()
    machine = KRaftControlRecordStateMachine(log, static_voters(1, 2))
    machine.load()
    assert (machine.voters, machine.kraft_version) == (static_voters(1, 2), 0)
    assert machine.voters_offset < -1
    assert machine.at(OffsetAndEpoch(0, 0)) == []


def test_bootstrap_snapshot_then_log(log: RaftLog, machine: KRaftControlRecordStateMachine) -> None:
    assert (machine.voters, machine.voters_offset) == (voter_set(1, 2), -1)
    assert machine.kraft_version == 1
    log.append_as_leader(control_batch([voters_record(voter_set(1, 2, 3))], 0), 1)
    machine.update()
    assert (machine.voters, machine.voters_offset) == (voter_set(1, 2, 3), 0)
    assert machine.former_voters == voter_set(1, 2)
    log.update_high_watermark(1)
    assert machine.former_voters == voter_set(1, 2, 3)


def test_truncation_undoes_a_set(log: RaftLog, machine: KRaftControlRecordStateMachine) -> None:
    log.append_as_leader(control_batch([voters_record(voter_set(1, 2, 3))], 0), 1)
    machine.update()
    log.truncate_to_end_offset(OffsetAndEpoch(0, 0))
    machine.truncate_to(0)
    assert machine.voters == voter_set(1, 2)
    log.append_as_leader(control_batch([voters_record(voter_set(1))], 0), 2)
    machine.update()
    assert machine.voters == voter_set(1)


def test_snapshot_has_the_set_at_its_offset(
    log: RaftLog, machine: KRaftControlRecordStateMachine
) -> None:
    for epoch, voters in enumerate((voter_set(1), voter_set(1, 3)), 1):
        log.append_as_leader(control_batch([voters_record(voters)], 0), epoch)
    machine.update()
    assert machine.at(OffsetAndEpoch(1, 1)) == [kraft_version(1), voters_record(voter_set(1))]
    assert machine.at(OffsetAndEpoch(2, 2))[1] == voters_record(voter_set(1, 3))
    log.update_high_watermark(2)
    raw = log.create_snapshot(OffsetAndEpoch(1, 1))
    assert raw is not None
    SnapshotWriter(raw, 0, machine.at(OffsetAndEpoch(1, 1))).freeze()
    machine.load()
    assert machine.voter_sets.value_at(0).value == voter_set(1)
    assert machine.voters == voter_set(1, 3)
