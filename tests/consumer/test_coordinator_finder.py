"""Lookup of the group coordinator, and its loss."""

import math

import pytest

from kclient.client.find_coordinator import CoordinatorType, FindCoordinator
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    NotCoordinatorError,
)
from kclient.common.errors import (
    DisconnectedError,
    KafkaTimeoutError,
)
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import (
    ORDERS_0,
    ConsumerWorld,
    Diary,
    EventLog,
    member,
    offsets,
)
from tests.support.virtual.virtual_log_broker import VirtualLogBroker

NOT_COORDINATOR = 16


@pytest.mark.fault("R13")
def test_moved_coordinator_is_found(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary)
    world.broker.fail(ApiKey.HEARTBEAT, NOT_COORDINATOR)
    found = world.broker.asked_for(ApiKey.FIND_COORDINATOR)
    world.background(8_000)
    assert world.broker.asked_for(ApiKey.FIND_COORDINATOR) == found + 1
    consumer.poll(0.1)
    assert diary.entries == [("assigned", [0, 1])]


_COORDINATOR_LOADING = 14


_NOT_COORDINATOR = 16


@pytest.mark.fault("R13")
def test_loading_coordinator_is_reported_at_the_timeout(
    world: ConsumerWorld,
) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_COORDINATOR_LOADING] * 500)
    before_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        consumer.commit({ORDERS_0: 1}, timeout=4.0)
    assert 3_000 <= world.clock.now_ms - before_ms <= 4_100
    assert len(world.broker.group.commits) < 60
    world.broker.failures.clear()
    consumer.commit({ORDERS_0: 2})


@pytest.mark.fault("R13")
@pytest.mark.parametrize("how", ["moves", "dies"])
def test_group_continues_at_its_new_coordinator(world: ConsumerWorld, how: str) -> None:
    other = VirtualLogBroker(Node(2, "10.0.0.2", 9092), world.clock)
    other.logs, other.topics = world.broker.logs, world.broker.topics
    other.topic_ids, other.group = world.broker.topic_ids, world.broker.group
    world.broker.brokers = other.brokers = [world.broker.node, other.node]
    world.net.peers["10.0.0.2", 9092] = lambda: other
    world.fill(3)
    consumer = world.consumer(group_id="g", heartbeat_interval_ms=100, session_timeout_ms=6000)
    events = EventLog(consumer)
    assert len(world.read(consumer, 3)) == 3
    world.broker.group.node = other.node
    if how == "moves":
        world.broker.fail(ApiKey.HEARTBEAT, _NOT_COORDINATOR)
    else:
        world.broker.topics["orders"] = [2, 2]  # which leads the partitions, too
        world.net.stop(("10.0.0.1", 9092))
    world.poll_until(consumer, lambda: other.asked_for(ApiKey.HEARTBEAT) > 0)
    world.log().append(b"new")
    other.arrived()
    assert offsets(world.read(consumer, 1)) == [3]
    consumer.commit(timeout=2)
    assert other.asked_for(ApiKey.OFFSET_COMMIT) > 0
    assert events.what == ["assigned"], "no partition was revoked"


class Finding:
    """The coordinator finder of a consumer, driven step by step."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.core = world.core(group_id="g", retry_backoff_ms=100, retry_backoff_max_ms=800)
        assert self.core.group is not None
        self.finder = self.core.group.finder
        while self.core.network.metadata.cluster().is_bootstrap:
            self.poll()

    def poll(self, timeout_ms: float = 50.0) -> None:
        self.core.network.poll(timeout_ms, self.world.clock.now_ms)

    def step(self) -> float:
        return self.finder.step(self.world.clock.now_ms)

    def find(self) -> Node:
        for _ in range(200):
            self.step()
            self.poll()
            if (node := self.finder.coordinator()) is not None:
                return node
        raise AssertionError("no coordinator")

    def lookups(self) -> int:
        return self.world.broker.asked_for(ApiKey.FIND_COORDINATOR)


@pytest.fixture
def finding(world: ConsumerWorld) -> Finding:
    return Finding(world)


def test_coordinator_has_a_connection_of_its_own(finding: Finding) -> None:
    assert finding.finder.coordinator() is None
    assert finding.finder.broker_node() is None
    node = finding.find()
    assert node.id not in finding.core.network.metadata.cluster().nodes
    assert finding.finder.broker_node() == node._replace(id=1)
    assert finding.step() == math.inf
    assert finding.lookups() == 1


def test_one_lookup_is_in_flight(finding: Finding) -> None:
    finding.world.broker.silent = True
    assert 100 <= finding.step() <= 120
    assert finding.step() == math.inf
    finding.poll()
    assert finding.step() == math.inf


def test_failed_lookups_are_backed_off(finding: Finding) -> None:
    finding.world.broker.fail(ApiKey.FIND_COORDINATOR, 15, 15, 15, 15)
    began_ms = finding.world.clock.now_ms
    finding.find()
    assert finding.lookups() == 5
    assert finding.world.clock.now_ms - began_ms >= 100 + 200 + 400 + 800


def test_lost_coordinator_is_looked_up_again(finding: Finding) -> None:
    finding.find()
    finding.finder.check_lost(CoordinatorLoadInProgressError("not lost"))
    assert finding.finder.coordinator() is not None
    finding.finder.check_lost(NotCoordinatorError("moved"))
    assert finding.finder.coordinator() is None
    finding.finder.mark_unknown("again")
    finding.find()
    assert finding.lookups() == 2


def test_coordinator_lost_soon_does_not_reset_the_backoff(finding: Finding) -> None:
    for _ in range(4):
        finding.find()
        finding.finder.mark_unknown("lost at once")
    finding.world.sleep(1000.0)
    assert finding.step() >= 800
    finding.find()
    finding.world.sleep(2100.0)
    finding.finder.mark_unknown("lost after a while")
    finding.world.sleep(1000.0)
    assert finding.step() <= 120


def test_requests_to_a_lost_coordinator_fail(finding: Finding) -> None:
    node = finding.find()
    finding.world.broker.silent = True
    future = finding.core.network.send(node, FindCoordinator(["g"], CoordinatorType.GROUP))
    finding.poll(0.0)
    finding.finder.mark_unknown("moved")
    finding.poll(0.0)
    assert isinstance(future.error, DisconnectedError)


def test_unavailable_coordinator_is_discarded(finding: Finding) -> None:
    node = finding.find()
    finding.world.net.stop(("10.0.0.1", 9092))
    future = finding.core.network.send(node, FindCoordinator(["g"], CoordinatorType.GROUP))
    while not future.done:
        finding.poll()
    assert finding.finder.coordinator() is None


def test_error_of_authorization_is_raised_once(finding: Finding) -> None:
    finding.world.broker.fail(ApiKey.FIND_COORDINATOR, 30)
    finding.step()
    for _ in range(3):
        finding.poll()
    with pytest.raises(GroupAuthorizationError, match="not authorized to access group 'g'"):
        finding.step()
    finding.find()


def test_last_failure_is_reported_by_calls_that_time_out(finding: Finding) -> None:
    finding.world.broker.fail(ApiKey.FIND_COORDINATOR, 15)
    finding.step()
    for _ in range(3):
        finding.poll()
    (error,) = finding.core.network.known_errors()
    assert str(error).startswith("no coordinator was found for group 'g': COORDINATOR_NOT_AV")
    assert isinstance(error.__cause__, CoordinatorNotAvailableError)
    assert error.__cause__.__traceback__ is None, "it would keep the consumer alive"
