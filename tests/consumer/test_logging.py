"""Log lines of a consumer in normal operation and in outages."""

import logging
import re
from pathlib import Path

import pytest

import kclient.consumer
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld

_COORDINATOR_LOAD_IN_PROGRESS = 14


_NOT_LEADER_OR_FOLLOWER = 6


_REBALANCE_IN_PROGRESS = 27


_UNKNOWN_MEMBER_ID = 25


_PREFIX = re.compile(r"^\[Consumer clientId=kclient-consumer, instance=\d+, groupId=g\] ")


class Log:
    """The lines of kclient.consumer at INFO and above."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "kclient")
        self.caplog = caplog

    def lines(self, level: int = logging.INFO) -> list[str]:
        """Return the new lines without their common prefix."""
        found = []
        for record in self.caplog.records:
            if record.name.startswith("kclient.consumer") and record.levelno >= level:
                message = record.getMessage()
                assert _PREFIX.match(message), message
                found.append(f"{record.levelname} {_PREFIX.sub('', message)}")
        self.caplog.clear()
        return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_normal_operation_logs_no_warning(world: ConsumerWorld, log: Log) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=100)
    for _ in range(3):
        consumer.poll(0.1)
    lines = log.lines()
    assert [*lines[:5], *sorted(lines[5:])] == [
        "INFO Discovered group coordinator 10.0.0.1:9092 (id: 1)",
        "INFO (Re-)joining group",
        "INFO Successfully joined group with generation 1 as member member-1, protocol range",
        "INFO Finished assignment for group at generation 1 with 1 members",
        "INFO Adding newly assigned partitions: orders-0, orders-1",
        "INFO Resetting offset for partition orders-0 to position 0 (earliest)",
        "INFO Resetting offset for partition orders-1 to position 0 (earliest)",
    ]
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: world.broker.group.generation == 2)
    world.poll_until(consumer, lambda: bool(consumer.assignment()))
    assert log.lines()[:6] == [
        "INFO Request joining group due to: group is already rebalancing",
        "INFO Revoking previously assigned partitions: orders-0, orders-1",
        "INFO (Re-)joining group due to: group is already rebalancing",
        "INFO Successfully joined group with generation 2 as member member-1, protocol range",
        "INFO Finished assignment for group at generation 2 with 1 members",
        "INFO Adding newly assigned partitions: orders-0, orders-1",
    ]
    consumer.poll(0.1)
    log.lines()
    consumer.close()
    assert [re.sub(r"\(id: \d+\)", "", line) for line in log.lines()] == [
        "INFO Revoking previously assigned partitions: orders-0, orders-1",
        (
            "INFO Member member-1 sending LeaveGroup request to coordinator 10.0.0.1:9092  due to: "
            "the consumer is being closed"
        ),
    ]


@pytest.mark.parametrize("api", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
def test_rebalance_while_joining_is_not_a_failure(
    world: ConsumerWorld, log: Log, api: ApiKey
) -> None:
    world.broker.fail(api, _REBALANCE_IN_PROGRESS)
    world.subscribed()
    assert not [line for line in log.lines() if "failed" in line.lower()]


def test_lost_membership_is_logged_with_reason(world: ConsumerWorld, log: Log) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=100)
    consumer.poll(0.1)
    log.lines()
    world.broker.fail(ApiKey.HEARTBEAT, _UNKNOWN_MEMBER_ID)
    world.poll_until(consumer, lambda: world.broker.group.generation == 2)
    assert log.lines()[:3] == [
        (
            "INFO Resetting generation 1 and member id member-1 due to: the coordinator does not "
            "know the member"
        ),
        "INFO Lost previously assigned partitions: orders-0, orders-1",
        "INFO (Re-)joining group due to: the coordinator does not know the member",
    ]


def test_retried_request_logs_first_failure_and_success(world: ConsumerWorld, log: Log) -> None:
    consumer = world.subscribed(enable_auto_commit=False)
    log.lines()
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_COORDINATOR_LOAD_IN_PROGRESS] * 5)
    consumer.commit({ORDERS_0: 1})
    assert log.lines() == [
        "INFO Offset commit failed: COORDINATOR_LOAD_IN_PROGRESS: orders-0",
        "INFO Offset commit succeeded after 5 failed attempts",
    ]
    world.broker.fail(ApiKey.OFFSET_FETCH, *[_COORDINATOR_LOAD_IN_PROGRESS] * 3)
    consumer.committed([ORDERS_0])
    world.broker.fail(ApiKey.LIST_OFFSETS, *[_NOT_LEADER_OR_FOLLOWER] * 3)
    consumer.end_offsets([ORDERS_0])
    assert log.lines() == [
        "INFO Lookup of committed offsets failed: COORDINATOR_LOAD_IN_PROGRESS",
        "INFO Lookup of committed offsets succeeded after 3 failed attempts",
        "INFO Lookup of offsets failed: NOT_LEADER_OR_FOLLOWER: orders-0",
        "INFO Lookup of offsets succeeded after 3 failed attempts",
    ]


def test_outage_and_its_end_are_logged(world: ConsumerWorld, log: Log) -> None:
    consumer = world.subscribed()
    log.lines()
    peers = dict(world.net.peers)
    world.net.stop(("10.0.0.1", 9092))
    for _ in range(15):
        consumer.poll(1.0)
    warnings = [line for line in log.lines(logging.WARNING) if "no records" in line]
    assert len(warnings) in {1, 2}
    assert "WARNING poll() returned no records: no broker could be reached" in warnings[0]
    world.net.peers.update(peers)
    world.fill(1)
    world.read(consumer, 1)
    assert "INFO Brokers can be reached again" in log.lines()


def test_opening_connection_logs_no_warning(world: ConsumerWorld, log: Log) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    for _ in range(10):
        consumer.poll(0.0)
    assert log.lines(logging.WARNING) == []


def test_every_module_logs_with_the_prefix() -> None:
    """Loggers created without the log context would omit the client id."""
    package = Path(kclient.consumer.__file__).parent
    with_own_logger = [
        path.name
        for path in sorted(package.rglob("*.py"))
        if "logging.getLogger" in path.read_text()
    ]
    assert set(with_own_logger) <= {"interceptors.py"}
