"""File quorum-state."""

import random
from pathlib import Path

import pytest

from kclient.broker.raft.quorum_state_store import ElectionState, FileQuorumStateStore
from kclient.broker.raft.raft_types import FatalRaftError
from kclient.broker.raft.voter_set import ReplicaKey
from kclient.common.system_files import SystemFiles
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.quorum.bench import key
from tests.support.quorum.world import WorldClock


@pytest.fixture
def store(tmp_path: Path) -> FileQuorumStateStore:
    return FileQuorumStateStore(SystemFiles(), tmp_path)


def test_no_file(store: FileQuorumStateStore) -> None:
    assert store.read() is None


@pytest.mark.parametrize(
    ("version", "state", "text"),
    [
        (
            0,
            ElectionState(5, 1),
            (
                '{"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
                '"currentVoters":[],"data_version":0}'
            ),
        ),
        (
            1,
            ElectionState(6, -1, ReplicaKey(2, bytes(15) + b"\xff")),
            (
                '{"leaderId":-1,"leaderEpoch":6,"votedId":2,'
                '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAA_w","data_version":1}'
            ),
        ),
    ],
)
def test_forms_of_kafka(
    store: FileQuorumStateStore, tmp_path: Path, version: int, state: ElectionState, text: str
) -> None:
    store.write(state, version)
    assert (tmp_path / "quorum-state").read_text() == text
    assert store.read() == state


def test_version_0_has_no_directory(store: FileQuorumStateStore) -> None:
    store.write(ElectionState(5, -1, key(2)), 0)
    assert store.read() == ElectionState(5, -1, ReplicaKey(2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"leaderId":1,"leaderEpoch":5,"votedId":-1,"data_version":2}',
        '{"leaderId":"1","leaderEpoch":5,"votedId":-1,"data_version":0}',
        '{"leaderId":1,"leaderEpoch":5,"votedId":1,"votedDirectoryId":"?","data_version":1}',
    ],
)
def test_malformed_file_is_fatal(store: FileQuorumStateStore, tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    with pytest.raises(FatalRaftError, match="not a quorum state"):
        store.read()


def test_a_write_survives_a_power_cut() -> None:
    disk = VirtualDisk(WorldClock())
    files = VirtualFiles(disk)
    files.make_directory(Path("/d"))
    for epoch in range(1, 20):
        FileQuorumStateStore(files, Path("/d")).write(ElectionState(epoch, -1, key(2)), 1)
        disk.lose_unflushed(random.Random(epoch))
        assert FileQuorumStateStore(files, Path("/d")).read() == ElectionState(epoch, -1, key(2))
