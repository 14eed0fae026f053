"""Changes of topics: outcomes, and the wait for this broker's image."""

import math
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.replication.delayed_operation import OperationTimer
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.local_controller import LocalController
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.raft_manager import RaftManager
from kclient.common.broker_errors import TopicExistsError
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.node_registration import UnregisterBrokerRequest
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.support.clients.wire import Wire
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    start_broker,
)

ResponseT = TypeVar("ResponseT", bound=Response)


class Quorum:
    """Controller of a node whose actions run at once."""

    def __init__(self, clock: ManualClock) -> None:
        quorum = MemoryQuorum()
        self.controller = controller_of(quorum, 100, clock)
        quorum.elect(100)
        start_broker(self.controller, 1)

    def submit(self, action: Callable[[QuorumController], None]) -> None:
        action(self.controller)


class Bench:
    """Controller calls of a broker whose image the test publishes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.quorum = Quorum(self.clock)
        self.timer = OperationTimer(SystemTasks().condition())
        self.metadata = MetadataCache(SystemTasks(), self.timer)
        self.controller = LocalController(
            cast("RaftManager", self.quorum), self.metadata, self.clock
        )
        self.outcomes: list[object] = []

    def publish(self) -> None:
        self.metadata.publish(self.quorum.controller.image)

    def pass_time(self, duration_ms: float) -> None:
        self.clock.now += duration_ms
        self.timer.advance(self.clock.now)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_outcome_is_reported_with_the_image_of_the_change(bench: Bench) -> None:
    bench.controller.create_topics([TopicRequest("a")], bench.outcomes.extend)
    assert bench.outcomes == []
    bench.publish()
    assert isinstance(bench.outcomes.pop(), TopicPlan)
    bench.controller.create_partitions([PartitionsRequest("a", 2)], bench.outcomes.extend)
    bench.publish()
    assert isinstance(bench.outcomes.pop(), PartitionsPlan)
    assert len(bench.metadata.image.topics["a"].partitions) == 2
    bench.controller.delete_topics([("a", bytes(16))], bench.outcomes.extend)
    bench.publish()
    assert isinstance(bench.outcomes.pop(), DeletionPlan)


def test_change_without_records_is_reported_at_once(bench: Bench) -> None:
    bench.controller.create_topics([TopicRequest("a")], lambda _plans: None)
    bench.publish()
    bench.controller.create_topics([TopicRequest("a")], bench.outcomes.extend)
    bench.controller.create_topics([TopicRequest("b")], bench.outcomes.extend, validate_only=True)
    refused, validated = bench.outcomes
    assert isinstance(refused, TopicExistsError)
    assert isinstance(validated, TopicPlan)
    assert list(bench.quorum.controller.image.topics) == ["a"]


@pytest.mark.parametrize(
    ("timeout_ms", "wait_ms"), [(0, 0), (300, 300), (60_000, 60_000), (math.inf, 1_000)]
)
def test_outcome_is_reported_without_the_image_at_its_deadline(
    bench: Bench, timeout_ms: float, wait_ms: int
) -> None:
    bench.controller.create_topics(
        [TopicRequest("a")], bench.outcomes.extend, deadline_ms=bench.clock.now + timeout_ms
    )
    if wait_ms:
        bench.pass_time(wait_ms - 1)
        assert bench.outcomes == []
    bench.pass_time(min(wait_ms, 1))
    (outcome,) = bench.outcomes
    assert isinstance(outcome, TopicPlan)
    bench.publish()
    assert len(bench.outcomes) == 1


def test_defect_of_a_caller_does_not_reach_the_quorum(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_outcome: object) -> None:
        raise ValueError("a defect")

    bench.controller.send(UnregisterBrokerRequest(broker_id=9), fail)
    bench.controller.create_topics([TopicRequest("a")], fail)
    bench.publish()
    assert caplog.text.count("ValueError: a defect") == 2


def test_request_reports_its_response_at_the_commit(bench: Bench) -> None:
    bench.controller.send(UnregisterBrokerRequest(broker_id=1), bench.outcomes.append)
    assert len(bench.outcomes) == 1
    assert 1 not in bench.quorum.controller.image.brokers


class Stuck:
    """Broker without threads, in virtual time, that applies no more changes of the metadata."""

    def __init__(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        config = BROKER_CONFIG.parse({"log.dir": str(data_dir), "listeners": "127.0.0.1:0"})
        self.broker = BrokerServer(config, system_runtime()._replace(clock=self.clock))
        self.broker.start(threads=False)
        monkeypatch.setattr(self.broker.storage.metadata, "publish", lambda _image: None)
        self.wire = Wire(self.broker.endpoint.address)

    def pass_time(self, duration_ms: int) -> bytes:
        """Let time pass; return what the broker has sent."""
        self.clock.now += duration_ms
        for _ in range(6):
            self.broker.step(self.clock.monotonic_ms())
        self.wire.socket.setblocking(False)
        try:
            return self.wire.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return b""
        finally:
            self.wire.socket.settimeout(10.0)


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    made = Stuck(tmp_path, monkeypatch)
    with made.wire:
        yield made
    made.broker.kill()


TOPIC = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
MORE = CreatePartitionsTopic(name="t", count=2, assignments=None)
OLD = DeleteTopicState(name="t")


@pytest.mark.parametrize("timeout_ms", [300, 60_000])
def test_response_waits_for_the_image_no_longer_than_its_timeout(
    stuck: Stuck, timeout_ms: int
) -> None:
    def outcome(request: Request, version: int, response: type[ResponseT]) -> ResponseT:
        stuck.wire.send(request, version)
        assert stuck.pass_time(0) == b""
        assert stuck.pass_time(timeout_ms - 1) == b""
        assert stuck.pass_time(1) != b""
        return stuck.wire.receive(response, version)[1]

    create = CreateTopicsRequest(topics=[TOPIC], timeout_ms=timeout_ms)
    assert outcome(create, 7, CreateTopicsResponse).topics[0].error_code == 0
    extend = CreatePartitionsRequest(topics=[MORE], timeout_ms=timeout_ms)
    assert outcome(extend, 3, CreatePartitionsResponse).results[0].error_code == 0
    delete = DeleteTopicsRequest(topics=[OLD], timeout_ms=timeout_ms)
    assert outcome(delete, 6, DeleteTopicsResponse).responses[0].error_code == 0
