"""Group coordinators of three brokers on one replicated partition, in virtual time.

The log is a model of replication: leaders append, followers fetch and truncate, the high watermark
follows. Changes of the leader reach each broker late, and several of them at once.
"""

from collections.abc import Callable, Mapping
from random import Random
from types import SimpleNamespace
from typing import NamedTuple, cast

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.group.group_records import CommittedOffset, decode_record
from kclient.broker.coordinator.group.membership import RequestContext
from kclient.broker.coordinator.runtime.partition_log import (
    ReplicatedLog,
    TransactionEnd,
    TransactionOwner,
)
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.fetch_params import AppendResult
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    NONE,
    FencedLeaderEpochError,
    KafkaStorageError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from kclient.record import ProducerIdAndEpoch, read_batches
from tests.support.virtual.virtual_home import VirtualHome

OFFSETS = TopicPartition("__consumer_offsets", 0)
TP = TopicPartition("t", 0)
NODES = 3
GROUPS = ("a", "b")
PRODUCER_ID = 9


class Entry(NamedTuple):
    """A batch in a log."""

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


class ViolationError(AssertionError):
    """An invariant does not hold."""


class Replica:
    """Replica of the partition: as much of a ReplicaManager as a coordinator's log uses.

    Attributes:
        checks_leader: Whether waiting appends fail when leadership is lost.
        failure: Error of the next append, or None; storage errors leave the records in the log.
    """

    def __init__(self, node: int, world: "ReplicatedGroups") -> None:
        self.node = node
        self.world = world
        self.entries: list[Entry] = []
        self.high_watermark = 0
        self.log_start_offset = 0
        self.leader, self.epoch = -1, -1
        self.fetched: dict[int, int] = {}
        self.waiting: list[tuple[int, Callable[[AppendResults], None]]] = []
        self.failure: KafkaError | None = None

    # -- as a log and a partition

    @property
    def log_end_offset(self) -> int:
        return self.entries[-1].end_offset if self.entries else 0

    @property
    def log(self) -> "Replica":
        return self

    def partition(self, _partition: TopicPartition) -> "Replica":
        return self

    def read(self, offset: int, _size: int) -> SimpleNamespace:
        """Return one batch: loading takes many steps."""
        found = [entry.data for entry in self.entries if entry.end_offset > offset]
        return SimpleNamespace(records=b"".join(found[:1]))

    def check_leader_epoch(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise FencedLeaderEpochError
        if epoch > self.epoch:
            raise UnknownLeaderEpochError
        if self.leader != self.node:
            raise NotLeaderOrFollowerError

    # -- as a replica manager

    def append_records(
        self,
        _acks: int,
        entries: Mapping[TopicPartition, MemoryRecords],
        _timeout_ms: float,
        on_done: Callable[[AppendResults], None],
        _origin: str,
        _transaction_version: int,
        _guards: object,
    ) -> None:
        error, self.failure = self.failure, None
        if self.leader != self.node:
            error = NotLeaderOrFollowerError()
        if error is None or isinstance(error, KafkaStorageError):
            self._append(bytes(entries[OFFSETS].content))
        if error is not None:
            on_done({OFFSETS: AppendResult(error=error)})
            return
        self.waiting.append((self.log_end_offset, on_done))

    def _append(self, data: bytes) -> None:
        base = self.log_end_offset
        (batch,) = read_batches(data)
        data = base.to_bytes(8, "big") + data[8:]
        count = batch.next_offset - batch.base_offset
        self.entries.append(Entry(base, base + count, self.epoch, data))

    def complete(self) -> None:
        """Complete the appends that are committed, or cannot be any more."""
        lost = self.leader != self.node and self.world.checks_leader
        waiting, self.waiting = self.waiting, []
        for end_offset, on_done in waiting:
            if lost:
                on_done({OFFSETS: AppendResult(error=NotLeaderOrFollowerError())})
            elif self.high_watermark >= end_offset:
                on_done({OFFSETS: AppendResult(end_offset=end_offset)})
            else:
                self.waiting.append((end_offset, on_done))

    def apply(self, leader: int, epoch: int) -> None:
        self.leader, self.epoch = leader, epoch
        self.fetched = {}
        self.complete()

    def fetch(self, leader: "Replica") -> None:
        """Fetch one batch, after truncation to what the leader has."""
        common = 0
        for mine, other in zip(self.entries, leader.entries, strict=False):
            if mine != other:
                break
            common += 1
        del self.entries[common:]
        leader.fetched[self.node] = self.log_end_offset
        if len(leader.fetched) == NODES - 1:
            least = min(leader.log_end_offset, *leader.fetched.values())
            leader.high_watermark = max(leader.high_watermark, least)
        self.high_watermark = max(
            min(self.high_watermark, self.log_end_offset),
            min(leader.high_watermark, self.log_end_offset),
        )
        self.entries += leader.entries[common : common + 1]
        self.world.commit(leader)
        leader.complete()
        self.complete()


class Transactions:
    """Producer that commits offsets of group "x" in one transaction after the other.

    It repeats the marker until it is acknowledged, as a transaction coordinator does.

    Attributes:
        value: Offset of the present transaction, or None.
        is_acknowledged: Whether the offset is acknowledged, so that it may be committed.
        is_waiting: Whether a response is outstanding.
        commits: Decision about the transaction once its marker was sent, else None.
        committed: Offset of the last committed transaction, -1 before the first.
        epoch: Epoch of the coordinator that acknowledged the last marker.
        ended: Number of transactions that have ended.
    """

    def __init__(self) -> None:
        self.value: int | None = None
        self.is_acknowledged = self.is_waiting = False
        self.commits: bool | None = None
        self.committed = -1
        self.epoch = -1
        self.ended = 0

    def possible_values(self) -> set[int]:
        """Return the offsets that a coordinator may have committed."""
        if self.commits and self.value is not None:
            return {self.committed, self.value}
        return {self.committed}

    def end(self, epoch: int) -> None:
        if self.commits and self.value is not None:
            self.committed = self.value
        self.value = self.commits = None
        self.is_acknowledged = False
        self.epoch = max(self.epoch, epoch)
        self.ended += 1


class Member:
    """Client that joins group "m" again and again."""

    def __init__(self) -> None:
        self.member_id = ""
        self.joined: JoinGroupResponse | None = None
        self.is_waiting = False


class ReplicatedGroups:
    """The brokers, their clients, and what the clients have seen."""

    def __init__(self, seed: int, *, checks_leader: bool = True) -> None:
        self.random = Random(seed)
        self.checks_leader = checks_leader
        self.home = VirtualHome()
        self.replicas = [Replica(node, self) for node in range(NODES)]
        self.coordinators = [self._coordinator(each) for each in self.replicas]
        self.leader, self.epoch = -1, -1
        self.news: list[list[tuple[int, int]]] = [[] for _ in range(NODES)]
        self.notices: list[list[tuple[int, int]]] = [[] for _ in range(NODES)]
        self.committed: list[Entry] = []
        self.committed_values: set[tuple[str, int]] = set()
        self.issued = 0
        self.seen: list[tuple[int, str, int]] = []  # epoch, group, acknowledged or read offset
        self.writers: dict[int, int] = {}
        self.assignments: dict[int, bytes] = {}
        self.attempts = 0
        self.acknowledged = 0
        self.members = [Member(), Member()]
        self.transactions = Transactions()
        self.change_leader()

    def _coordinator(self, replica: Replica) -> GroupCoordinator:
        runtime = self.home.runtime
        log = ReplicatedLog(
            OFFSETS.topic, cast("ReplicaManager", replica), runtime.clock, lambda: 1
        )
        coordinator = GroupCoordinator(GroupConfig(initial_rebalance_delay_ms=0), log, runtime)
        coordinator.startup()
        return coordinator

    # -- the brokers

    def change_leader(self) -> None:
        self.leader, self.epoch = self.random.randrange(NODES), self.epoch + 1
        for news in self.news:
            news.append((self.leader, self.epoch))

    def receive_news(self, node: int) -> None:
        """Apply one or all changes of the leader to a replica."""
        news = self.news[node]
        if news:
            count = self.random.choice((1, len(news)))
            self.replicas[node].apply(*news[count - 1])
            self.notices[node].append(news[count - 1])
            del news[:count]

    def notice(self, node: int) -> None:
        """Pass the changes of a replica to the coordinator."""
        for leader, epoch in self.notices[node]:
            if leader == node:
                self.coordinators[node].on_leadership(0, epoch)
            else:
                self.coordinators[node].on_resignation(0, epoch)
        self.notices[node].clear()

    def fetch(self, node: int) -> None:
        replica = self.replicas[node]
        leader = self.replicas[replica.leader]
        if leader is not replica and leader.leader == leader.node and leader.epoch == replica.epoch:
            replica.fetch(leader)

    def commit(self, leader: Replica) -> None:
        """Take over what the leader knows to be committed."""
        entries = [e for e in leader.entries if e.end_offset <= leader.high_watermark]
        known = self.committed
        if entries[: len(known)] != known[: len(entries)]:
            raise ViolationError("the model of replication lost a committed batch")
        for entry in entries[len(known) :]:
            known.append(entry)
            self._count_values(entry.data)

    def _count_values(self, data: bytes) -> None:
        for batch in read_batches(data):
            for record in () if batch.is_control else batch.records():
                decoded = decode_record(
                    bytes(record.key or b""), bytes(record.value or b"") or None
                )
                if decoded is None or not isinstance(decoded.key, OffsetCommitKey):
                    continue
                if isinstance(decoded.value, OffsetCommitValue):
                    self.committed_values.add((decoded.key.group, decoded.value.offset))

    def step_broker(self, node: int) -> None:
        self.coordinators[node].step(self.home.clock.now_ms)

    def epoch_of(self, node: int) -> int:
        epoch = self.coordinators[node]._runtime.leader_epoch(0)
        if epoch is None:
            raise ViolationError(f"node {node} responds without being the coordinator")
        return epoch

    # -- the clients

    def commit_offset(self, node: int) -> None:
        """Commit an offset above all earlier ones."""
        self.issued += 1
        group, value = self.random.choice(GROUPS), self.issued

        def on_done(codes: dict[TopicPartition, int]) -> None:
            if codes[TP] == NONE:
                self.check_acknowledged(node, group, value)

        offset = CommittedOffset(value, -1, "", 0)
        self.coordinators[node].commit_offsets(group, ("", None, -1), {TP: offset}, on_done)

    def check_acknowledged(self, node: int, group: str, value: int) -> None:
        epoch = self.epoch_of(node)
        self.acknowledged += 1
        if self.writers.setdefault(epoch, node) != node:
            raise ViolationError(f"G3: two coordinators in epoch {epoch}")
        if (group, value) not in self.committed_values:
            raise ViolationError(f"G2: {value} of {group} is acknowledged, but not committed")
        self.seen.append((epoch, group, value))

    def read_offset(self, node: int) -> None:
        group = self.random.choice(GROUPS)
        try:
            found = self.coordinators[node].fetch_offsets(group).get(TP)
        except KafkaError:
            return
        epoch = self.epoch_of(node)
        value = -1 if found is None else found.offset
        before = max((v for e, g, v in self.seen if g == group and e <= epoch), default=-1)
        if value < before:
            raise ViolationError(f"G2: {value} of {group} is read in epoch {epoch} after {before}")
        if value >= 0 and (group, value) not in self.committed_values:
            raise ViolationError(f"G2: {value} of {group} is read, but not committed")
        self.seen.append((epoch, group, value))

    def step_transaction(self, node: int) -> None:
        """Send the next request of the transactional producer, or of its coordinator."""
        ongoing = self.transactions
        if ongoing.is_waiting:
            return
        ongoing.is_waiting = True
        if ongoing.value is None:
            self._commit_in_transaction(node)
        else:
            self._end_transaction(node)

    def _commit_in_transaction(self, node: int) -> None:
        ongoing = self.transactions
        self.issued += 1
        ongoing.value = self.issued

        def on_done(codes: dict[TopicPartition, int]) -> None:
            ongoing.is_waiting = False
            ongoing.is_acknowledged = codes[TP] == NONE

        self.coordinators[node].commit_transactional_offsets(
            "x",
            ("", None, -1),
            {TP: CommittedOffset(self.issued, -1, "", 0)},
            TransactionOwner(PRODUCER_ID, 0),
            on_done,
        )

    def _end_transaction(self, node: int) -> None:
        ongoing = self.transactions
        if ongoing.commits is None:
            ongoing.commits = ongoing.is_acknowledged and self.random.random() < 0.6

        def on_done(error: KafkaError | None) -> None:
            ongoing.is_waiting = False
            if error is None:
                ongoing.end(self.epoch_of(node))

        end = TransactionEnd(ProducerIdAndEpoch(PRODUCER_ID, 0), ongoing.commits, 0)
        self.coordinators[node].end_transaction(0, end, on_done)

    def read_stable_offset(self, node: int) -> None:
        """Check the offset of group "x" if no transaction holds it open."""
        ongoing = self.transactions
        try:
            unstable = self.coordinators[node].unstable_partitions("x")
            found = self.coordinators[node].fetch_offsets("x").get(TP)
        except KafkaError:
            return
        if TP in unstable or self.epoch_of(node) < ongoing.epoch:
            return
        value = -1 if found is None else found.offset
        if value not in ongoing.possible_values():
            raise ViolationError(
                f"G4: {value} is read, expected one of {ongoing.possible_values()}"
            )
        if ongoing.is_acknowledged and ongoing.commits is None and self.is_newest(node):
            raise ViolationError(f"G4: the transaction of {ongoing.value} is open, but not seen")

    def is_newest(self, node: int) -> bool:
        """Return whether no other broker can be the coordinator."""
        return self.epoch_of(node) == self.epoch

    def join(self, node: int) -> None:
        member = self.random.choice(self.members)
        if member.is_waiting and self.random.random() < 0.8:
            return
        member.is_waiting = True

        def on_joined(response: JoinGroupResponse) -> None:
            member.is_waiting = False
            member.joined = response if response.error_code == NONE else None
            if response.error_code == NONE:
                member.member_id = response.member_id
            elif response.error_code == code_of(UnknownMemberIdError):
                member.member_id = ""

        request = JoinGroupRequest(
            group_id="m",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        self.coordinators[node].join_group(request, RequestContext("c", "/h", 3), on_joined)

    def sync(self, node: int) -> None:
        member = self.random.choice(self.members)
        joined = member.joined
        if joined is None:
            return
        self.attempts += 1
        value = b"%d" % self.attempts
        generation = joined.generation_id
        given = [
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=value)
            for each in joined.members
        ]

        def on_synced(response: SyncGroupResponse) -> None:
            if response.error_code == NONE and response.assignment:
                known = self.assignments.setdefault(generation, bytes(response.assignment))
                if known != response.assignment:
                    raise ViolationError(f"G1: two assignments in generation {generation}")

        request = SyncGroupRequest(
            group_id="m",
            generation_id=generation,
            member_id=member.member_id,
            assignments=given,
        )
        self.coordinators[node].sync_group(request, on_synced)

    # -- the run

    def act(self) -> None:
        """Let one thing happen."""
        random = self.random
        node = random.randrange(NODES)
        if random.random() < 0.7:
            node = self.leader
        chance = random.random()
        if chance < 0.015:
            self.change_leader()
        elif chance < 0.022:
            error = random.choice((NotEnoughReplicasError, KafkaStorageError))
            self.replicas[node].failure = error()
        elif chance < 0.03:
            self.home.clock.now_ms += random.choice((100, 1_000, 4_000))
        else:
            node_of = random.randrange(NODES)
            actions: list[tuple[Callable[[int], None], int]] = [
                *[(self.receive_news, node_of)] * 2,
                *[(self.notice, node_of)] * 2,
                *[(self.fetch, node_of)] * 6,
                (self.step_broker, node),
                (self.step_broker, node),
                (self.commit_offset, node),
                (self.read_offset, node),
                (self.step_transaction, node),
                (self.read_stable_offset, node),
                (self.join, node),
                (self.sync, node),
            ]
            action, on = random.choice(actions)
            action(on)

    def heal(self) -> None:
        """Let everything that is on its way arrive; then the leader must serve."""
        for _ in range(len(self.committed) + len(max(r.entries for r in self.replicas)) + 20):
            self.home.clock.now_ms += 10
            for node in range(NODES):
                self.replicas[node].failure = None
                self.receive_news(node)
                self.notice(node)
                self.fetch(node)
                self.step_broker(node)
        before = self.acknowledged
        self.coordinators[self.leader].load_now()
        for group in GROUPS:
            self.coordinators[self.leader].fetch_offsets(group)
        for _ in range(6):
            self.read_offset(self.leader)
        self._heal_transaction()
        for _ in range(4):
            # The first may find records of an append that failed in its flush.
            self.commit_offset(self.leader)
            for _ in range(6):
                for node in range(NODES):
                    self.fetch(node)
            self.coordinators[self.leader].load_now()
        if self.acknowledged == before:
            raise ViolationError("L3: the leader does not acknowledge commits")

    def _heal_transaction(self) -> None:
        """Let the present transaction end; then its offset must be stable."""
        ongoing = self.transactions
        for _ in range(40):
            if ongoing.value is None:
                break
            self.step_transaction(self.leader)
            self.home.clock.now_ms += 1_000
            for node in range(NODES):
                self.fetch(node)
                self.step_broker(node)
            self.coordinators[self.leader].load_now()
        if ongoing.value is not None:
            raise ViolationError("L4: the transaction does not end")
        if self.coordinators[self.leader].unstable_partitions("x"):
            raise ViolationError("L4: the offset is unstable after the end of its transaction")
        self.read_stable_offset(self.leader)


def run(seed: int, actions: int = 1_200, *, checks_leader: bool = True) -> ReplicatedGroups:
    """Run a world of a seed; raise ViolationError if an invariant does not hold."""
    world = ReplicatedGroups(seed, checks_leader=checks_leader)
    for _ in range(actions):
        world.act()
    world.heal()
    return world
