"""Network client on the in-memory network, in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from kclient.client.client_config import ClientConfig
from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.client.network_client import NetworkClient
from kclient.common.runtime import Address
from kclient.common.types import Node
from kclient.network.selector import Selector
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.metadata import (
    MetadataRequest,
)
from kclient.testing.virtual import Peer
from tests.client.metadata_world import MetadataWorld
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.virtual_home import VirtualHome

NODE = Node(1, "10.0.0.1", 9092)


class ClientWorld:
    """Client with its metadata and brokers."""

    def __init__(self, *bootstrap: Address, max_in_flight: int = 5, **options: Any) -> None:
        servers = bootstrap or (("10.0.0.1", 9092),)
        self.home = VirtualHome()
        self.runtime, self.net = self.home.runtime, self.home.net
        self.metadata = ProducerMetadata(self.runtime)
        self.selector = Selector(self.runtime.net, self.runtime.clock)
        self.client = NetworkClient(
            self.selector,
            self.metadata,
            self.runtime,
            ClientConfig(bootstrap_servers=servers, **options),
            max_in_flight=max_in_flight,
        )
        self.metadata.bootstrap(servers)
        self.outcomes: list[ClientResponse] = []

    @property
    def now_ms(self) -> float:
        return self.net.clock.now_ms

    def broker(self, number: int = 1, brokers: list[Node] | None = None) -> ScriptedBroker:
        """Start a broker at 10.0.0.<number>:9092."""
        node = Node(number, f"10.0.0.{number}", 9092)
        broker = ScriptedBroker(node, brokers)
        self.net.peers[node.host, node.port] = lambda: broker
        return broker

    def serve(self, make: Callable[[], Peer], number: int = 1) -> None:
        self.net.peers[f"10.0.0.{number}", 9092] = make

    def poll(self, timeout_ms: float = 1000) -> None:
        self.outcomes += self.client.poll(timeout_ms, self.now_ms)

    def poll_until(self, done: Callable[[], bool], within_ms: float = 60_000) -> None:
        deadline = self.now_ms + within_ms
        while not done():
            assert self.now_ms < deadline, self.client.bootstrap_error()
            self.poll(deadline - self.now_ms)

    def poll_for(self, duration_ms: float) -> None:
        deadline = self.now_ms + duration_ms
        while self.now_ms < deadline:
            self.poll(deadline - self.now_ms)

    def bootstrapped(self) -> bool:
        return not self.metadata.cluster().is_bootstrap

    def connect(self, node: Node) -> None:
        self.poll_until(lambda: self.client.ready(node, self.now_ms))

    def ask(self, node_id: int = 1, request: Request | None = None, **options: float) -> None:
        self.client.send(
            self.client.new_client_request(
                str(node_id),
                SimpleBuilder(request or MetadataRequest(topics=[])),
                self.now_ms,
                request_timeout_ms=options.get("timeout_ms"),
            ),
            self.now_ms,
        )


@pytest.fixture
def world() -> ClientWorld:
    return ClientWorld()


@pytest.fixture
def broker(world: ClientWorld) -> ScriptedBroker:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    return broker


def silence(header: RequestHeader, request: Request) -> None:
    return None


@pytest.fixture
def known() -> MetadataWorld:
    return MetadataWorld()
