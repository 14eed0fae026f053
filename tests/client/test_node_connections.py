"""Bootstrap: error for each address, and bounds on connection attempts."""

import math
from collections.abc import Callable

import pytest

from kclient.client.node_connections import name_of
from kclient.common.errors import BootstrapError
from kclient.common.types import Node
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import ClientWorld


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
