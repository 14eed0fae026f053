"""Sockets on loopback: peers that are no brokers, and librdkafka's mock broker."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from kclient.client.client_config import ClientConfig
from kclient.client.client_metadata import ProducerMetadata
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.config_def import ConfigDef
from kclient.common.runtime import Runtime
from kclient.network.system_runtime import system_runtime
from tests.support.processes.hostile_peer import HOSTILE, ClosedPort, HostilePeer


class LiveClient:
    """Network client on real sockets."""

    def __init__(self, servers: str, **config: object) -> None:
        self.runtime: Runtime = system_runtime()
        self.metadata = ProducerMetadata(self.runtime)
        parsed = ConfigDef("client", ClientConfig).parse({"bootstrap_servers": servers, **config})
        self.network: NetworkClient = build_network_client(
            parsed, self.runtime, self.metadata, client_id="test"
        )

    def poll_until(self, done: Callable[[], bool], seconds: float = 20) -> None:
        deadline = self.runtime.clock.monotonic_ms() + seconds * 1000
        while not done():
            now_ms = self.runtime.clock.monotonic_ms()
            assert now_ms < deadline, self.network.bootstrap_error()
            self.network.poll(100, now_ms)


@pytest.mark.fault("P1", "P2", "P3")
@pytest.mark.parametrize("mode", HOSTILE)
def test_error_names_kind_of_peer(mode: str) -> None:
    act, cause = HOSTILE[mode]
    with HostilePeer(act) as peer:
        client = LiveClient(peer.address)
        client.poll_until(lambda: cause in str(client.network.bootstrap_error()))
        assert f"{peer.address}: " in str(client.network.bootstrap_error())
        client.network.close()


@pytest.mark.fault("C1", "C2")
def test_error_names_closed_port_and_unknown_host() -> None:
    with ClosedPort() as closed:
        client = LiveClient(f"{closed.address},no-such-host.invalid:9092")

        def both() -> bool:
            return str(client.network.bootstrap_error()).count(": could not") == 2

        client.poll_until(both)
    text = str(client.network.bootstrap_error())
    assert f"{closed.address}: could not connect: Connection refused" in text
    assert "no-such-host.invalid:9092: could not look up no-such-host.invalid: " in text
    client.network.close()


@pytest.fixture(scope="module")
def foreign_broker() -> Iterator[str]:
    """Start librdkafka's mock broker, whose ApiVersions response v4 has a form of its own."""
    owner = Producer({"test.mock.num.brokers": "2", "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


def test_librdkafka_mock_broker_is_usable(foreign_broker: str) -> None:
    client = LiveClient(foreign_broker)
    client.metadata.add_topic("orders", client.runtime.clock.monotonic_ms())
    client.poll_until(lambda: bool(client.metadata.cluster().topics))
    cluster = client.metadata.cluster()
    assert len(cluster.nodes) == 2
    assert len(cluster.available_partitions_for("orders")) == 4
    waiting = list(cluster.nodes.values())

    def all_ready() -> bool:
        now_ms = client.runtime.clock.monotonic_ms()
        return all(client.network.ready(node, now_ms) for node in waiting)

    client.poll_until(all_ready)
    assert client.network.bootstrap_error() is None
    client.network.close()
