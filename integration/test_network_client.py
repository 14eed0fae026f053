"""The network client alone against Apache Kafka: versions, metadata, requests in flight."""

from collections.abc import Callable, Iterator

import pytest

from integration.harness.running_kafka import RunningKafka
from kclient.client.client_config import ClientConfig
from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.client.network_client_builder import build_network_client
from kclient.common.config_def import ConfigDef
from kclient.common.types import Node
from kclient.network.system_runtime import system_runtime
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.protocol.registry import REQUESTS


class LiveClient:
    """A network client with its metadata, driven by the test."""

    def __init__(self, bootstrap: str) -> None:
        self.runtime = system_runtime()
        self.metadata = ProducerMetadata(self.runtime)
        config = ConfigDef("client", ClientConfig).parse({"bootstrap_servers": bootstrap})
        self.network = build_network_client(
            config, self.runtime, self.metadata, client_id="network-test"
        )

    def now_ms(self) -> float:
        return self.runtime.clock.monotonic_ms()

    def poll_until(self, done: Callable[[], bool]) -> None:
        deadline = self.now_ms() + 30_000
        while not done():
            assert self.now_ms() < deadline, self.network.bootstrap_error()
            self.network.poll(100, self.now_ms())

    def any_node(self) -> Node:
        self.poll_until(lambda: not self.metadata.cluster().is_bootstrap)
        node = next(iter(self.metadata.cluster().nodes.values()))
        self.poll_until(lambda: self.network.ready(node, self.now_ms()))
        return node


@pytest.fixture
def client(kafka: RunningKafka) -> Iterator[LiveClient]:
    client = LiveClient(kafka.bootstrap)
    yield client
    client.network.close()


def test_api_versions_are_negotiated(client: LiveClient) -> None:
    node = client.any_node()
    versions = client.network.api_versions.get(str(node.id))
    assert versions is not None
    for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.JOIN_GROUP):
        ours = REQUESTS[key]
        assert versions.latest_usable_version(key, ours.min_version, ours.max_version) > 0
    assert client.network.bootstrap_error() is None


def test_metadata_describes_topics(client: LiveClient, topic: Callable[..., str]) -> None:
    name = topic(partitions=3)
    client.metadata.add_topic(name, client.now_ms())
    client.poll_until(lambda: len(client.metadata.cluster().available_partitions_for(name)) == 3)
    cluster = client.metadata.cluster()
    assert cluster.cluster_id
    assert cluster.controller is not None
    assert cluster.topic_id(name)
    assert all(info.leader_epoch >= 0 for info in cluster.partitions_for(name))


def test_responses_arrive_in_order_with_five_in_flight(client: LiveClient) -> None:
    node = client.any_node()
    outcomes: list[ClientResponse] = []
    sent = 0
    while len(outcomes) < 500:
        now_ms = client.now_ms()
        if sent < 500 and client.network.ready(node, now_ms):
            request = client.network.new_client_request(
                str(node.id), SimpleBuilder(MetadataRequest(topics=[])), now_ms
            )
            client.network.send(request, now_ms)
            sent += 1
            outcomes += client.network.poll(0, now_ms)
        else:
            outcomes += client.network.poll(1000, now_ms)
    assert all(outcome.body(MetadataResponse).brokers for outcome in outcomes)
    ids = [outcome.correlation_id for outcome in outcomes]
    assert ids == sorted(ids)
