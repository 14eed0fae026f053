"""Several listeners of one broker: each names its own advertised addresses."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import AdminClient, Consumer, Producer
from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import Request
from kclient.broker.network.socket_server import Acceptor
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    LeaderNotAvailableError,
    ListenerNotFoundError,
    code_of,
)
from kclient.common.errors import ConfigError
from kclient.common.runtime import StreamSocket
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord
from tests.support.clients.wire import Wire

MAP = {"listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"}
TWO = {**MAP, "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.2:0"}
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A broker with two listeners; the advertised address of INTERNAL leads nowhere."""
    advertised = f"INTERNAL://{NOWHERE},EXTERNAL://127.0.0.2:0"
    with EmbeddedCluster(config={**TWO, "advertised.listeners": advertised}) as running:
        yield running


def external(cluster: EmbeddedCluster) -> str:
    return cluster.bootstrap_servers_of("EXTERNAL")


def bound(cluster: EmbeddedCluster, name: str) -> str:
    return next(each.address for each in cluster.broker.bound if each.name == name)


def named_addresses(wire: Wire) -> dict[str, list[str]]:
    """Return the addresses of the broker in the responses that contain one."""
    topics = [MetadataRequestTopic(name="t")]
    metadata = wire.ask(MetadataRequest(topics=topics), 12, MetadataResponse)
    clusters = wire.ask(DescribeClusterRequest(), 1, DescribeClusterResponse)
    batched = FindCoordinatorRequest(coordinator_keys=["g"])
    coordinator = wire.ask(batched, 4, FindCoordinatorResponse).coordinators[0]
    single = wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
    return {
        "Metadata": [f"{each.host}:{each.port}" for each in metadata.brokers],
        "DescribeCluster": [f"{each.host}:{each.port}" for each in clusters.brokers],
        "FindCoordinator": [f"{each.host}:{each.port}" for each in (coordinator, single)],
    }


def network_threads() -> Counter[str]:
    names = (thread.name for thread in threading.enumerate())
    return Counter(n for n in names if n.startswith(("kclient-acceptor-", "kclient-network-")))


def create_offsets_topic(wire: Wire) -> None:
    wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)


def test_responses_name_the_advertised_address_of_the_listener(cluster: EmbeddedCluster) -> None:
    for name, address in (("INTERNAL", NOWHERE), ("EXTERNAL", external(cluster))):
        with Wire(bound(cluster, name)) as wire:
            create_offsets_topic(wire)
            assert named_addresses(wire) == {
                "Metadata": [address],
                "DescribeCluster": [address],
                "FindCoordinator": [address, address],
            }


def test_requests_carry_the_name_of_their_listener() -> None:
    seen: list[str] = []

    def intercept(request: Request, handle: Callable[[Request], None]) -> None:
        seen.append(request.listener_name)
        handle(request)

    with EmbeddedCluster(config=TWO) as cluster:
        cluster.broker.intercept(intercept)
        for name in ("EXTERNAL", "INTERNAL"):
            with Wire(bound(cluster, name)) as wire:
                wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert seen == ["EXTERNAL", "INTERNAL"]


def test_own_clients_stay_on_their_listener(cluster: EmbeddedCluster) -> None:
    servers = external(cluster)
    with AdminClient(bootstrap_servers=servers) as admin:
        nodes = admin.describe_cluster().nodes
        assert [f"{node.host}:{node.port}" for node in nodes] == [servers]
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("own", b"value").result(10)
    with Consumer(
        bootstrap_servers=servers, group_id="own", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["own"])
        assert [record.value for record in consumer.poll(10)] == [b"value"]
        consumer.commit()


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_foreign_clients_stay_on_their_listener(cluster: EmbeddedCluster, name: str) -> None:
    client = FOREIGN_CLIENTS[name](external(cluster))
    topic = f"by-{name}"
    client.produce(topic, [ForeignRecord(value=b"value", partition=0)])
    read = client.consume(topic, 1, group=f"group-{name}")
    assert [record.value for record in read] == [b"value"]


def test_a_listener_that_is_not_advertised_has_no_brokers() -> None:
    config = {**TWO, "advertised.listeners": "EXTERNAL://127.0.0.2:0"}
    with EmbeddedCluster(config=config) as cluster:
        with Wire(external(cluster)) as wire:
            wire.create_topic("t")
            create_offsets_topic(wire)
        with Wire(bound(cluster, "INTERNAL")) as wire:
            for version, error in ((5, LeaderNotAvailableError), (6, ListenerNotFoundError)):
                request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
                response = wire.ask(request, version, MetadataResponse)
                (partition,) = response.topics[0].partitions
                assert response.brokers == []
                assert (partition.error_code, partition.leader_id) == (code_of(error()), -1)
                assert partition.offline_replicas == [1]
            found = wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
            assert found.error_code == code_of(CoordinatorNotAvailableError())
            clusters = wire.ask(DescribeClusterRequest(), 1, DescribeClusterResponse)
            assert clusters.brokers == []
        with pytest.raises(ConfigError, match=r"got 'INTERNAL' .*, expected one of EXTERNAL"):
            cluster.bootstrap_servers_of("INTERNAL")


def test_each_listener_has_threads_of_its_own() -> None:
    before = network_threads()
    with EmbeddedCluster(config={**TWO, "num.network.threads": 2}):
        acceptors = ["kclient-acceptor-INTERNAL", "kclient-acceptor-EXTERNAL"]
        networks = [f"kclient-network-{number}" for number in range(4)]
        assert network_threads() - before == Counter(acceptors + networks)
    assert network_threads() == before


def test_limit_of_connections_is_that_of_all_listeners() -> None:
    config = {**TWO, "max.connections": 2}
    with EmbeddedCluster(config=config) as cluster, ExitStack() as stack:
        internal, other = bound(cluster, "INTERNAL"), bound(cluster, "EXTERNAL")
        first, second = (stack.enter_context(Wire(each)) for each in (internal, other))
        for wire in (first, second):
            wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        third = stack.enter_context(Wire(other))
        third.send(ApiVersionsRequest(), 0)
        third.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            third.receive(ApiVersionsResponse, 0)
        first.socket.close()
        third.socket.settimeout(10)
        assert third.receive(ApiVersionsResponse, 0)[1].error_code == 0


def test_listeners_keep_their_ports_over_a_restart() -> None:
    with EmbeddedCluster(config=TWO) as cluster:
        before = list(cluster.broker.endpoints)
        assert [each.name for each in before] == ["INTERNAL", "EXTERNAL"]
        cluster.restart()
        assert list(cluster.broker.endpoints) == before


def test_the_listener_that_cannot_be_bound_is_named() -> None:
    with EmbeddedCluster() as first:
        taken = first.bootstrap_servers
        config = {**TWO, "listeners": f"EXTERNAL://127.0.0.1:0,INTERNAL://{taken}"}
        with pytest.raises(ConfigError, match=f"listeners: cannot listen on {taken}"):
            EmbeddedCluster(config=config).start()


def test_a_broker_without_threads_serves_all_listeners(tmp_path: Path) -> None:
    runtime = system_runtime()
    broker = BrokerServer(BROKER_CONFIG.parse({**TWO, "log.dir": str(tmp_path)}), runtime)
    broker.start(threads=False)
    try:
        for endpoint in broker.endpoints:
            with Wire(endpoint.address) as wire:
                sent = wire.send(ApiVersionsRequest(), 0)
                for _ in range(4):
                    broker.step(runtime.clock.monotonic_ms())
                assert wire.receive(ApiVersionsResponse, 0)[0] == sent
    finally:
        broker.stop()


class _Accepting(Processor):
    """A processor that only keeps its new connections."""

    def __init__(self) -> None:
        self.connections: list[StreamSocket] = []

    def accept(self, connection: StreamSocket, address: str) -> bool:
        self.connections.append(connection)
        return True


def is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


def test_throttled_connection_is_closed_after_the_throttle_time() -> None:
    net = system_runtime().net
    quotas = ConnectionQuotas(10, 10, CreationRate(100), threading.Condition())
    quotas.configure_addresses({"127.0.0.1": 0.1})  # one connection in the window
    listener, processor = net.listen(("127.0.0.1", 0), 10), _Accepting()
    acceptor = Acceptor("PLAINTEXT", listener, net.poller(), [processor], quotas)
    with ExitStack() as stack:
        stack.callback(acceptor.close)
        clients = []
        for _ in range(3):
            client = stack.enter_context(socket.create_connection(listener.local_address()))
            client.setblocking(False)
            clients.append(client)
            acceptor.run_once(1000.0, 1000.0)
        stack.callback(processor.connections[0].close)
        assert (len(processor.connections), quotas.total()) == (1, 1)
        acceptor.run_once(1999.0, 0.0)
        assert [is_open(each) for each in clients] == [True, True, True]
        acceptor.run_once(2000.0, 0.0)
        assert [is_open(each) for each in clients] == [True, False, False]
