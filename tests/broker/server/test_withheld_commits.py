"""No response and no visible record before the commit, over connections to a whole broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS, PartitionRegistration
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.served_api import BrokerServices
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.node_registration import BrokerRegistrationResponse
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.clients.wire import Wire, batch, fetch_request
from tests.support.virtual.controller_calls import BrokerCalls, create_topic
from tests.support.virtual.memory_quorum import heartbeat, registration

LEADER, FOLLOWER = 1, 2
STEPS = 6
ResponseT = TypeVar("ResponseT", bound=Response)


class Replicated:
    """Broker without threads; its topics have an in-sync follower, which the test drives."""

    def __init__(self, data_dir: Path) -> None:
        config = BROKER_CONFIG.parse({"log.dir": str(data_dir), "listeners": "127.0.0.1:0"})
        self.runtime = system_runtime()
        self.broker = BrokerServer(config, self.runtime)
        self.broker.start(threads=False)
        services = self.broker.services
        register_follower(services)
        registration = PartitionRegistration((LEADER, FOLLOWER), (LEADER, FOLLOWER), LEADER, 0, 1)
        for topic in ("t", CONSUMER_OFFSETS):
            create_topic(BrokerCalls(services), TopicRequest(topic, assignments={0: [LEADER]}))
            partition = services.replica_manager.partition(TopicPartition(topic, 0))
            partition.apply(registration)

    def step(self) -> None:
        for _ in range(STEPS):
            self.broker.step(self.runtime.clock.monotonic_ms())

    def ask(
        self, wire: Wire, request: Request, version: int, response: type[ResponseT]
    ) -> ResponseT:
        wire.send(request, version)
        self.step()
        return wire.receive(response, version)[1]

    def replicate(self, wire: Wire, topic: str) -> None:
        """Fetch as the follower: first all records, then from their end."""
        log = self.broker.services.replica_manager.partition(TopicPartition(topic, 0)).log
        for offset in (0, log.log_end_offset):
            request = fetch_request(topic, offset, max_wait_ms=0)
            request.replica_id = FOLLOWER
            (found,) = self.ask(wire, request, 12, FetchResponse).responses[0].partitions
            assert found.error_code == 0
            assert (len(found.records or b"") > 0) is (offset == 0)


def register_follower(services: BrokerServices) -> None:
    """Register and unfence the follower."""
    epochs: list[int] = []

    def on_registered(response: BrokerRegistrationResponse) -> None:
        epochs.append(response.broker_epoch)

    request = registration(FOLLOWER, cluster_id=services.cluster_id)
    services.controller.send(request, on_registered)
    services.controller.send(heartbeat(FOLLOWER, epochs[0]), lambda _response: None)
    assert len(services.metadata.image.live_brokers()) == 2


def assert_no_response(wire: Wire) -> None:
    wire.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        wire.socket.recv(1)
    wire.socket.setblocking(True)


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    made = Replicated(tmp_path)
    yield made
    made.broker.stop()


@pytest.fixture
def wire(replicated: Replicated) -> Iterator[Wire]:
    with Wire(replicated.broker.endpoint.address) as connection:
        yield connection


@pytest.fixture
def other(replicated: Replicated) -> Iterator[Wire]:
    with Wire(replicated.broker.endpoint.address) as connection:
        yield connection


def test_produce_and_fetch_wait_for_follower(
    replicated: Replicated, wire: Wire, other: Wire
) -> None:
    data = [PartitionProduceData(index=0, records=batch([b"v"]))]
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )
    wire.send(request, 9)
    replicated.step()
    assert_no_response(wire)
    read = fetch_request("t", 0, max_wait_ms=0)
    (found,) = replicated.ask(other, read, 12, FetchResponse).responses[0].partitions
    assert (found.high_watermark, found.records or b"") == (0, b"")
    replicated.replicate(other, "t")
    _, response = wire.receive(ProduceResponse, 9)
    assert response.responses[0].partition_responses[0].base_offset == 0
    (found,) = replicated.ask(other, read, 12, FetchResponse).responses[0].partitions
    assert found.high_watermark == 1


def test_offset_commit_waits_for_follower(replicated: Replicated, wire: Wire, other: Wire) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    wire.send(OffsetCommitRequest(group_id="g", topics=[topic]), 6)
    replicated.step()
    assert_no_response(wire)
    read = OffsetFetchRequest(group_id="g", topics=None)
    assert replicated.ask(other, read, 6, OffsetFetchResponse).topics == []
    replicated.replicate(other, CONSUMER_OFFSETS)
    _, response = wire.receive(OffsetCommitResponse, 6)
    assert response.topics[0].partitions[0].error_code == 0
    (found,) = replicated.ask(other, read, 6, OffsetFetchResponse).topics
    assert found.partitions[0].committed_offset == 5
