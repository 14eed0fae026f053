"""Clients with SASL or TLS: listeners without them, and listeners that refuse the credentials."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import AdminClient
from kclient.client.client_config import ClientConfig
from kclient.client.client_metadata import ProducerMetadata
from kclient.client.network_client_builder import build_network_client
from kclient.common.broker_errors import IllegalSaslStateError, SaslAuthenticationError
from kclient.common.config_def import ConfigDef
from kclient.common.errors import AuthenticationError, BootstrapError
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.virtual_home import VirtualHome

PLAIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "canary",
}
REFUSED, UNAVAILABLE = 58, 33
_CLIENT = ConfigDef("test", ClientConfig)


class SaslWorld:
    """Client with PLAIN, and brokers that accept or refuse its password, in virtual time."""

    def __init__(self, *brokers: int, **options: object) -> None:
        self.home = VirtualHome()
        servers = [f"10.0.0.{number}:9092" for number in brokers]
        config = _CLIENT.parse({"bootstrap_servers": servers, **PLAIN, **options})
        self.metadata = ProducerMetadata(self.home.runtime)
        self.client = build_network_client(
            config, self.home.runtime, self.metadata, client_id="test"
        )

    def serve(self, number: int, code: int = 0) -> ScriptedBroker:
        """Start a broker that responds to the password with an error code; return it."""
        broker = ScriptedBroker(Node(number, f"10.0.0.{number}", 9092))
        broker.versions |= {ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}
        handshake = SaslHandshakeResponse(
            error_code=code if code == UNAVAILABLE else 0, mechanisms=["SCRAM-SHA-256"]
        )
        authenticate = SaslAuthenticateResponse(error_code=code, error_message="wrong password")
        broker.responses[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: handshake
        broker.responses[ApiKey.SASL_AUTHENTICATE] = lambda _header, _request: authenticate
        self.home.net.peers[broker.node.host, broker.node.port] = lambda: broker
        return broker

    def error_within(self, duration_ms: float) -> AuthenticationError | None:
        """Poll until the cluster is known or calls fail; return their error."""
        deadline_ms = self.home.clock.now_ms + duration_ms
        while self.metadata.cluster().is_bootstrap and self.home.clock.now_ms < deadline_ms:
            self.client.poll(100, self.home.clock.now_ms)
            try:
                self.metadata.maybe_raise_any_error()
            except AuthenticationError as error:
                return error
        return None


def test_client_works_if_one_address_accepts_the_credentials() -> None:
    for accepting in (1, 2, 3):
        world = SaslWorld(1, 2, 3)
        for number in (1, 2, 3):
            world.serve(number, 0 if number == accepting else REFUSED)
        assert world.error_within(10_000) is None
        assert list(world.metadata.cluster().nodes) == [accepting]


def test_error_lists_the_refusal_of_each_address() -> None:
    world = SaslWorld(1, 2)
    world.serve(1, REFUSED)
    world.serve(2, REFUSED)
    error = world.error_within(10_000)
    assert type(error) is SaslAuthenticationError
    refused = "the broker refused user 'alice' by PLAIN: SASL_AUTHENTICATION_FAILED: wrong pass"
    for number in (1, 2):
        assert f"10.0.0.{number}:9092: {refused}" in str(error)
    assert world.home.clock.now_ms < 2_000


def test_error_of_different_refusals_has_their_common_type() -> None:
    world = SaslWorld(1, 2)
    world.serve(1, REFUSED)
    world.serve(2, UNAVAILABLE)
    error = world.error_within(10_000)
    assert type(error) is AuthenticationError
    assert "10.0.0.2:9092: sasl.mechanism: got PLAIN, the listener has enabled" in str(error)


def test_refusal_of_a_single_address_names_it() -> None:
    world = SaslWorld(1)
    world.serve(1, REFUSED)
    error = world.error_within(10_000)
    assert type(error) is SaslAuthenticationError
    assert str(error).startswith("10.0.0.1:9092: the broker refused user 'alice'")


def test_refusal_of_one_address_waits_for_the_other() -> None:
    world = SaslWorld(1, 2)
    world.serve(1, REFUSED)
    assert world.error_within(5_000) is None
    text = str(world.client.bootstrap_error())
    assert "10.0.0.1:9092: the broker refused user 'alice'" in text
    assert "10.0.0.2:9092: could not connect: Connection refused" in text
    world.serve(2)
    assert world.error_within(5_000) is None
    assert list(world.metadata.cluster().nodes) == [2]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        yield made


def test_listener_without_sasl_is_named_at_once(cluster: EmbeddedCluster) -> None:
    with (
        AdminClient(
            bootstrap_servers=cluster.bootstrap_servers,
            **PLAIN,
        ) as admin,
        pytest.raises(IllegalSaslStateError, match="the listener takes no SASL") as caught,
    ):
        admin.list_topics()
    assert "canary" not in str(caught.value)


def test_listener_without_tls_is_named(cluster: EmbeddedCluster) -> None:
    with (
        AdminClient(
            bootstrap_servers=cluster.bootstrap_servers,
            security_protocol="SSL",
            default_api_timeout_ms=300,
        ) as admin,
        pytest.raises(BootstrapError, match="the port may be one without TLS"),
    ):
        admin.list_topics()


def readable_password_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        f"{record.levelname} {record.getMessage()}"
        for record in caplog.records
        if "readable form" in record.getMessage()
    ]


def test_password_without_tls_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    world = SaslWorld(1, 2)
    world.serve(1, REFUSED)
    world.serve(2, REFUSED)
    world.error_within(10_000)
    world.error_within(10_000)
    (line,) = readable_password_warnings(caplog)
    assert line.startswith("WARNING")
    assert "PLAIN sends the credentials to 10.0.0." in line
    assert "canary" not in line


def test_password_on_this_machine_is_not_warned_of(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        AdminClient(bootstrap_servers=cluster.bootstrap_servers, **PLAIN) as admin,
        pytest.raises(IllegalSaslStateError),
    ):
        admin.list_topics()
    assert readable_password_warnings(caplog) == []


class ScramServer:
    """Server side of SCRAM-SHA-256 with one user, as responses of a scripted broker."""

    def __init__(self, password: bytes, iterations: int) -> None:
        self.iterations = iterations
        salted = hashlib.pbkdf2_hmac("sha256", password, b"salt", min(iterations, 1_000_000))
        self._server_key = hmac.digest(salted, b"Server Key", "sha256")
        self._first = b""

    def respond(self, _header: RequestHeader, request: Request) -> Response:
        assert isinstance(request, SaslAuthenticateRequest)
        token = bytes(request.auth_bytes)
        if token.startswith(b"n,,"):
            nonce = token.partition(b",r=")[2]
            salt = base64.b64encode(b"salt").decode()
            server = f"r={nonce.decode()}-server,s={salt},i={self.iterations}".encode()
            self._first = token.removeprefix(b"n,,") + b"," + server
            return SaslAuthenticateResponse(auth_bytes=server)
        signed = self._first + b"," + token.partition(b",p=")[0]
        signature = base64.b64encode(hmac.digest(self._server_key, signed, "sha256"))
        return SaslAuthenticateResponse(auth_bytes=b"v=" + signature)


def scram_world(iterations: int) -> SaslWorld:
    world = SaslWorld(1, sasl_mechanism="SCRAM-SHA-256")
    broker = world.serve(1)
    broker.responses[ApiKey.SASL_AUTHENTICATE] = ScramServer(b"canary", iterations).respond
    return world


@pytest.mark.parametrize("iterations", [4_096, 100_001, 1_000_000])
def test_iterations_are_computed_up_to_the_limit(iterations: int) -> None:
    world = scram_world(iterations)
    assert world.error_within(30_000) is None
    assert list(world.metadata.cluster().nodes) == [1]


def test_computation_of_many_iterations_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="kclient.client")
    assert scram_world(100_001).error_within(30_000) is None
    (line,) = [record for record in caplog.records if "are computed before" in record.message]
    assert line.levelname == "DEBUG"
    assert "failed attempts" not in caplog.text
    assert "connected to bootstrap server" in caplog.text


def test_more_iterations_are_refused() -> None:
    error = scram_world(1_000_001).error_within(30_000)
    assert "got 1000001 iterations from the server, expected at most 1000000" in str(error)
