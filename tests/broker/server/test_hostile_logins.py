"""Clients that attack a listener before they are authenticated."""

import base64
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.clients.wire import Wire
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import resident_bytes

NAMES = ("SASL_PLAINTEXT", "SSL", "SASL_SSL")
MAX_UNAUTHENTICATED = 12
TIMEOUT_MS = 1500
MAX_SIZE = 524288
SECRET = "canary-password"
TOKEN = f"\0alice\0{SECRET}".encode()
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Attacked(NamedTuple):
    """Broker with short limits, and the authority of its certificate."""

    cluster: EmbeddedCluster
    context: ssl.SSLContext

    def connect(self, listener: str) -> Wire:
        """Open a connection, without a TLS handshake."""
        return Wire(self.cluster.bootstrap_servers_of(listener))

    def encrypted(self, listener: str) -> Wire:
        """Open a connection, after the TLS handshake if the listener has one."""
        wire = self.connect(listener)
        if listener.endswith("SSL"):
            wire.socket = self.context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        return wire


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    directory = tmp_path_factory.mktemp("attacked-")
    authority = CertificateAuthority("authority")
    (directory / "server.pem").write_text(authority.issue("broker", ("127.0.0.1",)).pem)
    config = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in NAMES),
        "ssl.keystore.location": str(directory / "server.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "authentication.timeout.ms": TIMEOUT_MS,
        "max.unauthenticated.connections": MAX_UNAUTHENTICATED,
        **{
            f"listener.name.{name}.plain.sasl.jaas.config": (
                f'{MODULE} required user_alice="{SECRET}";'
            )
            for name in ("sasl_plaintext", "sasl_ssl")
        },
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.pem)
    with EmbeddedCluster(config=config) as cluster:
        yield Attacked(cluster, context)


def log_in(wire: Wire, listener: str) -> None:
    if listener.startswith("SASL"):
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        request = SaslAuthenticateRequest(auth_bytes=TOKEN)
        assert wire.ask(request, 2, SaslAuthenticateResponse).error_code == 0


def is_served(wire: Wire) -> bool:
    return wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def is_closed(peer: socket.socket) -> bool:
    """Wait for the end of a connection; an alert may come before it."""
    try:
        while peer.recv(4096):
            pass
    except (ConnectionError, ssl.SSLError):
        return True
    return True


@pytest.mark.fault("A1")
@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), MAX_SIZE + 1])
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_size_of_a_frame_is_limited_before_authentication(
    attacked: Attacked, listener: str, size: int
) -> None:
    with attacked.encrypted(listener) as wire:
        wire.send_bytes(size.to_bytes(4, "big", signed=True))
        assert wire.is_closed_by_peer()


def client_hello(attacked: Attacked) -> bytes:
    outgoing = ssl.MemoryBIO()
    session = attacked.context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def silent(_: Attacked, __: Wire) -> None:
    """Send nothing."""


def half_hello(attacked: Attacked, wire: Wire) -> None:
    """Send a part of the TLS handshake."""
    wire.send_bytes(client_hello(attacked)[:100])


def whole_hello(attacked: Attacked, wire: Wire) -> None:
    """Never end the TLS handshake."""
    wire.send_bytes(client_hello(attacked))


def half_exchange(_: Attacked, wire: Wire) -> None:
    """Select a mechanism, and send no token."""
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)


def half_frame(_: Attacked, wire: Wire) -> None:
    """Announce the largest frame, and send a byte of it."""
    wire.send_bytes(MAX_SIZE.to_bytes(4, "big") + b"x")


Begin = Callable[[Attacked, Wire], None]
HALF_OPEN: list[tuple[str, bool, Begin]] = [
    ("SASL_PLAINTEXT", False, silent),
    ("SASL_PLAINTEXT", False, half_exchange),
    ("SASL_PLAINTEXT", False, half_frame),
    ("SSL", False, silent),
    ("SSL", False, half_hello),
    ("SSL", False, whole_hello),
    ("SASL_SSL", False, whole_hello),
    ("SASL_SSL", True, silent),
    ("SASL_SSL", True, half_exchange),
    ("SASL_SSL", True, half_frame),
]


@pytest.mark.fault("A2")
@pytest.mark.parametrize(("listener", "encrypted", "begin"), HALF_OPEN)
def test_half_open_connections_end_and_others_are_served(
    attacked: Attacked, listener: str, encrypted: bool, begin: Begin
) -> None:
    """They end at the limit of their number or of their time, and neither ends another client."""
    with ExitStack() as stack:
        earlier = stack.enter_context(attacked.encrypted(listener))
        log_in(earlier, listener)
        half_open = []
        for _ in range(3 * MAX_UNAUTHENTICATED):
            wire = attacked.encrypted(listener) if encrypted else attacked.connect(listener)
            half_open.append(stack.enter_context(wire))
            begin(attacked, wire)
        later = stack.enter_context(attacked.encrypted(listener))
        log_in(later, listener)
        for wire in half_open[: 2 * MAX_UNAUTHENTICATED]:
            assert is_closed(wire.socket)
        assert is_served(later)
        for wire in half_open[2 * MAX_UNAUTHENTICATED :]:
            assert is_closed(wire.socket)
        assert is_served(earlier)
        assert is_served(later)


@pytest.mark.fault("A1")
@pytest.mark.parametrize("listener", ["SSL", "SASL_PLAINTEXT"])
def test_bytes_that_trickle_do_not_extend_the_time(attacked: Attacked, listener: str) -> None:
    """Each byte of a TLS or SASL message arrives; the message never ends."""
    data = client_hello(attacked) if listener == "SSL" else bytes(MAX_SIZE // 1000)
    data = data[:-1] if listener == "SSL" else MAX_SIZE.to_bytes(4, "big") + data
    with attacked.connect(listener) as wire, attacked.encrypted(listener) as other:
        log_in(other, listener)
        wire.socket.settimeout(0.05)
        closed = False
        for byte in data:
            try:
                wire.send_bytes(bytes([byte]))
                closed = wire.is_closed_by_peer()
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True
            if closed:
                break
        assert closed
        assert is_served(other)


@pytest.mark.fault("A3")
def test_memory_of_clients_without_authentication_is_bounded(tmp_path: Path) -> None:
    """A bounded number of clients holds a frame of bounded size each (CVE-2022-34917)."""
    settings = (
        "sasl.enabled.mechanisms=PLAIN",
        f'listener.name.sasl_plaintext.plain.sasl.jaas.config={MODULE} required user_a="b";',
        "max.unauthenticated.connections=30",
        "num.network.threads=1",
    )
    with BrokerProcess(tmp_path, *settings, listen="SASL_PLAINTEXT://127.0.0.1:0") as process:
        with Wire(process.bootstrap) as wire:
            wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        before = resident_bytes(process.pid)
        with ExitStack() as stack:
            for _ in range(150):
                wire = stack.enter_context(Wire(process.bootstrap))
                wire.send_bytes(MAX_SIZE.to_bytes(4, "big") + bytes(MAX_SIZE - 1))
            last = stack.enter_context(Wire(process.bootstrap))
            last.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
            assert resident_bytes(process.pid) - before < 30 * 2 * MAX_SIZE + (8 << 20)


def shown_to(cluster: EmbeddedCluster, user: str) -> tuple[bytes, int]:
    """Return the salt and the iteration count that a client is shown."""
    with Wire(cluster.bootstrap_servers) as wire:
        wire.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1, SaslHandshakeResponse)
        request = SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=nonce".encode())
        message = bytes(wire.ask(request, 2, SaslAuthenticateResponse).auth_bytes)
    found = re.fullmatch(rb"r=nonce[^,]+,s=([^,]+),i=(\d+)", message)
    assert found is not None
    return base64.b64decode(found[1]), int(found[2])


@pytest.mark.fault("A5")
def test_salt_and_iterations_of_an_unknown_user_are_plausible(tmp_path: Path) -> None:
    def start() -> EmbeddedCluster:
        return EmbeddedCluster(
            security="sasl_plaintext", users={"alice": SECRET}, data_dir=tmp_path / "data"
        )

    with start() as cluster:
        seen = [shown_to(cluster, user) for user in ("alice", "mallory", "trudy")]
    for salt, iterations in seen:
        assert re.fullmatch(rb"[0-9a-z]{20,26}", salt)
        assert iterations == 4096
    assert len(set(seen)) == 3
    with start() as cluster:
        assert [shown_to(cluster, user) for user in ("mallory", "trudy")] == seen[1:]
