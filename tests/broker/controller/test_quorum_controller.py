"""The controller on a quorum: commits, failovers, deadlines, periodic tasks."""

from collections.abc import Iterator
from typing import Any

import pytest

from kclient.broker.controller import quorum_controller
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.controller.topic_control import PartitionsRequest, TopicPlan, TopicRequest
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.broker.raft.raft_types import NO_NODE, CommittedBatch, OffsetAndEpoch
from kclient.broker.raft.snapshots import SnapshotReader
from kclient.common.broker_errors import (
    BrokerIdNotRegisteredError,
    DuplicateBrokerRegistrationError,
    KafkaStorageError,
    NotControllerError,
    PolicyViolationError,
    RequestTimedOutError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from kclient.protocol.messages.node_registration import (
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    controller_with,
    create_topic,
    outcome_of,
    records_of,
    start_broker,
)

NO_ID = bytes(16)


def two_controllers(**settings: Any) -> tuple[MemoryQuorum, Any, Any]:
    """Return a quorum with two controllers, the first of which is active, and a broker."""
    quorum, clock = MemoryQuorum(), ManualClock()
    first, second = (controller_of(quorum, node, clock, node, **settings) for node in (100, 101))
    quorum.elect(100)
    start_broker(first, 1)
    return quorum, first, second


def test_single_voter_responds_before_the_call_returns() -> None:
    controller, _ = controller_with(1)
    done: list[Any] = []
    controller.create_topics([TopicRequest("a"), TopicRequest("a")], done.extend)
    assert isinstance(done[0], TopicPlan)
    assert list(controller.image.topics) == ["a"]
    done.clear()
    controller.create_partitions([PartitionsRequest("a", 3)], done.extend)
    assert len(controller.image.topics["a"].partitions) == 3
    controller.create_topics([TopicRequest("b")], done.extend, validate_only=True)
    assert "b" not in controller.image.topics
    controller.delete_topics([("a", NO_ID), ("b", NO_ID)], done.extend)
    assert isinstance(done[-1], UnknownTopicOrPartitionError)
    assert controller.image.topics == {}


def test_response_waits_for_the_commit() -> None:
    quorum, first, second = two_controllers()
    quorum.commits_at_once = False
    done: list[str] = []
    first.create_topics([TopicRequest("a")], lambda _plans: done.append("a"))
    # This one reads what is not committed yet, so it waits too.
    first.create_topics([TopicRequest("a")], lambda plans: done.append(type(plans[0]).__name__))
    first.handle(UnregisterBrokerRequest(broker_id=9), lambda error: done.append(str(error)))
    assert done == ["Broker ID 9 is not currently registered"]
    assert "a" not in first.image.topics
    quorum.commit()
    assert done[1:] == ["a", "TopicExistsError"]
    assert first.image.topics == second.image.topics
    assert "a" in second.image.topics


def test_loss_of_leadership_reverts_and_fails_waiting_requests() -> None:
    quorum, first, second = two_controllers()
    quorum.commits_at_once = False
    done: list[Any] = []
    first.create_topics([TopicRequest("a")], done.extend)
    first.create_topics([TopicRequest("b")], done.extend)
    quorum.elect(101, keep=1)
    assert [type(each) for each in done] == [NotControllerError] * 2
    assert str(done[0]) == "The active controller appears to be node 101."
    assert (first.is_active, second.is_active, second.active_epoch) == (False, True, 2)
    assert list(first.image.topics) == list(second.image.topics) == ["a"]
    assert first.image.topics == second.image.topics
    with pytest.raises(NotControllerError):
        outcome_of(first, UnregisterBrokerRequest(broker_id=1))
    quorum.commits_at_once = True
    create_topic(second, "b", {0: [1]})
    assert first.image.topics == second.image.topics


@pytest.mark.parametrize("committed", range(5))
def test_transaction_is_all_or_nothing_over_a_failover(committed: int) -> None:
    quorum, first, second = two_controllers(max_records=2)
    quorum.commits_at_once = False
    done: list[Any] = []
    first.create_topics([TopicRequest("a", 4)], done.extend)
    assert len(quorum.batches) >= 5
    quorum.commit(committed)
    assert "a" not in first.image.topics
    quorum.elect(101)
    quorum.commit()
    assert second.is_active
    assert [type(each) for each in done] == [NotControllerError]
    assert first.image.topics == second.image.topics == {}
    aborts = [
        each
        for batch in quorum.batches
        for each in records_of(batch)
        if isinstance(each, AbortTransactionRecord)
    ]
    assert len(aborts) == (committed > 0)
    quorum.commits_at_once = True
    assert isinstance(create_topic(second, "a", {number: [1] for number in range(4)}), bytes)
    assert len(first.image.topics["a"].partitions) == 4


def test_restarted_node_registers_its_broker_at_once() -> None:
    quorum, clock = MemoryQuorum(), ManualClock()
    first, second = (controller_of(quorum, node, clock, node) for node in (1, 101))
    quorum.elect(1)
    epoch = start_broker(first, 1)
    quorum.elect(101)
    with pytest.raises(DuplicateBrokerRegistrationError):
        start_broker(second, 1, incarnation=2)
    quorum.elect(1)
    assert start_broker(first, 1, incarnation=2) > epoch


def test_failed_append_resigns() -> None:
    quorum, first, _ = two_controllers()
    quorum.fails = True
    done: list[Any] = []
    first.create_topics([TopicRequest("a")], done.extend)
    assert isinstance(done[0], NotControllerError)
    assert (first.is_active, quorum.leader) == (False, NO_NODE)
    quorum.fails = False
    quorum.elect(100)
    create_topic(first, "a", {0: [1]})


def test_disk_failure_ends_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    quorum, first, _ = two_controllers()

    def full(*_arguments: Any) -> int:
        raise KafkaStorageError("no space left")

    monkeypatch.setattr(quorum, "append", full)
    done: list[Any] = []
    with pytest.raises(KafkaStorageError, match="no space left"):
        first.create_topics([TopicRequest("a")], done.extend)
    assert done == []
    assert "a" not in first.image.topics


def test_defect_in_a_plan_fails_only_its_request() -> None:
    controller, _ = controller_with(1)
    done: list[Any] = []

    def plan(_view: Any) -> Any:
        raise ValueError("a defect")

    controller.write(plan, done.append)
    assert isinstance(done[0], UnknownServerError)
    create_topic(controller, "a", {0: [1]})


def test_task_that_cannot_be_written_is_retried_after_a_backoff(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quorum, clock = MemoryQuorum(), ManualClock()
    controller = controller_of(quorum, 100, clock)
    quorum.elect(100)
    start_broker(controller, 1)
    clock.now += 60_000

    def refuse(*_arguments: Any) -> int:
        raise PolicyViolationError("too many records for a batch, and no transactions")

    with monkeypatch.context() as patch:
        patch.setattr(quorum_controller, "batches_of", refuse)
        controller.poll()
    assert controller.next_deadline_ms == clock.now + 500
    controller.poll()
    assert not controller.image.brokers[1].fenced
    clock.now += 500
    controller.poll()
    assert controller.image.brokers[1].fenced


def test_request_after_its_deadline() -> None:
    controller, _ = controller_with(1)
    done: list[Any] = []
    now: float = ManualClock().now
    controller.handle(UnregisterBrokerRequest(broker_id=1), done.append, now)
    assert isinstance(done[0], RequestTimedOutError)
    with pytest.raises(BrokerIdNotRegisteredError):
        outcome_of(controller, UnregisterBrokerRequest(broker_id=9))


def test_idle_controller_writes_no_op_records() -> None:
    quorum, clock = MemoryQuorum(), ManualClock()
    controller = controller_of(quorum, 100, clock)
    deadlines = [controller.next_deadline_ms]
    quorum.elect(100)
    deadlines.append(controller.next_deadline_ms)
    assert deadlines == [None, clock.now + 500]
    clock.now += 500
    controller.poll()
    assert isinstance(records_of(quorum.batches[-1])[0], NoOpRecord)
    end = quorum.next_offset
    controller.poll()
    assert quorum.next_offset == end


def test_standby_loads_a_snapshot() -> None:
    level = MetadataVersion.of_level(25)
    value = level.encode(TopicRecord(name="a", topic_id=b"a" * 16))
    begin = level.encode(BeginTransactionRecord())

    class Snapshot(SnapshotReader):
        """Snapshot with one topic."""

        def __init__(self) -> None:
            self.snapshot_id = OffsetAndEpoch(8, 1)

        @property
        def last_contained_log_timestamp(self) -> int:
            return 0

        def batches(self) -> Iterator[CommittedBatch]:
            yield CommittedBatch(0, 0, 1, 0, 0, (value,))

    lone = controller_of(MemoryQuorum(), 102, ManualClock())
    lone.handle_commit([CommittedBatch(0, 0, 1, 0, 0, (begin,))])
    lone.handle_load_snapshot(Snapshot())
    assert (lone.image.offset, list(lone.image.topics)) == (7, ["a"])
    lone.handle_commit([CommittedBatch(8, 8, 1, 0, 0, (begin,))])
    assert list(lone.image.topics) == ["a"]


def test_committed_record_that_cannot_be_applied_is_raised() -> None:
    lone = controller_of(MemoryQuorum(), 102, ManualClock())
    with pytest.raises(KafkaError):
        lone.handle_commit([CommittedBatch(0, 0, 1, 0, 0, (b"\x01\x7f\x00",))])


def test_requests_with_a_planner() -> None:
    controller, _ = controller_with()
    planners: RequestPlanners = controller._planners
    assert {BrokerRegistrationRequest, UnregisterBrokerRequest} <= planners.requests
