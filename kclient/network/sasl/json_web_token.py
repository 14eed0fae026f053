"""Signed JSON Web Tokens (RFC 7515, RFC 7519): their form, and their claims."""

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kclient.common.errors import ProtocolError

MAX_TOKEN: Final = 16 * 1024
"""Longest token, in characters."""

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384")
"""Algorithms of signatures. None of them has a secret that both sides know, nor no signature."""

_PART = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_PARTS = 3
_MAX_KEY_ID = 256
_MAX_NAME = 256


class SignedToken(NamedTuple):
    """Token whose signature was not verified yet.

    Attributes:
        algorithm: Algorithm of the signature.
        key_id: Id of the key; None if the token names none.
        claims: Claims.
        signed: Signed part.
        signature: Signature.
    """

    algorithm: str
    key_id: str | None
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


class ClaimRules(NamedTuple):
    """What the claims of a token must have.

    Attributes:
        audiences: Accepted audiences; none to accept any.
        issuer: Accepted issuer; None to accept any.
        clock_skew_s: Tolerated difference of clocks, in seconds.
        subject_claim: Claim with the name of the principal.
    """

    audiences: Sequence[str]
    issuer: str | None
    clock_skew_s: int
    subject_claim: str


class AcceptedToken(NamedTuple):
    """Principal of a token, and the end of its validity in milliseconds since the Unix epoch."""

    name: str
    expires_at_ms: float


def parse_token(text: str) -> SignedToken:
    """Return a token in compact form.

    Raises:
        ProtocolError: It has another form, or an algorithm that is not accepted. The text has no
            part of the token but the name of its algorithm.
    """
    parts = text.split(".") if len(text) <= MAX_TOKEN else []
    if len(parts) != _PARTS or not all(map(_PART.fullmatch, parts)):
        raise ProtocolError("token: it is no signed token in compact form")
    header = _json(decoded(parts[0]))
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise ProtocolError(
            f"token: got the algorithm {algorithm!r:.20}, expected one of {', '.join(ALGORITHMS)}"
        )
    if "crit" in header:
        raise ProtocolError("token: its header has critical extensions")
    if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= _MAX_KEY_ID):
        raise ProtocolError("token: the id of its key is malformed")
    signed = f"{parts[0]}.{parts[1]}".encode()
    return SignedToken(algorithm, key_id, _json(decoded(parts[1])), signed, decoded(parts[2]))


def check_claims(claims: Mapping[str, Any], rules: ClaimRules, now_s: float) -> AcceptedToken:
    """Return the principal of a token whose signature is verified.

    Raises:
        ProtocolError: A claim is missing or malformed, the token has expired or is not valid yet,
            or is meant for another audience.
    """
    expires_at, issued_at = _time(claims, "exp"), _time(claims, "iat")
    if expires_at < issued_at:
        raise ProtocolError("token: it expires before it was issued")
    if expires_at + rules.clock_skew_s <= now_s:
        raise ProtocolError(f"token: it expired {now_s - expires_at:.0f} s ago")
    if "nbf" in claims and _time(claims, "nbf") - rules.clock_skew_s > now_s:
        raise ProtocolError("token: it is not valid yet")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if rules.audiences and not any(each in rules.audiences for each in audiences):
        raise ProtocolError(
            f"token: got the audience {audience!r:.120}, expected one of"
            f" {', '.join(rules.audiences)}"
        )
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise ProtocolError(
            f"token: got the issuer {claims.get('iss')!r:.120}, expected {rules.issuer}"
        )
    name = claims.get(rules.subject_claim)
    if not isinstance(name, str) or not name.strip() or not _is_text(name):
        raise ProtocolError(f"token: its claim {rules.subject_claim} is no name")
    return AcceptedToken(name, expires_at * 1000)


def _is_text(name: str) -> bool:
    """Return whether a name is not too long, and no half of a character, as JSON allows."""
    return len(name) <= _MAX_NAME and not any("\ud800" <= each <= "\udfff" for each in name)


def decoded(part: str) -> bytes:
    """Return bytes from base64url without padding.

    Raises:
        ProtocolError: It is none.
    """
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise ProtocolError("token: a part is not base64url") from None


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ProtocolError("token: a part is not JSON") from None
    if not isinstance(found, dict):
        raise ProtocolError("token: a part is no JSON object")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProtocolError(f"token: its claim {name} is no time")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise ProtocolError(f"token: its claim {name} is no time")
    return seconds
