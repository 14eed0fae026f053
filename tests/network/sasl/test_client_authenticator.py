"""SASL exchange of a client, byte by byte, and brokers that break it."""

import struct
from collections.abc import Sequence

import pytest

from kclient.common.broker_errors import (
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.common.errors import (
    AuthenticationError,
    InvalidReceiveError,
    KafkaError,
    ProtocolError,
)
from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket
from kclient.common.secret import Secret
from kclient.network.sasl.client_authenticator import SaslClientAuthenticator
from kclient.network.sasl.plain import PlainSaslClient

FIRST_ID = 2**31 - 8


class Line:
    """Transport layer whose peer is the test; both directions take a few bytes at a time."""

    socket: StreamSocket
    wants_write = False
    has_buffered = False

    def __init__(self, piece: int = 1 << 20) -> None:
        self.piece = piece
        self.accepts = True
        self.sent = b""
        self.received = b""

    def ready(self) -> bool:
        return True

    def handshake(self) -> None: ...

    def read_into(self, buffer: memoryview) -> int:
        piece = self.received[: min(self.piece, len(buffer))]
        self.received = self.received[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def expect(self, size: int) -> None: ...

    def write(self, parts: Sequence[WireBytes]) -> int:
        joined = b"".join(map(bytes, parts))[: self.piece if self.accepts else 0]
        self.sent += joined
        return len(joined)

    def write_file(self, part: FileSlice, offset: int) -> int:
        raise NotImplementedError

    def flush(self) -> bool:
        return True

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def close(self) -> None: ...

    def taken(self) -> bytes:
        sent, self.sent = self.sent, b""
        return sent


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


def started(piece: int = 1 << 20) -> tuple[SaslClientAuthenticator, Line]:
    line = Line(piece)
    session = PlainSaslClient("a", Secret("b"))
    return SaslClientAuthenticator("1", line, session, "c"), line


def run(authenticator: SaslClientAuthenticator, line: Line, response: bytes) -> bytes:
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
    assert authenticator.session_lifetime_ms == 1000


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

    line = Line()
    authenticator = SaslClientAuthenticator("1", line, Endless("a", Secret("b")), "c")
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
    assert not any(isinstance(each, PlainSaslClient) for each in vars(authenticator).values())
