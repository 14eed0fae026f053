"""Bootstrap: error for each address, bounds on connection attempts, rebootstrap."""

import math
from collections.abc import Callable

import pytest

from kclient.client.node_connections import name_of
from kclient.common.errors import BootstrapError
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import ClientWorld
from tests.support.clients.scripted_broker import ScriptedBroker


class Hostile:
    """Peer that responds to the first bytes with one action."""

    def __init__(self, act: Callable[[VirtualSocket], None]) -> None:
        self._act = act

    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        self._act(socket)


def says(words: bytes) -> Callable[[VirtualSocket], None]:
    return lambda socket: socket.deliver(words)


def ends(failure: int) -> Callable[[VirtualSocket], None]:
    return lambda socket: socket.end(failure)


HOSTILE = {
    "http": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the peer sent HTTP"),
    "tls": (says(b"\x15\x03\x03\x00\x02\x02\x46"), "the peer sent a TLS alert"),
    "ssh": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "the peer sent SSH"),
    "smtp": (says(b"220 mail.example.org\r\n"), "the peer sent text"),
    "negative": (says(b"\xff\xff\xff\xff"), "frame size: got -1"),
    "huge": (says(b"\x7f\xff\xff\xff"), "frame size: got 2147483647"),
    "empty": (says(b"\x00\x00\x00\x00"), "response header: got 0 bytes"),
    "correlation": (says(b"\x00\x00\x00\x06\x00\x00\x30\x39\x00\x00"), "correlation id: got 12345"),
    "garbage": (says(b"\x00\x00\x00\x0a" + b"\xfe" * 10), "correlation id: got -16843010"),
    "eof": (ends(0), "the peer closed the connection"),
    "reset": (ends(104), "Connection reset by peer"),
    "silence": (says(b""), "no response to API_VERSIONS within 1500 ms"),
    "cut": (
        lambda socket: (socket.deliver(b"\x00\x00\x01\x00abc"), socket.end())[-1],
        "the peer closed the connection after 3 of a frame's 256 bytes",
    ),
}


@pytest.mark.fault("C12", "P1", "P2", "P3")
@pytest.mark.parametrize("mode", HOSTILE)
def test_error_names_peer_and_attempts_are_backed_off(mode: str) -> None:
    act, cause = HOSTILE[mode]
    world = ClientWorld(request_timeout_ms=1500)
    world.serve(lambda: Hostile(act))
    world.poll_for(5000)
    error = world.client.bootstrap_error()
    assert isinstance(error, BootstrapError)
    assert str(error).startswith("no broker could be reached: 10.0.0.1:9092: ")
    assert cause in str(error)
    assert error.__cause__ is not None
    assert len(world.net.connects) - 1 <= 8
    world.poll_for(10_000)
    assert len(world.net.connects) - 1 <= 8 + 12
    assert world.net.open_sockets <= 2


@pytest.mark.fault("C1", "C2", "C3")
def test_error_has_cause_of_each_address() -> None:
    world = ClientWorld(
        ("10.0.0.1", 9092), ("nowhere.example", 9092), ("10.0.0.3", 1), ("10.0.0.4", 9092)
    )
    world.serve(lambda: Hostile(says(b"SSH-2.0-x")), 1)
    world.net.black_holes.add(("10.0.0.4", 9092))
    world.poll_for(20_000)
    text = str(world.client.bootstrap_error())
    assert "10.0.0.1:9092: the peer sent SSH" in text
    assert "nowhere.example:9092: could not look up nowhere.example: Name or service" in text
    assert "10.0.0.3:1: could not connect: Connection refused" in text
    assert "10.0.0.4:9092: could not connect within 1" in text
    assert "attempts)" in text


@pytest.mark.parametrize(
    ("dead", "state"),
    [
        ("silent", "connected, but the peer has sent no response"),
        ("black hole", "the connection is not established"),
    ],
)
def test_error_has_state_of_pending_attempt(dead: str, state: str) -> None:
    world = ClientWorld()
    world.serve(lambda: Hostile(says(b"")))
    if dead == "black hole":
        world.net.black_holes.add(("10.0.0.1", 9092))
    world.poll_for(500)
    error = world.client.bootstrap_error()
    assert str(error) == f"no broker could be reached: 10.0.0.1:9092: {state}"


@pytest.mark.fault("C1", "C2", "C3", "C4")
@pytest.mark.parametrize("dead", ["refused", "black hole", "silent", "unknown name"])
def test_next_bootstrap_server_is_tried_after_dead_one(dead: str) -> None:
    first = "nowhere.example" if dead == "unknown name" else "10.0.0.9"
    world = ClientWorld((first, 9092), ("10.0.0.1", 9092))
    if dead == "black hole":
        world.net.black_holes.add(("10.0.0.9", 9092))
    if dead == "silent":
        world.serve(lambda: Hostile(says(b"")), 9)
    world.broker()
    world.poll_until(world.bootstrapped, within_ms=3000)
    assert world.client.bootstrap_error() is None


@pytest.mark.fault("C2")
def test_hanging_look_up_does_not_block_poll() -> None:
    world = ClientWorld(
        ("kafka.example", 9092), ("10.0.0.1", 9092), socket_connection_setup_timeout_ms=1000
    )
    world.home.process.net.resolve_ms = math.inf
    began_ms = world.now_ms
    world.poll(100)
    assert world.now_ms <= began_ms + 100
    assert "kafka.example:9092: the look-up of kafka.example has not ended" in str(
        world.client.bootstrap_error()
    )
    world.poll_for(3000)
    assert "kafka.example:9092: could not look up kafka.example within 1" in str(
        world.client.bootstrap_error()
    )
    world.broker()
    world.poll_until(world.bootstrapped, within_ms=3000)


@pytest.mark.fault("C2")
def test_setup_timeout_includes_look_up() -> None:
    setup_ms = 1000
    world = ClientWorld(("kafka.example", 9092), socket_connection_setup_timeout_ms=setup_ms)
    world.net.names["kafka.example"] = ["10.0.0.1"]
    world.broker()
    world.home.process.net.resolve_ms = 900.0
    world.poll_until(world.bootstrapped, within_ms=920)
    world = ClientWorld(("kafka.example", 9092), socket_connection_setup_timeout_ms=setup_ms)
    world.net.names["kafka.example"] = ["10.0.0.1"]
    world.net.black_holes.add(("10.0.0.1", 9092))
    world.home.process.net.resolve_ms = 900.0
    world.poll_for(1300)
    assert "could not connect within 1" in str(world.client.bootstrap_error())


@pytest.mark.fault("C2")
def test_all_addresses_are_tried_before_next_look_up() -> None:
    world = ClientWorld(("kafka.example", 9092))
    world.net.names["kafka.example"] = ["10.0.0.7", "10.0.0.8"]
    world.poll_for(2000)
    tried = [address[0] for _, address in world.net.connects]
    assert tried[:4] == ["10.0.0.7", "10.0.0.8", "10.0.0.7", "10.0.0.8"]
    assert world.net.resolved.count("kafka.example") >= 2
    world.net.names["kafka.example"] = ["10.0.0.1"]
    world.broker()
    world.poll_until(world.bootstrapped, within_ms=3000)


@pytest.mark.fault("C14")
def test_error_names_wrong_advertised_address() -> None:
    world = ClientWorld()
    world.broker(brokers=[Node(5, "internal.example", 19092)])
    world.poll_until(world.bootstrapped)
    world.client.ready(Node(5, "internal.example", 19092), world.now_ms)
    text = str(world.client.bootstrap_error())
    assert "internal.example:19092 (advertised by broker 5): could not look up" in text


@pytest.mark.fault("P12")
def test_metadata_response_without_brokers_is_ignored(world: ClientWorld) -> None:
    broker = world.broker()
    broker.brokers = []
    world.poll_for(1000)
    assert world.metadata.cluster().is_bootstrap
    assert len([header for header in broker.asked if header.api_key is ApiKey.METADATA]) < 8
    broker.brokers = [broker.node]
    world.poll_until(world.bootstrapped)


@pytest.mark.fault("C14")
def test_client_rebootstraps_when_no_known_broker_is_left(world: ClientWorld) -> None:
    first = world.broker(1)
    moved = world.broker(2)
    first.brokers = [moved.node]
    first.topics["orders"] = moved.topics["orders"] = [2]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(world.bootstrapped)
    world.connect(moved.node)
    world.net.stop(("10.0.0.2", 9092))
    replaced = world.broker(3)
    first.brokers = [replaced.node]
    first.topics["orders"] = [3]
    world.poll_until(lambda: 3 in world.metadata.cluster().nodes)
    assert world.metadata.cluster().partition_count("orders") == 1


@pytest.mark.fault("C12", "P12")
def test_partitions_stay_known_while_cluster_is_down(world: ClientWorld) -> None:
    broker = world.broker()
    broker.topics["orders"] = [1, 1, 1]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(lambda: bool(world.metadata.cluster().topics))
    world.connect(broker.node)
    world.net.stop(("10.0.0.1", 9092))
    world.poll_for(30_000)
    cluster = world.metadata.cluster()
    assert cluster.is_bootstrap
    assert cluster.partition_count("orders") == 3
    assert cluster.available_partitions_for("orders") == []
    world.net.peers["10.0.0.1", 9092] = lambda: broker
    world.poll_until(world.bootstrapped, within_ms=3000)
    assert len(world.metadata.cluster().available_partitions_for("orders")) == 3


def test_rebootstrap_required_error_makes_client_rebootstrap(world: ClientWorld) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)

    def start_over(header: RequestHeader, request: Request) -> MetadataResponse:
        del broker.responses[ApiKey.METADATA]
        return MetadataResponse(error_code=129)

    broker.responses[ApiKey.METADATA] = start_over
    world.metadata.request_update()
    world.poll_until(lambda: not world.bootstrapped())
    assert world.client.connection_failed(broker.node)
    world.poll_until(world.bootstrapped)


def test_client_rebootstraps_after_trigger_time_without_metadata() -> None:
    world = ClientWorld(request_timeout_ms=1000, metadata_recovery_rebootstrap_trigger_ms=5000)
    stale = world.broker(2)
    good = world.broker(1, brokers=[stale.node])
    world.poll_until(world.bootstrapped)
    stale.responses[ApiKey.METADATA] = lambda *_: None
    good.brokers = [good.node]
    world.metadata.request_update()
    started_ms = world.now_ms
    world.poll_until(lambda: 1 in world.metadata.cluster().nodes)
    assert 5000 < world.now_ms - started_ms < 9000


def test_client_without_rebootstrap_waits_for_known_brokers() -> None:
    world = ClientWorld(metadata_recovery_strategy="none")
    broker: ScriptedBroker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    world.net.stop(("10.0.0.1", 9092))
    world.poll_for(10_000)
    assert list(world.metadata.cluster().nodes) == [1]
    world.net.peers["10.0.0.1", 9092] = lambda: broker
    world.poll_until(lambda: world.client.ready(broker.node, world.now_ms))


@pytest.mark.parametrize(
    ("node_id", "name"),
    [
        (-1, "bootstrap server"),
        (0, "broker 0"),
        (7, "broker 7"),
        (2**31 - 1 - 7, "broker 7 as coordinator"),
    ],
)
def test_name_of_node(node_id: int, name: str) -> None:
    assert name_of(node_id) == name
