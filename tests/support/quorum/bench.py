"""One node of a quorum with a log in memory; a test receives its requests and responds."""

import random
from collections.abc import Callable
from typing import Any

from kclient.broker.raft.kafka_raft_client import KafkaRaftClient
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state_store import ElectionState, FileQuorumStateStore
from kclient.broker.raft.raft_context import NodeIdentity, RaftContext
from kclient.broker.raft.raft_log import RaftLog, Retention
from kclient.broker.raft.raft_messages import Sender
from kclient.broker.raft.raft_types import CommittedBatch, LeaderAndEpoch, RaftNode
from kclient.broker.raft.request_manager import OnResponse, Outcome
from kclient.broker.raft.snapshots import SnapshotFiles, SnapshotReader, write_bootstrap_snapshot
from kclient.broker.raft.voter_set import (
    Endpoint,
    ReplicaKey,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.protocol.message import Request, Response
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.quorum.memory_log import MemoryLog
from tests.support.quorum.world import CLUSTER, DIRECTORY, LISTENER, WALL_MS, WorldClock

CONFIG = QuorumConfig(append_linger_ms=10)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def endpoints(node_id: int) -> dict[str, Endpoint]:
    return {LISTENER: Endpoint(f"node{node_id}", 9000 + node_id)}


def voter(node_id: int) -> VoterNode:
    return VoterNode(key(node_id), endpoints(node_id), SupportedVersions(0, 1))


def voter_set(*node_ids: int) -> VoterSet:
    return VoterSet.of(voter(each) for each in node_ids)


def static_voters(*node_ids: int) -> VoterSet:
    return VoterSet.of(VoterNode(ReplicaKey(each), endpoints(each)) for each in node_ids)


class RecordingListener:
    """Listener that keeps what it receives."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.snapshots: list[int] = []
        self.is_shutting_down = False
        self.on_commit: Callable[[], None] = lambda: None
        self.on_leader: Callable[[LeaderAndEpoch], None] = lambda _leader: None

    def handle_commit(self, batches: "list[CommittedBatch]") -> None:
        self.values += [value for batch in batches for value in batch.records]
        self.on_commit()

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        self.snapshots.append(reader.snapshot_id.offset)
        self.values = [value for batch in reader.batches() for value in batch.records]

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)
        self.on_leader(leader)

    def begin_shutdown(self) -> None:
        self.is_shutting_down = True


class Bench:
    """A node, and the requests that it has sent.

    Args:
        voters: Ids of the voters.
        node_id: Id of the node.
        dynamic: Whether the voters are in the bootstrap snapshot.
        config: Settings.
    """

    def __init__(
        self,
        *voters: int,
        node_id: int = 1,
        dynamic: bool = False,
        config: QuorumConfig = CONFIG,
        stored: ElectionState | None = None,
    ) -> None:
        self.clock = WorldClock()
        self.config = config
        self.node_id = node_id
        self.disk = VirtualDisk(self.clock)
        self.files = VirtualFiles(self.disk)
        self.files.make_directory(DIRECTORY)
        self.log = MemoryLog()
        self.static = VoterSet() if dynamic else static_voters(*voters)
        self.sent: list[tuple[RaftNode, Request, OnResponse]] = []
        if dynamic:
            write_bootstrap_snapshot(self.files, DIRECTORY, voter_set(*voters), WALL_MS)
        self.store = FileQuorumStateStore(self.files, DIRECTORY)
        if stored is not None:
            self.store.write(stored, int(dynamic))
        self.start()

    def start(self) -> None:
        """Start the node, again if it was started."""
        self.sent = []
        self.listener = RecordingListener()
        sender = Sender(CLUSTER, key(self.node_id))
        identity = NodeIdentity(sender, LISTENER, endpoints(self.node_id), SupportedVersions(0, 1))
        log = RaftLog(self.log, SnapshotFiles(self.files, DIRECTORY), Retention(1, 10**12))
        self.client = KafkaRaftClient(
            identity,
            log,
            self.store,
            self,
            self.static,
            self.config,
            self.clock,
            random.Random(1),
        )
        self.client.initialize(self.clock.now_ms)
        self.client.register(self.listener)  # type: ignore[arg-type]

    @property
    def context(self) -> RaftContext:
        return self.client._context

    @property
    def state(self) -> str:
        return type(self.context.quorum.state).__name__.removesuffix("State")

    def send(
        self, node: RaftNode, request: Request, timeout_ms: float, on_response: OnResponse
    ) -> None:
        self.sent.append((node, request, on_response))

    def advance(self, by_ms: float = 0) -> float:
        self.clock.now_ms += by_ms
        return self.client.poll(self.clock.now_ms)

    def take(self, kind: type[Request]) -> list[tuple[RaftNode, Any, OnResponse]]:
        """Remove and return the requests of a type that were sent."""
        found = [each for each in self.sent if isinstance(each[1], kind)]
        self.sent = [each for each in self.sent if not isinstance(each[1], kind)]
        return found

    def respond(self, on_response: OnResponse, outcome: Outcome) -> None:
        on_response(outcome, self.clock.now_ms)
        self.advance()

    def handle(self, request: Request) -> list[Any]:
        """Deliver a request; the responses are added to the list when they are sent."""
        responses: list[Response] = []
        self.client.handle_request(request, LISTENER, self.clock.now_ms, responses.append)
        self.advance()
        return responses
