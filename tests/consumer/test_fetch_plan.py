"""Plan of the next fetches, compared with a full scan of the assignment."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.types import Node, TopicPartition
from kclient.consumer.auto_offset_reset import EARLIEST
from kclient.consumer.completed_fetch import CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_plan import FetchPlan
from kclient.consumer.fetch_session_handler import FetchPartitionData
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    TopicPartitionState,
    current_leader,
)
from kclient.protocol.messages.fetch import PartitionData
from kclient.protocol.types import ZERO_UUID
from tests.support.virtual.virtual_log_broker import VirtualLog

CONFIG = CONSUMER_CONFIG.parse({"bootstrap_servers": "h:1"})
NODES = [Node(number, f"h{number}", 9092) for number in range(3)]
PARTITIONS = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(2)]
BACKOFF = ExponentialBackoff(100, 1000, lambda: 0.0)
Planned = dict[int, dict[TopicPartition, FetchPartitionData]]


def cluster_of(
    leaders: list[int | None], *, nodes: list[Node] | None = None, ids: bytes = b"id"
) -> Cluster:
    """A cluster in which PARTITIONS[i] is led by NODES[leaders[i]]."""
    return Cluster(
        NODES if nodes is None else nodes,
        [
            PartitionInfo(*partition, None if leader is None else NODES[leader], 0)
            for partition, leader in zip(PARTITIONS, leaders, strict=True)
        ],
        topic_ids={"a": ids * 8},
    )


class Planning:
    """A plan, the facts that it depends on, and the changes of these."""

    def __init__(self) -> None:
        self.subscriptions = SubscriptionState(EARLIEST)
        self.buffer = FetchBuffer()
        self.cluster = cluster_of([0, 1, 2, 0])
        self.now_ms = 0.0
        self.plan = FetchPlan(self.subscriptions, lambda: self.cluster, self.buffer)
        self.sent: Planned = {}

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        return self.subscriptions.state(partition)

    def start(self, *partitions: TopicPartition, offset: int = 0) -> None:
        """Assign partitions, at an offset."""
        self.subscriptions.assign_from_user(partitions)
        for partition in partitions:
            self.seek(partition, offset)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        leader = current_leader(self.cluster, partition)
        self.state(partition).seek(FetchPosition(offset, 0, leader))

    def pause(self, partition: TopicPartition, *, paused: bool) -> None:
        self.state(partition).set_paused(paused=paused)
        self.buffer.follow_pause(self.state(partition))

    def become(self, cluster: Cluster) -> None:
        self.cluster = cluster
        for state in self.subscriptions.states():
            leader = current_leader(cluster, state.partition)
            state.take_leader(leader, can_validate=False)

    def respond(self, partition: TopicPartition, *, records: int = 3, error_code: int = 0) -> bool:
        """Buffer a response to a fetch from the present end of the buffered data."""
        state = self.state(partition)
        position = self.buffer.next_position(state)
        if position is None:
            return False
        log = VirtualLog(start_offset=position.offset, end_offset=position.offset)
        if records and not error_code:
            log.append(*[b"x"] * records)
        data = PartitionData(
            error_code=error_code, records=log.read(position.offset, 1000, 0) or b""
        )
        fetch = CompletedFetch(
            state, data, position, NodeBacklog(0, {}), CONFIG, deserializes=False
        )
        return self.buffer.add(fetch)

    def consume(self, count: int) -> None:
        """Take records of the first fetch, and remove it when it has no more."""
        fetch = self.buffer.first()
        if fetch is None:
            return
        state = fetch.state
        position = state.position
        stale = not self.subscriptions.holds(state) or not state.is_fetchable()
        if stale or position is None or position.offset != fetch.next_fetch_offset:
            self.buffer.remove(fetch)
        elif fetch.data.error_code:
            state.retry_later(self.now_ms, BACKOFF)
            self.buffer.remove(fetch)
        else:
            fetch.take(count)
            state.position = FetchPosition(
                fetch.next_fetch_offset, fetch.last_epoch, position.leader
            )
            if fetch.is_exhausted():
                self.buffer.remove(fetch)

    def updated(self) -> Planned:
        """Return the plan after an update, and check that it lists what changed since `send`."""
        for node_id in self.plan.update(self.now_ms):
            self.sent.pop(node_id, None)  # its session is dropped
        assert self.plan.nodes.keys() <= self.cluster.nodes.keys()
        for node_id, plan in self.plan.nodes.items():
            assert plan.node == self.cluster.nodes[node_id]
            sent = self.sent.get(node_id, {})
            for partition in PARTITIONS:
                if sent.get(partition) != plan.partitions.get(partition):
                    assert partition in plan.changed
        return {
            node_id: dict(plan.partitions)
            for node_id, plan in self.plan.nodes.items()
            if plan.partitions
        }

    def send(self, node_id: int) -> None:
        """Mark the changes of one broker as sent."""
        if node_id in self.plan.nodes:
            plan = self.plan.nodes[node_id]
            self.sent[node_id] = dict(plan.partitions)
            plan.changed = {}

    def scanned(self) -> tuple[Planned, set[TopicPartition]]:
        """Return plan and partitions without leader by looking at every assigned partition."""
        found: Planned = {}
        leaderless = set()
        for partition, state in self.subscriptions.assigned.items():
            if not state.is_fetchable() or self.now_ms < state.next_attempt_ms:
                continue
            node = state.fetch_node(self.cluster.nodes, self.now_ms)
            if node is None:
                leaderless.add(partition)
                continue
            position = self.buffer.next_position(state)
            if position is not None:
                topic_id = self.cluster.topic_id(partition.topic) or ZERO_UUID
                data = FetchPartitionData(topic_id, position, state)
                found.setdefault(node.id, {})[partition] = data
        return found, leaderless


def offsets(planned: Planned, node_id: int) -> list[tuple[TopicPartition, int]]:
    return [
        (partition, data.position.offset) for partition, data in planned.get(node_id, {}).items()
    ]


A0, A1, B0, B1 = PARTITIONS


def test_partitions_are_fetched_from_their_leaders_at_their_positions() -> None:
    planning = Planning()
    planning.start(A0, A1, B1, offset=5)
    planned = planning.updated()
    assert offsets(planned, 0) == [(A0, 5), (B1, 5)]
    assert offsets(planned, 1) == [(A1, 5)]
    assert planned[0][A0].topic_id == b"id" * 8
    assert planned[0][B1].topic_id == ZERO_UUID


def test_plan_of_a_broker_that_left_is_dropped() -> None:
    planning = Planning()
    planning.start(A0, A1)
    planning.updated()
    planning.become(cluster_of([0, None, 2, 0], nodes=[NODES[0], NODES[2]]))
    assert planning.plan.update(planning.now_ms) == [1]
    assert planning.plan.nodes.keys() == {0}
    assert planning.plan.leaderless.keys() == {A1}
    assert not planning.plan.update(planning.now_ms)
    planning.become(cluster_of([0, 1, 2, 0]))
    assert offsets(planning.updated(), 1) == [(A1, 0)]


def test_next_fetch_starts_after_the_buffered_data() -> None:
    planning = Planning()
    planning.start(A0)
    assert planning.respond(A0)
    assert offsets(planning.updated(), 0) == [(A0, 3)]
    planning.consume(2)
    assert offsets(planning.updated(), 0) == [(A0, 3)]
    planning.send(0)
    planning.consume(2)
    assert offsets(planning.updated(), 0) == [(A0, 3)]
    assert not planning.plan.nodes[0].changed  # consuming changes no fetch


def test_partitions_that_returned_data_come_last() -> None:
    planning = Planning()
    planning.start(A0, B1)
    planning.updated()
    planning.respond(A0)
    assert offsets(planning.updated(), 0) == [(B1, 0), (A0, 3)]
    planning.respond(B1, records=0)
    planning.become(cluster_of([0, 1, 2, 0]))
    assert offsets(planning.updated(), 0) == [(B1, 0), (A0, 3)]


def test_nothing_is_fetched_after_an_error_until_the_backoff_has_passed() -> None:
    planning = Planning()
    planning.start(A0)
    planning.respond(A0, error_code=6)
    assert planning.updated() == {}
    planning.consume(1)
    assert planning.updated() == {}
    planning.now_ms = 99.0
    assert planning.updated() == {}
    planning.now_ms = 100.0
    assert offsets(planning.updated(), 0) == [(A0, 0)]


def test_expired_preferred_read_replica_is_replaced_by_the_leader() -> None:
    planning = Planning()
    planning.start(A0)
    planning.state(A0).prefer_read_replica(2, until_ms=50.0)
    assert planning.updated().keys() == {2}
    planning.now_ms = 50.0
    assert planning.updated().keys() == {0}


def test_partition_without_leader_is_known_until_it_has_one_or_is_unassigned() -> None:
    planning = Planning()
    planning.start(A0, A1)
    planning.become(cluster_of([0, 1, 2, 0], nodes=NODES[2:]))
    assert planning.updated() == {}
    assert list(planning.plan.leaderless) == [A0, A1]
    planning.subscriptions.assign_from_user([A0])
    planning.updated()
    assert list(planning.plan.leaderless) == [A0]
    planning.become(cluster_of([2, 1, 2, 0], nodes=NODES[2:]))
    assert planning.updated().keys() == {2}
    assert not planning.plan.leaderless


def inspected_by_update(planning: Planning) -> list[TopicPartition]:
    """Return the partitions whose state an update gets."""
    assert planning.subscriptions.has_all_positions()
    inspected: list[TopicPartition] = []

    class Watched(dict[TopicPartition, TopicPartitionState]):
        def get(self, key: TopicPartition) -> TopicPartitionState | None:  # type: ignore[override]
            inspected.append(key)
            return super().get(key)

    planning.subscriptions.assigned = Watched(planning.subscriptions.assigned)
    planning.updated()
    return inspected


@pytest.mark.parametrize("count", [100, 10_000])
def test_update_inspects_only_partitions_that_changed(count: int) -> None:
    planning = Planning()
    partitions = [TopicPartition("a", number) for number in range(count)]
    infos = [PartitionInfo(*partition, NODES[0], 0) for partition in partitions]
    planning.cluster = Cluster(NODES, infos)
    planning.start(*partitions)
    planning.updated()
    planning.send(0)
    planning.respond(partitions[7])
    planning.state(partitions[9]).set_paused(paused=True)
    assert inspected_by_update(planning) == [partitions[7], partitions[9]]
    assert list(planning.plan.nodes[0].changed) == [partitions[7], partitions[9]]


def test_new_leader_concerns_only_its_partition() -> None:
    planning = Planning()
    planning.start(*PARTITIONS)
    planning.updated()
    planning.become(cluster_of([0, 1, 2, 1]))
    assert inspected_by_update(planning) == [B1]
    assert offsets(planning.updated(), 1) == [(A1, 0), (B1, 0)]


@settings(max_examples=300)
@given(data=st.data())
def test_plan_is_that_of_a_full_scan(data: st.DataObject) -> None:
    planning = Planning()

    def draw_cluster() -> Cluster:
        leaders = st.lists(st.sampled_from([0, 1, 2, None]), min_size=4, max_size=4)
        nodes = st.lists(st.sampled_from(NODES), min_size=1, unique=True)
        return cluster_of(
            data.draw(leaders),
            nodes=data.draw(nodes),
            ids=data.draw(st.sampled_from([b"id", b"ID"])),
        )

    def partition() -> TopicPartition:
        assigned = list(planning.subscriptions.assigned)
        return data.draw(st.sampled_from(assigned))

    number = st.integers(0, 5)
    changes = {
        "assign": lambda: planning.subscriptions.assign_from_user(
            data.draw(st.lists(st.sampled_from(PARTITIONS), unique=True))
        ),
        "cluster": lambda: planning.become(draw_cluster()),
        "wait": lambda: setattr(planning, "now_ms", planning.now_ms + data.draw(number) * 50),
        "consume": lambda: planning.consume(data.draw(st.integers(1, 4))),
        "clear": planning.buffer.clear,
        "retain": lambda: planning.buffer.retain(planning.subscriptions.assigned),
        "send": lambda: planning.send(data.draw(st.integers(0, 2))),
    }
    changes_of_one = {
        "seek": lambda: planning.seek(partition(), data.draw(number)),
        "reset": lambda: planning.state(partition()).reset(EARLIEST),
        "pause": lambda: planning.pause(partition(), paused=data.draw(st.booleans())),
        "retry later": lambda: planning.state(partition()).retry_later(planning.now_ms, BACKOFF),
        "prefer": lambda: planning.state(partition()).prefer_read_replica(
            data.draw(st.integers(0, 3)), planning.now_ms + data.draw(number) * 50
        ),
        "do not prefer": lambda: planning.state(partition()).clear_preferred_read_replica(),
        "respond": lambda: planning.respond(
            partition(),
            records=data.draw(st.integers(0, 3)),
            error_code=data.draw(st.sampled_from([0, 0, 6])),
        ),
        "drop": lambda: planning.buffer.drop(partition()),
        "rewind": lambda: planning.state(partition()).rewind(
            FetchPosition(data.draw(number), 0, current_leader(planning.cluster, A0))
        ),
    }
    for _ in range(data.draw(st.integers(1, 25))):
        possible = changes | (changes_of_one if planning.subscriptions.assigned else {})
        possible[data.draw(st.sampled_from(sorted(possible)))]()
        if data.draw(st.booleans()):
            planned = planning.updated()
            scanned, leaderless = planning.scanned()
            assert planned == scanned
            assert set(planning.plan.leaderless) == leaderless
