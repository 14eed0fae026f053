"""File ``quorum-state``: epoch, leader and vote of a node (Kafka: FileQuorumStateStore).

One line of JSON, in Apache Kafka's form::

    {"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"AAAA…","data_version":1}

Version 0 belongs to kraft.version 0 and has no directory id.
"""

import json
from pathlib import Path
from typing import NamedTuple, Protocol

from kclient.broker.raft.raft_types import NO_NODE, FatalRaftError
from kclient.broker.raft.voter_set import NO_DIRECTORY, ReplicaKey
from kclient.common.errors import KafkaError
from kclient.common.files import Files
from kclient.common.uuids import text_to_uuid, uuid_to_text

QUORUM_STATE_FILE = "quorum-state"


class ElectionState(NamedTuple):
    """Epoch with its leader and the own vote (Kafka: ElectionState).

    Attributes:
        epoch: Epoch of the quorum, at least 0.
        leader_id: Leader, or `NO_NODE`.
        voted: Replica that this node voted for, or None.
    """

    epoch: int
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


class QuorumStateStore(Protocol):
    """Durable storage of the election state."""

    def read(self) -> ElectionState | None:
        """Return the stored state; None if there is none."""
        ...

    def write(self, state: ElectionState, kraft_version: int) -> None:
        """Store a state; it is on the disk when this returns."""
        ...


class FileQuorumStateStore:
    """Election state in a file, which every write replaces atomically.

    Args:
        files: File system.
        directory: Directory of the metadata log.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / QUORUM_STATE_FILE

    def read(self) -> ElectionState | None:
        """Return the stored state; None if there is no file.

        Raises:
            FatalRaftError: The file is malformed: without its vote, the node could vote twice.
        """
        if not self._files.exists(self._path):
            return None
        try:
            return _parse(json.loads(self._files.read_bytes(self._path)))
        except (ValueError, KeyError, TypeError, KafkaError) as error:
            raise FatalRaftError(f"{self._path}: not a quorum state: {error}") from error

    def write(self, state: ElectionState, kraft_version: int) -> None:
        """Replace the file and flush it.

        Args:
            state: The new state.
            kraft_version: Level of kraft.version, which decides the version of the file.

        Raises:
            OSError: The disk failed, or is full; the file is unchanged.
        """
        line = json.dumps(_fields(state, kraft_version), separators=(",", ":"))
        self._files.write_atomic(self._path, line.encode())


def _fields(state: ElectionState, kraft_version: int) -> dict[str, object]:
    voted_id = NO_NODE if state.voted is None else state.voted.id
    leader: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.epoch}
    if kraft_version == 0:
        return {
            "clusterId": "",
            **leader,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": [],
            "data_version": 0,
        }
    directory = NO_DIRECTORY if state.voted is None else state.voted.directory_id
    return {
        **leader,
        "votedId": voted_id,
        "votedDirectoryId": uuid_to_text(directory),
        "data_version": 1,
    }


def _parse(fields: dict[str, object]) -> ElectionState:
    version = fields["data_version"]
    if version not in {0, 1}:
        raise ValueError(f"got data_version {version!r}, expected 0 or 1")
    numbers = [fields[name] for name in ("leaderEpoch", "leaderId", "votedId")]
    for number in numbers:
        if type(number) is not int or not NO_NODE <= number < 2**31:
            raise ValueError(f"got {number!r:.40}, expected an id or epoch")
    epoch, leader_id, voted_id = (int(str(number)) for number in numbers)
    text = fields["votedDirectoryId"] if version == 1 else uuid_to_text(NO_DIRECTORY)
    voted = None if voted_id == NO_NODE else ReplicaKey(voted_id, text_to_uuid(str(text)))
    return ElectionState(max(0, epoch), leader_id, voted)
