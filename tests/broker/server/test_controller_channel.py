"""Requests to the active controller: where they go, and the wait for this broker's image."""

import math
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.replication.delayed_operation import OperationTimer
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.controller_channel import (
    ControllerChannel,
    are_created,
    error_codes,
)
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.raft_manager import RaftManager
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import (
    BrokerIdNotRegisteredError,
    NotControllerError,
    RequestTimedOutError,
    TopicExistsError,
    code_of,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import Node
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.node_registration import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
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
    """Controller of node 100, whose actions run at once; the test moves the leader."""

    node_id = 100

    def __init__(self, clock: ManualClock) -> None:
        quorum = MemoryQuorum()
        self.controller = controller_of(quorum, 100, clock)
        quorum.elect(100)
        start_broker(self.controller, 1)
        self.leader_id = 100

    def submit(self, action: Callable[[QuorumController], None]) -> None:
        action(self.controller)

    def controller_node(self, node_id: int) -> Node | None:
        return Node(node_id, f"node-{node_id}", 9093) if node_id > 0 else None


class Sender:
    """Connections to other controllers; the test responds."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Request, Callable[[Response | KafkaError], None]]] = []
        self.abandoned: list[int] = []

    def send(
        self,
        node: Node,
        builder: SimpleBuilder,
        on_response: Callable[[Response | KafkaError], None],
        _timeout_ms: float,
    ) -> None:
        self.sent.append((node.id, builder.request, on_response))

    def respond(self, outcome: Response | KafkaError) -> int:
        """Respond to the oldest request; return the node that it was sent to."""
        node_id, _, on_response = self.sent.pop(0)
        on_response(outcome)
        return node_id

    def abandon(self, node_id: int) -> None:
        self.abandoned.append(node_id)

    def wakeup(self) -> None:
        """Do nothing: the test calls `step`."""


class Bench:
    """Channel of a broker whose image the test publishes."""

    def __init__(self, sender: Sender | None = None) -> None:
        self.clock = ManualClock()
        self.quorum = Quorum(self.clock)
        self.timer = OperationTimer(SystemTasks().condition())
        self.metadata = MetadataCache(SystemTasks(), self.timer)
        self.channel = ControllerChannel(
            cast("RaftManager", self.quorum),
            self.metadata,
            self.clock,
            200.0,
            cast("InterBrokerSender | None", sender),
        )
        self.outcomes: list[object] = []

    def create(self, name: str, *, timeout_ms: float = math.inf, **fields: bool) -> None:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        self.channel.change(
            CreateTopicsRequest(topics=[topic], **fields),
            self.outcomes.append,
            are_created,
            self.clock.now + timeout_ms,
        )

    def publish(self) -> None:
        self.metadata.publish(self.quorum.controller.image)

    def pass_time(self, duration_ms: float) -> None:
        self.clock.now += duration_ms
        self.timer.advance(self.clock.now)

    def codes(self) -> list[list[int]]:
        """Return and forget the error codes of the outcomes."""
        found = [error_codes(each) for each in self.outcomes if isinstance(each, Response)]
        self.outcomes.clear()
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_outcome_is_reported_with_the_image_of_the_change(bench: Bench) -> None:
    bench.create("a")
    assert bench.outcomes == []
    bench.publish()
    assert bench.codes() == [[0, 0]]
    more = CreatePartitionsTopic(name="a", count=2, assignments=None)
    bench.channel.change(CreatePartitionsRequest(topics=[more]), bench.outcomes.append)
    assert bench.outcomes == []
    bench.publish()
    assert bench.codes() == [[0, 0]]
    assert len(bench.metadata.image.topics["a"].partitions) == 2
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")])
    bench.channel.change(deletion, bench.outcomes.append)
    bench.publish()
    assert bench.codes() == [[0, 0]]


def test_change_without_records_is_reported_at_once(bench: Bench) -> None:
    bench.create("a")
    bench.publish()
    assert bench.codes() == [[0, 0]]
    bench.create("a")
    bench.create("b", validate_only=True)
    assert bench.codes() == [[0, code_of(TopicExistsError)], [0, 0]]
    assert list(bench.quorum.controller.image.topics) == ["a"]


@pytest.mark.parametrize(
    ("timeout_ms", "wait_ms"), [(0, 0), (300, 300), (60_000, 60_000), (math.inf, 1_000)]
)
def test_outcome_is_reported_without_the_image_at_its_deadline(
    bench: Bench, timeout_ms: float, wait_ms: int
) -> None:
    bench.create("a", timeout_ms=timeout_ms)
    if wait_ms:
        bench.pass_time(wait_ms - 1)
        assert bench.outcomes == []
    bench.pass_time(min(wait_ms, 1))
    assert bench.codes() == [[0, 0]]
    bench.publish()
    assert bench.outcomes == []


def test_defect_of_a_caller_does_not_reach_the_quorum(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_outcome: object) -> None:
        raise ValueError("a defect")

    bench.channel.send(UnregisterBrokerRequest(broker_id=9), fail)
    assert caplog.text.count("ValueError: a defect") == 1


def test_request_reports_its_response_at_the_commit(bench: Bench) -> None:
    bench.channel.send(UnregisterBrokerRequest(broker_id=1), bench.outcomes.append)
    assert len(bench.outcomes) == 1
    assert 1 not in bench.quorum.controller.image.brokers


def test_request_follows_the_active_controller() -> None:
    sender = Sender()
    bench = Bench(sender)
    quorum, step = bench.quorum, bench.channel.step
    quorum.leader_id = -1
    bench.channel.send(UnregisterBrokerRequest(broker_id=1), bench.outcomes.append)
    assert sender.sent == []  # no controller is known
    assert step(bench.clock.now) == 50
    quorum.leader_id = 3
    bench.pass_time(50)
    assert step(bench.clock.now) == math.inf
    assert sender.respond(DisconnectedError("broker 3: closed")) == 3
    bench.pass_time(50)
    step(bench.clock.now)
    moved = UnregisterBrokerResponse(error_code=code_of(NotControllerError))
    assert sender.respond(moved) == 3
    quorum.leader_id = 100
    bench.pass_time(50)
    step(bench.clock.now)
    assert sender.abandoned == [3]  # it may never respond to other requests
    (outcome,) = bench.outcomes
    assert isinstance(outcome, UnregisterBrokerResponse)
    assert 1 not in quorum.controller.image.brokers


def test_request_without_a_controller_fails_at_its_deadline() -> None:
    bench = Bench(Sender())
    bench.quorum.leader_id = -1
    request = UnregisterBrokerRequest(broker_id=1)
    bench.channel.send(request, bench.outcomes.append)
    for _ in range(4):
        assert bench.outcomes == []
        bench.pass_time(50)
        bench.channel.step(bench.clock.now)
    (outcome,) = bench.outcomes
    assert isinstance(outcome, RequestTimedOutError)


def test_error_of_a_remote_controller_is_reported_as_an_error() -> None:
    sender = Sender()
    bench = Bench(sender)
    bench.quorum.leader_id = 3
    bench.channel.send(UnregisterBrokerRequest(broker_id=9), bench.outcomes.append)
    code = code_of(BrokerIdNotRegisteredError)
    sender.respond(UnregisterBrokerResponse(error_code=code, error_message="Broker ID 9"))
    (outcome,) = bench.outcomes
    assert isinstance(outcome, BrokerIdNotRegisteredError)
    assert "Broker ID 9" in str(outcome)


def test_remote_change_is_reported_with_the_image_that_has_it() -> None:
    sender = Sender()
    bench = Bench(sender)
    bench.quorum.leader_id = 3
    bench.create("a")
    topic_id = b"t" * 16
    sender.respond(CreateTopicsResponse(topics=[CreatableTopicResult(name="a", topic_id=topic_id)]))
    assert bench.outcomes == []
    bench.metadata.publish(MetadataImage(topic_names={topic_id: "a"}))
    assert bench.codes() == [[0, 0]]


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
