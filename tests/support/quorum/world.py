"""World of one seed: nodes, network, faults and a workload in one event queue."""

import heapq
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kclient.broker.raft.kafka_raft_client import KafkaRaftClient
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state_store import ElectionState, FileQuorumStateStore
from kclient.broker.raft.raft_context import NodeIdentity
from kclient.broker.raft.raft_log import RaftLog, Retention
from kclient.broker.raft.raft_messages import Sender
from kclient.broker.raft.raft_types import (
    CommittedBatch,
    FatalRaftError,
    LeaderAndEpoch,
    OffsetAndEpoch,
    RaftNode,
)
from kclient.broker.raft.request_manager import OnResponse
from kclient.broker.raft.snapshots import (
    SnapshotFiles,
    SnapshotReader,
    write_bootstrap_snapshot,
)
from kclient.broker.raft.voter_set import (
    Endpoint,
    ReplicaKey,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.common.errors import DisconnectedError, InvalidArgumentError, KafkaError
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kclient.protocol.messages.quorum import VoteRequest, VoteResponse
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterListener,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
)
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.quorum.checker import Checker, InvariantViolatedError, check
from tests.support.quorum.memory_log import MemoryLog

LISTENER = "CONTROLLER"
CLUSTER = "quorum-cluster-id-0000"
DIRECTORY = Path("/meta/__cluster_metadata-0")
WALL_MS = 1_700_000_000_000

CONFIG = QuorumConfig(auto_join=False, append_linger_ms=5, clean_interval_ms=400)


class WorldClock:
    """Clock of the virtual time."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def monotonic_ns(self) -> int:
        return int(self.now_ms * 1e6)

    def wall_ms(self) -> int:
        return WALL_MS + int(self.now_ms)

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000


class CheckedStore:
    """Quorum state whose writes the checker sees."""

    def __init__(self, node: "SimulatedNode", inner: FileQuorumStateStore) -> None:
        self._node = node
        self._inner = inner

    def read(self) -> ElectionState | None:
        return self._inner.read()

    def write(self, state: ElectionState, kraft_version: int) -> None:
        self._inner.write(state, kraft_version)
        self._node.world.checker.persisted(self._node.id, state)


class StateListener:
    """State machine of a node: the list of all committed values."""

    def __init__(self, node: "SimulatedNode") -> None:
        self._node = node
        self.values: list[bytes] = []
        self.next_offset = 0
        self.last = OffsetAndEpoch(0, 0)
        self.last_timestamp = 0
        self.leader = LeaderAndEpoch(-1, 0)

    def handle_commit(self, batches: "list[CommittedBatch]") -> None:
        for batch in batches:
            check(batch.base_offset == self.next_offset, "Q6: a listener misses records")
            self.values.extend(batch.records)
            self.next_offset = batch.last_offset + 1
            self.last = OffsetAndEpoch(self.next_offset, batch.epoch)
            self.last_timestamp = batch.timestamp_ms

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        state = self._node.client._context.quorum.state if self._node.client else None
        check(
            not isinstance(state, LeaderState) or self.next_offset == 0,
            f"Q6: leader {self._node.id} loads a snapshot",
        )
        self.values = [value for batch in reader.batches() for value in batch.records]
        self.next_offset = reader.snapshot_id.offset
        self.last = reader.snapshot_id
        self.last_timestamp = reader.last_contained_log_timestamp

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self.leader = leader

    def begin_shutdown(self) -> None:
        pass


class SimulatedNode:
    """One node with its disk."""

    def __init__(self, world: "World", node_id: int) -> None:
        self.world = world
        self.id = node_id
        self.key = ReplicaKey(node_id, bytes([node_id]) * 16)
        self.endpoints = {LISTENER: Endpoint(f"node{node_id}", 9000 + node_id)}
        self.disk = VirtualDisk(world.clock)
        self.log = MemoryLog()
        self.client: KafkaRaftClient | None = None
        self.listener = StateListener(self)
        self.paused_until = 0.0
        self.version = 0
        self.next_poll_ms = 0.0
        self.seen_leader_state: object = None
        self.seen_high_watermark = 0
        self.seen_voter_sets = 0
        VirtualFiles(self.disk).make_directory(DIRECTORY)

    def voter(self) -> VoterNode:
        return VoterNode(self.key, self.endpoints, SupportedVersions(0, 1))

    def start(self) -> None:
        world = self.world
        files = VirtualFiles(self.disk)
        log = RaftLog(self.log, SnapshotFiles(files, DIRECTORY), Retention(2_000, 10**12))
        identity = NodeIdentity(
            Sender(CLUSTER, self.key),
            LISTENER,
            self.endpoints,
            SupportedVersions(0, 1),
            [Endpoint(f"node{each}", 9000 + each) for each in world.initial_voters],
        )
        static = VoterSet()
        if not world.dynamic:
            static = VoterSet.of(
                VoterNode(ReplicaKey(each), world.nodes[each].endpoints)
                for each in world.initial_voters
            )
        store = CheckedStore(self, FileQuorumStateStore(files, DIRECTORY))
        rng = random.Random(world.rng.random())
        client = KafkaRaftClient(
            identity,
            log,
            store,
            _Channel(self),
            static,
            CONFIG,
            world.clock,
            rng,
        )
        self.listener = StateListener(self)
        self.seen_high_watermark = self.seen_voter_sets = 0
        self.seen_leader_state = None
        client.initialize(world.now)
        client.register(self.listener)  # type: ignore[arg-type]
        self.client = client
        self.poll()

    def crash(self) -> None:
        if self.client is not None:
            self.version += 1
            self.client = None
            self.log.crash(self.world.rng)
            self.disk.lose_unflushed(self.world.rng)

    def poll(self) -> None:
        if self.client is None:
            return
        self.version += 1
        version = self.version
        deadline = max(self.client.poll(self.world.now), self.world.now + 0.1)
        self.world.at(min(deadline, self.world.now + 60_000), lambda: self._poll_if(version))
        self.world.checker.after_event(self, self.world.nodes)

    def _poll_if(self, version: int) -> None:
        if version != self.version:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until, lambda: self._poll_if(version))
        else:
            self.poll()


class _Channel:
    """Channel of one incarnation of a node."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node

    def send(
        self, node: RaftNode, request: Request, timeout_ms: float, on_response: OnResponse
    ) -> None:
        del timeout_ms
        self._node.world.deliver_request(self._node, int(node.host[4:]), request, on_response)


class World:
    """One run of a seed.

    Args:
        seed: Seed of all random choices.
        voters: Number of voters at the start; None to choose.
    """

    def __init__(self, seed: int, voters: int | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = WorldClock()
        self.checker = Checker()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self.events = 0
        count = voters or self.rng.choice([1, 2, 3, 3, 3, 4, 5])
        observers = self.rng.choice([0, 1, 2])
        self.dynamic = self.rng.random() < 0.6
        self.initial_voters = list(range(1, count + 1))
        self.nodes = {each: SimulatedNode(self, each) for each in range(1, count + observers + 1)}
        self.cuts: set[tuple[int, int]] = set()
        self.drop = self.rng.choice([0.0, 0.02, 0.1])
        self.duplicate = self.rng.choice([0.0, 0.05])
        self.slow = self.rng.choice([3.0, 20.0, 150.0])
        self.faults = True
        self._value = 0
        self.elections = 0
        for node in self.nodes.values():
            if self.dynamic and node.id in self.initial_voters:
                voter_set = VoterSet.of(self.nodes[each].voter() for each in self.initial_voters)
                write_bootstrap_snapshot(VirtualFiles(node.disk), DIRECTORY, voter_set, WALL_MS)
        for node in self.nodes.values():
            node.start()

    @property
    def now(self) -> float:
        return self.clock.now_ms

    def at(self, time_ms: float, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (max(time_ms, self.now), self._sequence, action))

    def after(self, delay_ms: float, action: Callable[[], None]) -> None:
        self.at(self.now + delay_ms, action)

    def _delay(self) -> float:
        return (
            self.rng.uniform(0.2, 2.0) if self.rng.random() < 0.8 else self.rng.random() * self.slow
        )

    def _transmit(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        if (source, target) in self.cuts or (self.faults and self.rng.random() < self.drop):
            return
        self.after(self._delay(), deliver)
        if self.faults and self.rng.random() < self.duplicate:
            self.after(self._delay() * 3, deliver)

    def deliver_request(
        self, source: SimulatedNode, target: int, request: Request, on_response: OnResponse
    ) -> None:
        incarnation = source.client

        def respond(outcome: Response | KafkaError) -> None:
            def received() -> None:
                if source.paused_until > self.now:
                    self.at(source.paused_until, received)
                elif source.client is incarnation:
                    on_response(outcome, self.now)
                    source.poll()

            self._transmit(target, source.id, received)

        def arrive() -> None:
            node = self.nodes[target]
            if node.paused_until > self.now:
                self.at(node.paused_until, arrive)
            elif node.client is None:
                respond(DisconnectedError("refused"))
            else:
                self.handle(node, request, respond)

        self._transmit(source.id, target, arrive)

    def handle(
        self, node: SimulatedNode, request: Request, respond: Callable[[Response], None]
    ) -> None:
        """Deliver a request to a node."""
        assert node.client is not None
        if isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            respond(ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[feature]))
            return

        def observed(response: Response) -> None:
            self._observe_vote(node, request, response)
            respond(response)

        node.client.handle_request(request, LISTENER, self.now, observed)
        node.poll()

    def _observe_vote(self, node: SimulatedNode, request: Request, response: Response) -> None:
        if isinstance(request, VoteRequest) and isinstance(response, VoteResponse):
            asked = request.topics[0].partitions[0]
            granted = response.topics and response.topics[0].partitions[0].vote_granted
            if granted and not asked.pre_vote:
                key = ReplicaKey(asked.replica_id, asked.replica_directory_id)
                self.checker.voted(node.id, asked.replica_epoch, key)

    def run(self, duration_ms: float) -> None:
        """Process the events of a time."""
        end = self.now + duration_ms
        while self._queue and self._queue[0][0] <= end:
            time_ms, _, action = heapq.heappop(self._queue)
            self.clock.now_ms = time_ms
            self.events += 1
            try:
                action()
            except FatalRaftError as error:
                raise InvariantViolatedError(f"fatal: {error}") from error
            except AssertionError as error:
                raise InvariantViolatedError(f"log: {error}") from error
        self.clock.now_ms = end

    def simulate(self, duration_ms: float = 12_000) -> None:
        """Run the workload with faults, then without, and check that the quorum is alive."""
        self.after(10, self._work)
        self.after(500, self._fault)
        self.run(duration_ms)
        self._heal()
        commits = self.checker.commits
        self.run(10_000)
        leaders = self.leaders()
        check(leaders, "L1: no leader without faults")
        check(self.checker.commits > commits, "L1: nothing is committed without faults")
        for node in self.nodes.values():
            behind = self.checker.committed_end - node.listener.next_offset
            check(behind < 60, f"L1: node {node.id} is {behind} records behind")
            self.checker.state_of(node.listener.values, node.listener.next_offset)

    def leaders(self) -> list[SimulatedNode]:
        return [
            node
            for node in self.nodes.values()
            if node.client and isinstance(node.client._context.quorum.state, LeaderState)
        ]

    def _work(self) -> None:
        self.after(self.rng.uniform(5, 80), self._work)
        for node in self.leaders():
            if node.paused_until > self.now or node.client is None:
                continue
            epoch = node.client.leader_and_epoch.epoch
            if node.listener.leader != (node.id, epoch):
                continue
            records = []
            for _ in range(self.rng.randint(1, 3)):
                self._value += 1
                records.append(f"{self._value}@{node.id}".encode())
            node.client.append(records, epoch, self.now)
            node.poll()
        chosen = self.rng.choice(list(self.nodes.values()))
        if self.rng.random() < 0.08:
            self._snapshot(chosen)
        if self.dynamic and self.faults and self.rng.random() < 0.06:
            self._change_voters()

    def _snapshot(self, node: SimulatedNode) -> None:
        if node.client is None or node.paused_until > self.now:
            return
        snapshot_id = node.listener.last
        values = list(node.listener.values)
        if self.rng.random() < 0.3:
            # Above the high watermark, which has to be refused.
            snapshot_id = node.client._context.log.end
            values = []
        elif snapshot_id.offset:
            self.checker.state_of(values, snapshot_id.offset)
        try:
            writer = node.client.create_snapshot(snapshot_id, node.listener.last_timestamp)
        except InvalidArgumentError:
            return
        if writer is not None and not values and snapshot_id.offset > node.listener.next_offset:
            writer.append([b"?"])
            writer.freeze()
            self.checker.after_event(node, self.nodes)
        elif writer is not None:
            writer.append(values or node.listener.values)
            if self.rng.random() < 0.85:
                writer.freeze()
            else:
                writer.close()
        node.poll()

    def _change_voters(self) -> None:
        leaders = self.leaders()
        if not leaders:
            return
        leader = self.rng.choice(leaders)
        target = self.rng.choice(list(self.nodes.values()))
        if leader.client is None or leader.paused_until > self.now:
            return
        request: Request
        if target.id not in leader.client.voters.ids:
            listeners = [
                AddRaftVoterListener(name=name, host=host, port=port)
                for name, (host, port) in target.endpoints.items()
            ]
            request = AddRaftVoterRequest(
                cluster_id=CLUSTER,
                timeout_ms=1_000,
                voter_id=target.id,
                voter_directory_id=target.key.directory_id,
                listeners=listeners,
                ack_when_committed=True,
            )
        else:
            request = RemoveRaftVoterRequest(
                cluster_id=CLUSTER,
                voter_id=target.id,
                voter_directory_id=target.key.directory_id,
            )
        self.handle(leader, request, lambda _: None)

    def _fault(self) -> None:
        if not self.faults:
            return
        self.after(self.rng.uniform(50, 1_000), self._fault)
        node = self.rng.choice(list(self.nodes.values()))
        leaders = self.leaders()
        if leaders and self.rng.random() < 0.5:
            node = self.rng.choice(leaders)
        match self.rng.randrange(7):
            case 0 | 1:
                node.crash()
                self.after(self.rng.choice([1.0, 50.0, 1_500.0]), lambda: self._restart(node))
            case 2:
                node.paused_until = self.now + self.rng.uniform(100, 4_000)
            case 3:
                self._cut(node)
            case 4 | 5:
                self.cuts.clear()
            case _:
                for each in self.nodes.values():
                    each.crash()
                    self.after(self.rng.uniform(1, 300), partial(self._restart, each))

    def _cut(self, node: SimulatedNode) -> None:
        for other in self.nodes.keys() - {node.id}:
            if self.rng.random() < 0.7:
                self.cuts.add((node.id, other))
                if self.rng.random() < 0.6:
                    self.cuts.add((other, node.id))

    def _restart(self, node: SimulatedNode) -> None:
        if node.client is None:
            node.start()

    def _heal(self) -> None:
        self.faults = False
        self.cuts.clear()
        for node in self.nodes.values():
            node.paused_until = 0.0
            self._restart(node)


def run_seed(seed: int, duration_ms: float = 12_000, voters: int | None = None) -> World:
    """Run a seed; raise `InvariantViolatedError` for a violation."""
    world = World(seed, voters)
    world.simulate(duration_ms)
    return world
