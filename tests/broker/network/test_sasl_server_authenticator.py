"""Authentication of clients of a listener with SASL, frame by frame."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import AdminClient
from kclient.admin import ScramCredentialInfo, UserScramCredentialUpsertion
from kclient.broker.network.request_channel import Request
from kclient.broker.network.sasl_server_authenticator import (
    EXPECTED_REQUESTS,
    SASL_TRANSITIONS,
    SaslState,
)
from kclient.common.secret import Secret
from kclient.network.sasl.scram import SCRAM_MECHANISMS, ScramSaslClient
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.sasl_conversations import (
    CONVERSATIONS,
    GOOD,
    PASSWORD,
    REAUTHENTICATIONS,
    SCRAM_CONVERSATIONS,
    SESSION_MS,
    TOO_NEW,
    Ask,
    oauth_conversations,
    outcomes,
)
from tests.support.clients.wire import Wire
from tests.support.identity_provider import IdentityProvider

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{MODULE} required user_alice="{PASSWORD}" user_bob="other";'
    ),
}
DELAY = "connection.failed.authentication.delay.ms"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedCluster(config={**PLAIN, DELAY: 20}) as cluster:
        yield cluster.bootstrap_servers


def log_in(wire: Wire, token: bytes = GOOD) -> SaslAuthenticateResponse:
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
    return wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2, SaslAuthenticateResponse)


@pytest.mark.parametrize(("asks", "expected"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversation(servers: str, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(servers) as wire:
        assert outcomes(wire, asks) == list(expected)


@pytest.fixture(scope="module")
def sessions() -> Iterator[str]:
    """A listener whose sessions are limited."""
    config = {
        **PLAIN,
        DELAY: 20,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": SESSION_MS,
    }
    with EmbeddedCluster(config=config) as cluster:
        yield cluster.bootstrap_servers


@pytest.mark.parametrize(("asks", "expected"), REAUTHENTICATIONS.values(), ids=REAUTHENTICATIONS)
def test_reauthentication(sessions: str, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(sessions) as wire:
        assert outcomes(wire, asks) == list(expected)


@pytest.mark.parametrize(
    ("asks", "expected"), SCRAM_CONVERSATIONS.values(), ids=SCRAM_CONVERSATIONS
)
def test_scram(sessions: str, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(sessions) as wire:  # the user is unknown here, and treated like a known one
        assert outcomes(wire, asks) == list(expected)


@pytest.mark.fault("A5")
def test_exchange_does_not_show_whether_a_user_exists() -> None:
    """The transcripts are equal but for nonces and salts, and an unknown user keeps its salt."""
    config = {
        "listeners": PLAIN["listeners"] + ",PLAINTEXT://127.0.0.1:0",
        DELAY: 20,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    with EmbeddedCluster(config=config) as cluster:
        with AdminClient(bootstrap_servers=cluster.bootstrap_servers_of("PLAINTEXT")) as admin:
            found = ScramCredentialInfo("SCRAM-SHA-256", 4096)
            admin.alter_user_scram_credentials(
                UserScramCredentialUpsertion("alice", found, PASSWORD)
            )
        servers = cluster.bootstrap_servers_of("SASL_PLAINTEXT")
        transcripts = [scram_transcript(servers, user) for user in ("alice", "carol", "carol")]
    shapes = {(len(first), *rest) for first, *rest in transcripts}
    assert len(shapes) == 1
    salts = [first.split(b",")[1] for first, *_ in transcripts]
    assert salts[0] != salts[1] == salts[2]


def scram_transcript(servers: str, user: str) -> tuple[bytes, int, str | None, bool]:
    """Return what the broker sends to a client with a wrong password."""
    client = ScramSaslClient(SCRAM_MECHANISMS["SCRAM-SHA-256"], user, Secret("wrong"))
    with Wire(servers) as wire:
        wire.ask(SaslHandshakeRequest(mechanism=client.mechanism), 1, SaslHandshakeResponse)
        first = wire.ask(
            SaslAuthenticateRequest(auth_bytes=client.initial_response()),
            2,
            SaslAuthenticateResponse,
        )
        proof = client.evaluate_challenge(first.auth_bytes)
        assert proof is not None
        final = wire.ask(SaslAuthenticateRequest(auth_bytes=proof), 2, SaslAuthenticateResponse)
        assert final.error_code
        closed = wire.is_closed_by_peer()
        return bytes(first.auth_bytes), final.error_code, final.error_message, closed


def test_oauthbearer(tmp_path: Path) -> None:
    provider, now_s = IdentityProvider(), time.time()
    (tmp_path / "jwks.json").write_text(json.dumps(provider.key_set()))
    claims = {"sub": "alice", "iat": now_s, "exp": now_s + 900}
    expired = provider.token({**claims, "iat": now_s - 90, "exp": now_s - 31})
    prefix = "listener.name.sasl_plaintext."
    config = {
        DELAY: 20,
        "listeners": PLAIN["listeners"],
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        f"{prefix}sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "jwks.json").as_uri(),
    }
    cases = oauth_conversations(provider.token(claims), [expired, "a.b.c", "e30.e30."])
    with EmbeddedCluster(config=config) as cluster:
        for asks, expected in cases.values():
            with Wire(cluster.bootstrap_servers) as wire:
                assert outcomes(wire, asks) == list(expected)


def test_pipelined_reauthentication(sessions: str) -> None:
    """Requests that were sent together with the exchange have their responses in order."""
    with Wire(sessions) as wire:
        log_in(wire)
        wire.send(ApiVersionsRequest(), 0)
        wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wire.send(SaslAuthenticateRequest(auth_bytes=GOOD), 2)
        wire.send(ApiVersionsRequest(), 0)
        assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
        assert wire.receive(SaslHandshakeResponse, 1)[1].error_code == 0
        assert wire.receive(SaslAuthenticateResponse, 2)[1].session_lifetime_ms == SESSION_MS
        assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0


def test_every_state_before_the_mechanism_has_expected_requests() -> None:
    reached = {*SASL_TRANSITIONS.values(), *(state for state, _ in SASL_TRANSITIONS)}
    assert reached == set(SaslState) - {SaslState.FAILED}
    assert set(EXPECTED_REQUESTS) == {
        SaslState.HANDSHAKE_OR_VERSIONS_REQUEST,
        SaslState.HANDSHAKE_REQUEST,
        SaslState.REAUTH_PROCESS_HANDSHAKE,
    }


def test_request_has_the_principal_of_the_client() -> None:
    seen: list[str] = []
    with EmbeddedCluster(config=PLAIN) as cluster:

        def intercept(request: Request, handle: object) -> None:
            seen.append(f"{request.principal} {request.listener_name}")
            request.respond(ApiVersionsResponse())

        cluster.broker.intercept(intercept)
        with Wire(cluster.bootstrap_servers) as wire:
            log_in(wire)
            wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert seen == ["User:alice SASL_PLAINTEXT"]


UNNAMED = Ask(ApiVersionsRequest(client_software_name="-"), 3)


@pytest.mark.fault("A4")
@pytest.mark.parametrize(
    ("ask", "refused"), [(TOO_NEW, "35 of 12 bytes"), (UNNAMED, "42")], ids=["version", "name"]
)
def test_versions_are_refused_twice_at_most(servers: str, ask: Ask, refused: str) -> None:
    """A network thread serves no other client while a client repeats its request."""
    with Wire(servers) as wire:
        assert outcomes(wire, [ask] * 4) == [refused, refused, "closed"]


def test_pieces_of_requests_are_put_together(servers: str) -> None:
    sent = bytes.fromhex("0000001200110001000000010001630005") + b"PLAIN"
    with Wire(servers) as wire:
        for byte in sent:
            wire.send_bytes(bytes([byte]))
            with Wire(servers) as other:  # the broker has read the byte when this one is served
                log_in(other)
        assert wire.receive(SaslHandshakeResponse, 1)[1].error_code == 0


def test_pipelined_requests_have_responses_in_order(servers: str) -> None:
    with Wire(servers) as wire:
        wire.send(ApiVersionsRequest(), 0)
        wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wire.send(SaslAuthenticateRequest(auth_bytes=GOOD), 2)
        wire.send(ApiVersionsRequest(), 0)
        assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
        assert wire.receive(SaslHandshakeResponse, 1)[1].error_code == 0
        assert wire.receive(SaslAuthenticateResponse, 2)[1].error_code == 0
        assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0


def test_failure_is_delayed_and_delays_no_other_client() -> None:
    with EmbeddedCluster(config={**PLAIN, DELAY: 600}) as cluster:
        servers = cluster.bootstrap_servers
        began = time.monotonic()
        ended: list[float] = []

        def fail() -> None:
            with Wire(servers) as wire:
                assert log_in(wire, b"\0alice\0wrong").error_code == 58
                ended.append(time.monotonic() - began)

        failing = threading.Thread(target=fail)
        failing.start()
        with Wire(servers) as wire:
            assert log_in(wire).error_code == 0
        assert time.monotonic() - began < 0.5
        failing.join()
        assert 0.6 <= ended[0] < 2


def trickle_until_closed(wire: Wire) -> None:
    """Announce a frame, and send it byte by byte."""
    wire.socket.settimeout(0.05)
    wire.send_bytes((1000).to_bytes(4, "big"))
    while True:
        try:
            wire.send_bytes(b"\0")
            wire.receive_frame()
        except TimeoutError:
            continue
        except (EOFError, ConnectionError):
            return


def test_client_that_sends_slowly_is_closed_at_the_timeout() -> None:
    with EmbeddedCluster(config={**PLAIN, "authentication.timeout.ms": 400}) as cluster:
        servers = cluster.bootstrap_servers
        with Wire(servers) as slow, Wire(servers) as silent, Wire(servers) as authenticated:
            began = time.monotonic()
            log_in(authenticated)
            trickle_until_closed(slow)
            assert 0.4 <= time.monotonic() - began < 2
            with pytest.raises(EOFError):
                silent.receive_frame()
            response = authenticated.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
            assert response.error_code == 0


def test_half_open_connections_do_not_keep_others_from_connecting() -> None:
    with EmbeddedCluster(config={**PLAIN, "max.unauthenticated.connections": 5}) as cluster:
        servers = cluster.bootstrap_servers
        with ExitStack() as stack:
            authenticated = stack.enter_context(Wire(servers))
            log_in(authenticated)
            silent = [stack.enter_context(Wire(servers)) for _ in range(20)]
            last = stack.enter_context(Wire(servers))
            log_in(last)
            for each in silent[:15]:
                with pytest.raises((EOFError, ConnectionError)):
                    each.receive_frame()
            for each in (authenticated, last):
                assert each.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


FOREIGN_BYTES = {
    "an HTTP request: the client speaks HTTP": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a TLS handshake: the client speaks TLS": bytes.fromhex("160301020001000100"),
}


@pytest.mark.parametrize(("protocol", "sent"), FOREIGN_BYTES.items(), ids=FOREIGN_BYTES)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_other_protocol_is_closed_with_one_log_line(
    caplog: pytest.LogCaptureFixture, listener: str, protocol: str, sent: bytes
) -> None:
    caplog.set_level("INFO", logger="kclient.broker.network")
    config = {**PLAIN, DELAY: 20, "listeners": f"{listener}://127.0.0.1:0"}
    if listener == "PLAINTEXT":
        config.pop("listener.name.sasl_plaintext.plain.sasl.jaas.config")
    with EmbeddedCluster(config=config) as cluster:
        for _ in range(3):
            with Wire(cluster.bootstrap_servers) as wire:
                wire.send_bytes(sent)
                with pytest.raises((EOFError, ConnectionError)):
                    wire.receive_frame()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1
    assert f"the peer sent {protocol}" in lines[0]


def test_client_without_sasl_has_a_log_line(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="kclient.broker.network")
    with Wire(servers) as wire:
        assert outcomes(wire, [CONVERSATIONS["metadata first"][0][0]]) == ["closed"]
    hint = "the client's security.protocol may lack SASL"
    wait_until(lambda: hint in caplog.text, "log line")


def test_refused_names_and_secrets_are_in_no_log_line(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with Wire(servers) as wire:
        log_in(wire)
    with Wire(servers) as wire:
        log_in(wire, b"\0alice\0canary-wrong")
        with pytest.raises(EOFError):
            wire.receive_frame()
    wait_until(lambda: "Invalid username or password" in caplog.text, "log line")
    assert "canary" not in caplog.text
