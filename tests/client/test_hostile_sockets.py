"""Real sockets on loopback: peers that are no brokers, and brokers of another make."""

import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from kclient.client.client_config import common_keys
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.client.producer_metadata import ProducerMetadata
from kclient.common.config_def import ConfigDef
from kclient.common.runtime import Runtime
from kclient.network.system_runtime import system_runtime

Act = Callable[[socket.socket], None]


def says(words: bytes) -> Act:
    return lambda peer: peer.sendall(words)


def resets(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trickles(peer: socket.socket) -> None:
    for byte in b"HTTP":
        peer.sendall(bytes([byte]))


HOSTILE: dict[str, tuple[Act, str]] = {
    "http": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the peer answered with HTTP"),
    "tls": (says(b"\x15\x03\x03\x00\x02\x02\x46"), "the peer answered with a TLS alert"),
    "ssh": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "the peer answered with SSH"),
    "negative": (says(b"\xff\xff\xff\xff"), "frame size: got -1"),
    "huge": (says(b"\x7f\xff\xff\xff"), "frame size: got 2147483647"),
    "correlation": (says(b"\x00\x00\x00\x06\x00\x00\x30\x39\x00\x00"), "correlation id: got 12345"),
    "cut": (says(b"\x00\x00\x01\x00abc"), "closed the connection after 3 of a frame's 256 bytes"),
    "eof": (lambda _: None, "the peer closed the connection"),
    "reset": (resets, "Connection reset by peer"),
    "bytewise": (trickles, "the peer answered with HTTP"),
}


class HostilePeer:
    """Accepts, reads the first request, does one thing, hangs up."""

    def __init__(self, act: Act) -> None:
        self.connections = 0
        self._act = act
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer:
                self.connections += 1
                if peer.recv(4096) == b"stop":
                    return
                self._act(peer)

    def stop(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"stop")
            self._thread.join(10)
        self._listener.close()


class LiveClient:
    """A network client in the real world."""

    def __init__(self, servers: str, **config: object) -> None:
        self.runtime: Runtime = system_runtime()
        self.metadata = ProducerMetadata(self.runtime)
        parsed = ConfigDef("client", common_keys()).parse({"bootstrap_servers": servers, **config})
        self.network: NetworkClient = build_network_client(
            parsed, self.runtime, self.metadata, client_id="test"
        )

    def poll_until(self, done: Callable[[], bool], seconds: float = 20) -> None:
        deadline = self.runtime.clock.monotonic_ms() + seconds * 1000
        while not done():
            now_ms = self.runtime.clock.monotonic_ms()
            assert now_ms < deadline, self.network.bootstrap_error()
            self.network.poll(100, now_ms)


@pytest.mark.parametrize("mode", HOSTILE)
def test_each_kind_of_peer_is_named(mode: str) -> None:
    act, cause = HOSTILE[mode]
    peer = HostilePeer(act)
    client = LiveClient(f"127.0.0.1:{peer.port}")
    try:
        client.poll_until(lambda: cause in str(client.network.bootstrap_error()))
        assert f"127.0.0.1:{peer.port}: " in str(client.network.bootstrap_error())
    finally:
        client.network.close()
        peer.stop()


def test_a_closed_port_and_an_unknown_name_are_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = LiveClient(f"127.0.0.1:{port},no-such-host.invalid:9092")

        def both() -> bool:
            return str(client.network.bootstrap_error()).count(": could not") == 2

        client.poll_until(both)
    text = str(client.network.bootstrap_error())
    assert f"127.0.0.1:{port}: could not connect: Connection refused" in text
    assert "no-such-host.invalid:9092: could not look up no-such-host.invalid: " in text
    client.network.close()


def test_a_claimed_frame_of_99_megabytes_takes_no_memory() -> None:
    claimed = threading.Event()

    def claim(peer: socket.socket) -> None:
        peer.sendall(struct.pack(">i", 99_000_000) + b"x" * 1000)
        claimed.set()
        peer.recv(1)  # until the client gives up

    peer = HostilePeer(claim)
    client = LiveClient(f"127.0.0.1:{peer.port}", request_timeout_ms=500)
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        late = "was not answered within 500 ms"
        client.poll_until(lambda: late in str(client.network.bootstrap_error()))
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert claimed.is_set()
        assert grown_kib < 8 * 1024
    finally:
        client.network.close()
        peer.stop()


@pytest.fixture(scope="module")
def foreign_broker() -> Iterator[str]:
    """Start librdkafka's mock broker, which answers ApiVersions 4 in a form of its own."""
    owner = Producer({"test.mock.num.brokers": "2", "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


def test_a_broker_of_another_make_is_understood(foreign_broker: str) -> None:
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
