"""SASL exchange of a client, byte by byte, and brokers that break it."""

import struct
from collections.abc import Callable

import pytest

from kclient.common.broker_errors import (
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.common.errors import (
    AuthenticationError,
    DisconnectedError,
    IllegalStateError,
    InvalidReceiveError,
    KafkaError,
    ProtocolError,
)
from kclient.common.secret import Secret
from kclient.network.sasl.client_authenticator import SaslClientAuthenticator
from kclient.network.sasl.credentials import FixedCredentials, UserCredentials
from kclient.network.sasl.mechanism import SaslClient
from kclient.network.sasl.plain import PlainSaslClient
from tests.support.clients.memory_transport import MemoryTransport
from tests.support.virtual.virtual_home import VirtualHome

FIRST_ID = 2**31 - 8
HOME = VirtualHome()
CREDENTIALS = FixedCredentials(UserCredentials("a", Secret("b")))


def frame(text: str) -> bytes:
    body = bytes.fromhex(text)
    return struct.pack(">i", len(body)) + body


def versions(correlation_id: int, *ranges: tuple[int, int, int]) -> bytes:
    body = struct.pack(">ihi", correlation_id, 0, len(ranges))
    return (
        struct.pack(">i", len(body) + 6 * len(ranges))
        + body
        + b"".join(struct.pack(">hhh", *each) for each in ranges)
    )


OFFER = ((17, 0, 1), (18, 0, 4), (36, 0, 2))
HANDSHAKE = frame("7ffffff9 0000 00000001 0005 504c41494e")
AUTHENTICATED = frame("7ffffffa 00 0000 00 01 00000000000003e8 00")
REFUSED = frame("7ffffffa 00 003a 05 6e6f7065 01 0000000000000000 00")


def started(piece: int = 1 << 20) -> tuple[SaslClientAuthenticator, MemoryTransport]:
    line = MemoryTransport(piece)
    return authenticator_of(line, lambda: PlainSaslClient("a", Secret("b"))), line


def authenticator_of(
    line: MemoryTransport, new_client: Callable[[], SaslClient]
) -> SaslClientAuthenticator:
    return SaslClientAuthenticator("1", line, new_client, CREDENTIALS, "c", HOME.runtime)


def run(authenticator: SaslClientAuthenticator, line: MemoryTransport, response: bytes) -> bytes:
    """Deliver a response, and return what the client sends then."""
    line.received += response
    while line.received or authenticator.wants_write():
        authenticator.authenticate()
    return line.taken()


@pytest.mark.parametrize("piece", [1 << 20, 3, 1])
def test_requests_are_those_of_kafka(piece: int) -> None:
    authenticator, line = started(piece)
    authenticator.authenticate()
    assert run(authenticator, line, b"") == frame("0012 0000 7ffffff8 0001 63")
    assert run(authenticator, line, versions(FIRST_ID, *OFFER)) == frame(
        "0011 0001 7ffffff9 0001 63 0005 504c41494e"
    )
    assert run(authenticator, line, HANDSHAKE) == frame(
        "0024 0002 7ffffffa 0001 63 00 05 00 61 00 62 00"
    )
    assert not authenticator.complete()
    assert run(authenticator, line, AUTHENTICATED) == b""
    assert authenticator.complete()


def test_full_socket_is_waited_for() -> None:
    authenticator, line = started()
    line.accepts = False
    authenticator.authenticate()
    assert authenticator.wants_write()
    line.accepts = True
    authenticator.authenticate()
    assert not authenticator.wants_write()
    assert line.taken() == frame("0012 0000 7ffffff8 0001 63")


def test_older_broker_gets_an_older_version() -> None:
    authenticator, line = started()
    authenticator.authenticate()
    run(authenticator, line, versions(FIRST_ID, (17, 0, 1), (36, 0, 0)))
    assert run(authenticator, line, HANDSHAKE)[4:8] == bytes.fromhex("0024 0000")


FIRST = versions(FIRST_ID, *OFFER)


@pytest.mark.parametrize(
    ("responses", "kind", "text"),
    [
        ([versions(FIRST_ID, (17, 0, 0))], AuthenticationError, "does not offer SaslAuthenticate"),
        ([frame("7ffffff8 0029 00000000")], AuthenticationError, "ApiVersions failed with NOT_CON"),
        (
            [FIRST, frame("7ffffff9 0021 00000002 0001 62 0001 61")],
            UnsupportedSaslMechanismError,
            "sasl.mechanism: got PLAIN, the listener has enabled a, b$",
        ),
        (
            [FIRST, frame("7ffffff9 0022 00000000")],
            IllegalSaslStateError,
            "takes no SASL; security.protocol should be PLAINTEXT or SSL",
        ),
        (
            [FIRST, frame("7ffffff9 0029 00000000")],
            AuthenticationError,
            "SaslHandshake failed with",
        ),
        (
            [FIRST, HANDSHAKE, REFUSED],
            SaslAuthenticationError,
            "refused user 'a' by PLAIN: SASL_AUTHENTICATION_FAILED: nope; check user and password",
        ),
        (
            [versions(FIRST_ID + 1, *OFFER)],
            ProtocolError,
            "correlation id: got 2147483641, expected",
        ),
        ([frame("7ffffff8 0000 7fffffff")], ProtocolError, "api_keys"),
        ([struct.pack(">i", 512 * 1024 + 1)], InvalidReceiveError, "frame size: got 524289"),
        ([b"\x15\x03\x03\x00\x02"], InvalidReceiveError, "a TLS alert"),
        ([b"HTTP/1.1 400"], InvalidReceiveError, "HTTP"),
    ],
)
def test_broken_exchange_fails(responses: list[bytes], kind: type[KafkaError], text: str) -> None:
    authenticator, line = started()
    authenticator.authenticate()
    *valid, last = responses
    for response in valid:
        run(authenticator, line, response)
    with pytest.raises(kind, match=text) as caught:
        run(authenticator, line, last)
    assert type(caught.value) is kind
    assert not authenticator.complete()


def test_endless_exchange_is_ended() -> None:
    class Endless(PlainSaslClient):
        def evaluate_challenge(self, challenge: bytes) -> bytes:  # type: ignore[override]
            return challenge + b"x"

    line = MemoryTransport()
    authenticator = authenticator_of(line, lambda: Endless("a", Secret("b")))
    authenticator.authenticate()
    run(authenticator, line, FIRST)
    run(authenticator, line, HANDSHAKE)
    rounds = [
        frame(f"{FIRST_ID + (2 + number) % 8:08x} 00 0000 00 01 {0:016x} 00")
        for number in range(10)
    ]
    for response in rounds[:-1]:
        run(authenticator, line, response)
    with pytest.raises(SaslAuthenticationError, match="has not ended after 10 rounds"):
        run(authenticator, line, rounds[-1])


def test_closed_authenticator_has_no_credentials() -> None:
    authenticator, _ = started()
    authenticator.authenticate()
    authenticator.close()
    authenticator.close()
    assert not any(callable(each) for each in vars(authenticator).values())
    with pytest.raises(IllegalStateError, match="the authenticator was closed"):
        authenticator.start_reauthentication()


def authenticated(lifetime_ms: int) -> tuple[SaslClientAuthenticator, MemoryTransport]:
    authenticator, line = started()
    authenticator.authenticate()
    for response in (FIRST, HANDSHAKE, frame(f"7ffffffa 00 0000 00 01 {lifetime_ms:016x} 00")):
        run(authenticator, line, response)
    assert authenticator.complete()
    return authenticator, line


def test_session_without_a_lifetime_is_never_renewed() -> None:
    authenticator, _ = authenticated(0)
    HOME.sleep(10**12)
    assert not authenticator.must_reauthenticate()


def test_session_is_renewed_near_the_end_of_its_lifetime() -> None:
    dues = set()
    for _ in range(30):
        authenticator, _ = authenticated(1000)
        waited = 0
        while not authenticator.must_reauthenticate():
            HOME.sleep(1)
            waited += 1
        dues.add(waited)
    assert min(dues) >= 850
    assert max(dues) <= 951
    assert len(dues) > 5


def body(framed: bytes) -> memoryview:
    return memoryview(framed)[4:]


def test_renewal_repeats_the_exchange_without_api_versions() -> None:
    authenticator, line = authenticated(1000)
    authenticator.start_reauthentication()
    authenticator.write()
    assert line.taken() == frame("0011 0001 7ffffffb 0001 63 0005 504c41494e")
    authenticator.handle_response(body(frame("7ffffffb 0000 00000001 0005 504c41494e")))
    authenticator.write()
    assert line.taken() == frame("0024 0002 7ffffffc 0001 63 00 05 00 61 00 62 00")
    states = [authenticator.reauthenticating]
    authenticator.handle_response(body(frame("7ffffffc 00 0000 00 01 0000000000000000 00")))
    assert [*states, authenticator.reauthenticating] == [True, False]
    assert not authenticator.must_reauthenticate()


@pytest.mark.parametrize(
    ("response", "kind", "text"),
    [
        ("7ffffffb 0022 00000000", DisconnectedError, "the broker does not re-authenticate"),
        ("7ffffffb 0021 00000000", DisconnectedError, "the broker does not re-authenticate"),
        ("7ffffffc 0000 00000000", ProtocolError, "correlation id: got 2147483644, expected"),
    ],
)
def test_failed_renewal(response: str, kind: type[KafkaError], text: str) -> None:
    authenticator, _ = authenticated(1000)
    authenticator.start_reauthentication()
    authenticator.write()
    with pytest.raises(kind, match=text):
        authenticator.handle_response(body(frame(response)))


def test_credentials_may_have_become_invalid() -> None:
    authenticator, _ = authenticated(1000)
    authenticator.start_reauthentication()
    authenticator.write()
    authenticator.handle_response(body(frame("7ffffffb 0000 00000001 0005 504c41494e")))
    authenticator.write()
    with pytest.raises(SaslAuthenticationError, match="refused user 'a' by PLAIN"):
        authenticator.handle_response(
            body(frame("7ffffffc 00 003a 05 6e6f7065 01 0000000000000000 00"))
        )


def test_response_before_its_request_is_refused() -> None:
    authenticator, line = authenticated(1000)
    line.accepts = False
    authenticator.start_reauthentication()
    authenticator.write()
    with pytest.raises(ProtocolError, match="got a response before the request was written"):
        authenticator.handle_response(body(frame("7ffffffb 0000 00000001 0005 504c41494e")))


class Slow(FixedCredentials):
    """Credentials that are there some time after they were requested, or fail then."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(UserCredentials("a", Secret("b")))
        self.requested_at_ms: list[float] = []
        self._failures = failures

    def request(self, on_done: Callable[[], object]) -> None:
        self.requested_at_ms.append(HOME.clock.now_ms)

    def done(self) -> bool:
        return not self.requested_at_ms or HOME.clock.now_ms >= self.requested_at_ms[-1] + 170

    def failure(self) -> KafkaError | None:
        failed = len(self.requested_at_ms) <= self._failures
        return AuthenticationError("no credentials") if failed else None


def waited_for(credentials: Slow) -> tuple[float, list[float]]:
    """Return when a session of 1 s is renewed, and when the credentials are requested."""
    line = MemoryTransport()
    authenticator = SaslClientAuthenticator(
        "1", line, lambda: PlainSaslClient("a", Secret("b")), credentials, "c", HOME.runtime
    )
    authenticator.authenticate()
    for response in (FIRST, HANDSHAKE, AUTHENTICATED):
        run(authenticator, line, response)
    began_ms = HOME.clock.now_ms
    while not authenticator.must_reauthenticate():
        HOME.sleep(1)
    requested = [at_ms - began_ms for at_ms in credentials.requested_at_ms]
    return HOME.clock.now_ms - began_ms, requested


def test_credentials_are_requested_before_the_renewal() -> None:
    assert waited_for(Slow()) == (970, [800])


def test_session_is_not_renewed_with_credentials_that_could_not_be_had() -> None:
    assert waited_for(Slow(failures=2)) == (3310, [800, 1970, 3140])
