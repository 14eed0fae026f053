"""Brokers that are none, or impostors, and what clients send them."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kclient import AdminClient, Producer
from kclient.common.broker_errors import (
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.common.errors import AuthenticationError, KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header, encode_response
from kclient.protocol.message import Response
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.closing import Closing
from tests.support.checks.shown_locals import shown_locals
from tests.support.clients.wire import Wire, joined
from tests.support.processes.hostile_peer import HostilePeer, waits

SECRET = "canary-password"
LIMITS: dict[str, Any] = {"request_timeout_ms": 1000, "default_api_timeout_ms": 1500}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PLAIN = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": SECRET}
TLS_HANDSHAKE = b"\x16\x03"

Responses = Mapping[ApiKey, Response]


class Impostor(Closing):
    """Broker with chosen responses, which records what clients send.

    Attributes:
        received: All frames of clients.
    """

    def __init__(self, responses: Responses) -> None:
        self.received: list[bytes] = []
        self._responses = responses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer, Wire("", peer) as wire, suppress(EOFError, ConnectionError):
                while True:
                    frame = wire.receive_frame()
                    if not frame:
                        return
                    self.received.append(frame)
                    self._respond(wire, frame)

    def _respond(self, wire: Wire, frame: bytes) -> None:
        header, _ = decode_request_header(frame)
        response = self._responses.get(header.api_key)
        if response is None:
            raise EOFError
        version = 0 if header.api_key is ApiKey.API_VERSIONS else header.api_version
        wire.send_frame(joined(encode_response(response, version, header.correlation_id)))

    def close(self) -> None:
        with Wire(self.address) as wire:
            wire.send_frame(b"")
        self._thread.join(10)
        self._listener.close()


def offer(*keys: ApiKey) -> ApiVersionsResponse:
    rows = [ApiVersion(api_key=key, min_version=0, max_version=1) for key in keys]
    return ApiVersionsResponse(api_keys=rows)


ALL = offer(ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA)
AGREED = SaslHandshakeResponse(mechanisms=["PLAIN", "SCRAM-SHA-256"])


def replied(token: bytes) -> dict[ApiKey, Response]:
    return {
        ApiKey.API_VERSIONS: ALL,
        ApiKey.SASL_HANDSHAKE: AGREED,
        ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse(auth_bytes=token),
    }


IMPOSTORS: dict[str, tuple[Responses, type[KafkaError], str]] = {
    "without SaslAuthenticate": (
        {ApiKey.API_VERSIONS: offer(ApiKey.SASL_HANDSHAKE), ApiKey.SASL_HANDSHAKE: AGREED},
        AuthenticationError,
        "does not offer SaslAuthenticate",
    ),
    "other mechanism": (
        {
            ApiKey.API_VERSIONS: ALL,
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN"]),
        },
        UnsupportedSaslMechanismError,
        "the listener has enabled PLAIN",
    ),
    "success without a proof": (replied(b""), SaslAuthenticationError, "expected 'r=…,s=…,i=…'"),
    "nonce of another client": (
        replied(b"r=x,s=c2FsdA==,i=1"),
        SaslAuthenticationError,
        "got a nonce from the server",
    ),
}
"""Responses to a client that authenticates by SCRAM, and its error."""


@pytest.mark.fault("A7")
@pytest.mark.parametrize(("responses", "kind", "text"), IMPOSTORS.values(), ids=IMPOSTORS)
def test_impostor_gets_no_password_and_no_request(
    responses: Responses, kind: type[KafkaError], text: str
) -> None:
    """Neither a weaker mechanism nor tokens without headers are tried."""
    with Impostor(responses) as impostor:
        given: dict[str, Any] = {
            "bootstrap_servers": impostor.address,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "alice",
            "sasl_password": SECRET,
        }
        with AdminClient(**given, **LIMITS) as admin, pytest.raises(kind, match=text) as caught:
            admin.describe_cluster()
    keys = {decode_request_header(frame)[0].api_key for frame in impostor.received}
    assert keys <= {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    assert SECRET.encode() not in b"".join(impostor.received)
    assert "canary" not in f"{caught.value} {shown_locals(caught.value)}"


class PlainPeer(Closing):
    """Peer without TLS, which records the first bytes of each connection and responds once."""

    def __init__(self, response: bytes) -> None:
        self.first: list[bytes] = []
        self._response = response
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer, suppress(ConnectionError):
                data = peer.recv(4096)
                if data == b"stop":
                    return
                self.first.append(data)
                peer.sendall(self._response)

    def close(self) -> None:
        with Wire(self.address) as wire:
            wire.send_bytes(b"stop")
        self._thread.join(10)
        self._listener.close()


RESPONSES_WITHOUT_TLS = {
    "end": b"",
    "TLS alert": b"\x15\x03\x03\x00\x02\x02\x46",
    "ApiVersions": bytes.fromhex("0000000a 7ffffff8 0000 00000000"),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.fault("A7", "C15")
@pytest.mark.parametrize("response", RESPONSES_WITHOUT_TLS.values(), ids=RESPONSES_WITHOUT_TLS)
@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_failed_tls_is_never_followed_by_plaintext(protocol: str, response: bytes) -> None:
    given: dict[str, Any] = {"security_protocol": protocol}
    if protocol == "SASL_SSL":
        given |= PLAIN
    with PlainPeer(response) as peer:
        with (
            AdminClient(bootstrap_servers=peer.address, **given, **LIMITS) as admin,
            pytest.raises(KafkaError) as caught,
        ):
            admin.describe_cluster()
        assert peer.first
        assert all(data.startswith(TLS_HANDSHAKE) for data in peer.first)
        assert SECRET.encode() not in b"".join(peer.first)
    assert "canary" not in f"{caught.value} {shown_locals(caught.value)}"


@pytest.mark.fault("C4")
@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT"])
def test_broker_that_sends_nothing_does_not_delay_the_others(protocol: str, tmp_path: Path) -> None:
    """A handshake that never ends counts as a connection that cannot be set up."""
    authority = CertificateAuthority("authority")
    (tmp_path / "server.pem").write_text(authority.issue("broker", ("127.0.0.1",)).pem)
    own: dict[str, Any] = {"security_protocol": protocol}
    own |= PLAIN if protocol != "SSL" else {"ssl_truststore_certificates": authority.pem}
    config = {"listeners": f"{protocol}://127.0.0.1:0"}
    if protocol == "SSL":
        config["ssl.keystore.location"] = str(tmp_path / "server.pem")
    else:
        config["sasl.enabled.mechanisms"] = "PLAIN"
        config["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = (
            f'{MODULE} required user_alice="{SECRET}";'
        )
    with (
        HostilePeer(waits) as silent,
        EmbeddedCluster(config=config) as cluster,
        Producer(
            bootstrap_servers=f"{silent.address},{cluster.bootstrap_servers}",
            socket_connection_setup_timeout_ms=500,
            **own,
        ) as producer,
    ):
        assert producer.send("t", b"a").result(20).offset == 0
