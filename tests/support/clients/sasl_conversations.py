"""Requests to a listener with SASL, and what the broker does with them.

Each conversation runs against the companion broker, and in integration/ against Apache Kafka.
"""

import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

from kclient.protocol.headers import decode_response
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.support.clients.wire import Wire

PASSWORD = "canary-password"
LARGEST_FRAME = 524288
PAUSE = -1
"""Version of a pause until the session has expired, instead of a request."""


class Ask(NamedTuple):
    """One request, or one frame as it is."""

    request: Request | bytes
    version: int = 0


def _handshake(mechanism: str = "PLAIN", version: int = 1) -> Ask:
    return Ask(SaslHandshakeRequest(mechanism=mechanism), version)


def _token(token: bytes, version: int = 2) -> Ask:
    return Ask(SaslAuthenticateRequest(auth_bytes=token), version)


GOOD = f"\0alice\0{PASSWORD}".encode()
VERSIONS = Ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
TOO_NEW = Ask(struct.pack(">hhih", 18, 99, 1, -1) + b"\0")
METADATA = Ask(MetadataRequest(), 9)
_OTHER_ID = (
    "58 'Authentication failed: Client requested an authorization id that is different from"
    " username' closed"
)
_INVALID = "58 'Authentication failed: Invalid username or password' closed"

CONVERSATIONS: dict[str, tuple[Sequence[Ask], Sequence[str]]] = {
    "versions first": ([VERSIONS, _handshake(), _token(GOOD)], ["0", "0 ['PLAIN']", "0 b''"]),
    "no versions": ([_handshake(), _token(GOOD, 0), VERSIONS], ["0 ['PLAIN']", "0 b''", "0"]),
    "versions too new": (
        [TOO_NEW, TOO_NEW, _handshake(), _token(GOOD, 1), METADATA],
        ["35 of 12 bytes", "35 of 12 bytes", "0 ['PLAIN']", "0 b''", "response"],
    ),
    "second versions": ([VERSIONS, VERSIONS], ["0", "closed"]),
    "metadata first": ([METADATA], ["closed"]),
    "malformed metadata": ([Ask(struct.pack(">hhi", 3, 9, 1))], ["closed"]),
    "token first": ([_token(GOOD)], ["closed"]),
    "garbage": ([Ask(b"\x60\x82\x02garbage")], ["closed"]),
    "empty frame": ([Ask(b"")], ["closed"]),
    "unknown mechanism": ([_handshake("CRAM-MD5")], ["33 ['PLAIN'] closed"]),
    "wrong password": ([_handshake(), _token(b"\0alice\0wrong")], ["0 ['PLAIN']", _INVALID]),
    "unknown user": ([_handshake(), _token(b"\0mallory\0wrong")], ["0 ['PLAIN']", _INVALID]),
    "other authorization id": (
        [_handshake(), _token(b"bob" + GOOD)],
        [
            "0 ['PLAIN']",
            _OTHER_ID,
        ],
    ),
    "own authorization id": ([_handshake(), _token(b"alice" + GOOD)], ["0 ['PLAIN']", "0 b''"]),
    "no password": (
        [_handshake(), _token(b"\0alice\0")],
        ["0 ['PLAIN']", "58 'Authentication failed: password not specified' closed"],
    ),
    "no user": (
        [_handshake(), _token(b"\0\0secret")],
        ["0 ['PLAIN']", "58 'Authentication failed: username not specified' closed"],
    ),
    "two parts": (
        [_handshake(), _token(b"alice\0secret")],
        ["0 ['PLAIN']", "58 'Invalid SASL/PLAIN response: expected 3 tokens, got 2' closed"],
    ),
    "five parts": (
        [_handshake(), _token(GOOD + b"\0a\0b")],
        ["0 ['PLAIN']", "58 'Invalid SASL/PLAIN response: expected 3 tokens, got 4' closed"],
    ),
    "second handshake": ([_handshake(), _handshake()], ["0 ['PLAIN']", "34 [] closed"]),
    "versions instead of a token": ([_handshake(), VERSIONS], ["0 ['PLAIN']", "34 closed"]),
    "metadata instead of a token": ([_handshake(), METADATA], ["0 ['PLAIN']", "response closed"]),
    "bare token": (
        [_handshake(version=0), Ask(GOOD), METADATA],
        ["0 ['PLAIN']", "bare b''", "response"],
    ),
    "wrong bare token": ([_handshake(version=0), Ask(b"\0alice\0b")], ["0 ['PLAIN']", "closed"]),
    "requests after authentication": (
        [_handshake(), _token(GOOD), _handshake(), _token(GOOD), METADATA],
        [
            "0 ['PLAIN']",
            "0 b''",
            "34 []",
            "34 'SaslAuthenticate request received after successful authentication'",
            "response",
        ],
    ),
    "largest frame": ([Ask(bytes(LARGEST_FRAME))], ["closed"]),
    "largest token": (
        [_handshake(version=0), Ask(b"\0alice\0" + bytes([97]) * (LARGEST_FRAME - 7))],
        ["0 ['PLAIN']", "closed"],
    ),
    "frame beyond the limit": ([Ask(bytes(LARGEST_FRAME + 1))], ["closed"]),
}
"""Requests by the name of the conversation, and the responses to them."""


SESSION_MS = 2000
"""Lifetime of a session in the conversations below."""

_BOTH = "0 ['PLAIN', 'SCRAM-SHA-256']"
_LIMITED = f"0 b'' for {SESSION_MS} ms"
_OTHER_PRINCIPAL = (
    "58 'Cannot change principals during re-authentication from User.alice: User.bob' closed"
)
_LOGIN = [_handshake(), _token(GOOD)]
_LOGGED_IN = [_BOTH, _LIMITED]
EXPIRY = Ask(b"", PAUSE)

REAUTHENTICATIONS: dict[str, tuple[Sequence[Ask], Sequence[str]]] = {
    "renewed": ([*_LOGIN, METADATA, *_LOGIN, METADATA], [*_LOGGED_IN, "response"] * 2),
    "renewed too soon": (
        [*_LOGIN, *_LOGIN, _handshake(), METADATA],
        [*_LOGGED_IN, *_LOGGED_IN, "34 []", "response"],
    ),
    "other principal": (
        [*_LOGIN, _handshake(), _token(b"\0bob\0other")],
        [
            *_LOGGED_IN,
            _BOTH,
            _OTHER_PRINCIPAL,
        ],
    ),
    "wrong password": (
        [*_LOGIN, _handshake(), _token(b"\0alice\0wrong")],
        [*_LOGGED_IN, _BOTH, _INVALID],
    ),
    "other mechanism": (
        [*_LOGIN, _handshake("SCRAM-SHA-256"), _token(GOOD)],
        [*_LOGGED_IN, _BOTH, "closed"],
    ),
    "unknown mechanism": (
        [*_LOGIN, _handshake("CRAM-MD5")],
        [*_LOGGED_IN, "closed"],
    ),
    "metadata instead of a token": (
        [*_LOGIN, _handshake(), METADATA],
        [*_LOGGED_IN, _BOTH, "response closed"],
    ),
    "token without a handshake": (
        [*_LOGIN, _token(GOOD), METADATA],
        [
            *_LOGGED_IN,
            "34 'SaslAuthenticate request received after successful authentication'",
            "response",
        ],
    ),
    "expired": ([*_LOGIN, EXPIRY, METADATA], [*_LOGGED_IN, "closed"]),
    "renewed after it has expired": (
        [*_LOGIN, EXPIRY, *_LOGIN, METADATA],
        [*_LOGGED_IN, *_LOGGED_IN, "response"],
    ),
}
"""The same at a listener with `SESSION_MS` and two mechanisms."""


_SCRAM = "SCRAM-SHA-256"
_FIRST = _token(b"n,,n=alice,r=nonce")
_REFUSED_BY_SCRAM = (
    "58 'Authentication failed during authentication due to invalid credentials with SASL"
    f" mechanism {_SCRAM}' closed"
)


def _scram(message: bytes) -> tuple[Sequence[Ask], Sequence[str]]:
    return [_handshake(_SCRAM), _token(message)], [_BOTH, _REFUSED_BY_SCRAM]


SCRAM_CONVERSATIONS: dict[str, tuple[Sequence[Ask], Sequence[str]]] = {
    "channel binding is possible": _scram(b"y,,n=alice,r=nonce"),
    "channel binding is required": _scram(b"p=tls-unique,,n=alice,r=nonce"),
    "no nonce": _scram(b"n,,n=alice"),
    "non-ASCII name": _scram("n,,n=\u00e4,r=nonce".encode()),
    "delegation token": _scram(b"n,,n=alice,r=nonce,tokenauth=true"),
    "plain token": _scram(GOOD),
    "empty message": _scram(b""),
    "other authorization id": (
        [_handshake(_SCRAM), _token(b"n,a=bob,n=alice,r=nonce")],
        [_BOTH, _OTHER_ID],
    ),
    "malformed final message": (
        [_handshake(_SCRAM), _FIRST, _token(b"c=biws,r=nonce")],
        [_BOTH, "0 server-first of 4096 iterations", _REFUSED_BY_SCRAM],
    ),
    "other nonce in the final message": (
        [_handshake(_SCRAM), _FIRST, _token(b"c=biws,r=nonce,p=YQ==")],
        [_BOTH, "0 server-first of 4096 iterations", _REFUSED_BY_SCRAM],
    ),
}
"""The same at that listener, with a user alice for SCRAM-SHA-256."""

_REFUSED_TOKEN = '{"status":"invalid_token"}'
_REFUSED_BY_OAUTH = (
    "58 'Authentication failed during authentication due to invalid credentials with SASL"
    " mechanism OAUTHBEARER' closed"
)


def _bearer(token: str) -> Ask:
    return _token(f"n,,\1auth=Bearer {token}\1\1".encode())


def oauth_conversations(
    good: str, refused: Sequence[str]
) -> dict[str, tuple[Sequence[Ask], Sequence[str]]]:
    """Return conversations of a listener with OAUTHBEARER.

    Args:
        good: Token that is accepted.
        refused: Tokens that are not.
    """
    start, offered = _handshake("OAUTHBEARER"), "0 ['OAUTHBEARER']"
    found: dict[str, tuple[Sequence[Ask], Sequence[str]]] = {
        f"refused token {number}": (
            [start, _bearer(token), _token(b"\1")],
            [offered, f"0 {_REFUSED_TOKEN.encode()!r}", f"58 {_REFUSED_TOKEN!r} closed"],
        )
        for number, token in enumerate(refused)
    }
    for name, message in (
        ("no token", b"n,,\1\1"),
        ("cut message", f"n,,\1auth=Bearer {good}\1".encode()),
        ("channel binding", f"y,,\1auth=Bearer {good}\1\1".encode()),
        ("plain token", GOOD),
    ):
        found[name] = [start, _token(message)], [offered, _REFUSED_BY_OAUTH]
    return found


def outcomes(wire: Wire, asks: Sequence[Ask]) -> list[str]:
    """Send each request after the response to the one before; return what came back."""
    found: list[str] = []
    bare = False
    for ask in asks:
        if ask.version == PAUSE:
            time.sleep(SESSION_MS / 1000 + 0.1)  # the time itself is the condition
            continue
        if isinstance(ask.request, bytes):
            send_all(wire, ask.request)
        else:
            wire.send(ask.request, ask.version)
            is_handshake = isinstance(ask.request, SaslHandshakeRequest)
            bare = ask.version == 0 if is_handshake else bare
        try:
            frame = wire.receive_frame()
        except (EOFError, ConnectionResetError):
            return [*found, "closed"]
        text = _described(ask, frame, bare=bare)
        if ask is asks[-1] and _is_closed(wire):
            text += " closed"
        found.append(text)
    return found


def send_all(wire: Wire, frame: bytes) -> None:
    """Send a frame that the peer may refuse before it has read all of it."""
    try:
        wire.send_frame(frame)
    except (BrokenPipeError, ConnectionResetError):
        return


def _is_closed(wire: Wire) -> bool:
    wire.socket.settimeout(0.7)
    try:
        return wire.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def _described(ask: Ask, frame: bytes, *, bare: bool) -> str:
    if isinstance(ask.request, SaslHandshakeRequest):
        _, handshake = decode_response(frame, SaslHandshakeResponse, ask.version)
        return f"{handshake.error_code} {sorted(handshake.mechanisms)}"
    if isinstance(ask.request, SaslAuthenticateRequest):
        return _token_of(decode_response(frame, SaslAuthenticateResponse, ask.version)[1])
    if isinstance(ask.request, ApiVersionsRequest):
        return str(int.from_bytes(frame[4:6], "big"))
    if isinstance(ask.request, bytes) and bare:
        return f"bare {frame!r}"
    if isinstance(ask.request, bytes):
        return f"{int.from_bytes(frame[4:6], 'big')} of {len(frame) - 4} bytes"
    return "response"


def _token_of(response: SaslAuthenticateResponse) -> str:
    if response.auth_bytes.startswith(b"r="):
        iterations = response.auth_bytes.rpartition(b"i=")[2].decode()
        return f"{response.error_code} server-first of {iterations} iterations"
    shown = response.error_message if response.error_code else response.auth_bytes
    lifetime = f" for {limit} ms" if (limit := response.session_lifetime_ms) else ""
    return f"{response.error_code} {shown!r}{lifetime}"
