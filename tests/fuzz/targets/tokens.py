"""Tokens and key sets of an identity provider, and the OAUTHBEARER exchange with a broker.

The first byte of an input selects what the second piece replaces: the key set, the header, the
claims, the signature or the whole message. Header and claims are signed after that, so that claims
are checked. Only a token that a key of the set has signed is accepted.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kclient.common.errors import KafkaError
from kclient.network.sasl.json_web_keys import parse_keys
from kclient.network.sasl.json_web_token import ClaimRules
from kclient.network.sasl.key_sets import KeySetFile
from kclient.network.sasl.oauthbearer_server import OAuthBearerSaslServer
from kclient.network.sasl.token_validator import TokenValidator
from kclient.protocol.fields import Struct
from kclient.protocol.messages.sasl import SaslAuthenticateResponse
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import CANARY, MEBIBYTE, Target
from tests.fuzz.workspace import workspace
from tests.support.virtual.virtual_home import VirtualHome

_KEY_SET, _HEADER, _CLAIMS, _SIGNATURE, _MESSAGE = range(5)
_KINDS = 5
_NOW_S = 1_800_000_000
_HOME = VirtualHome()


class _Signer:
    """Identity provider with an RSA key and an EC key."""

    def __init__(self) -> None:
        self._rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._ec = ec.generate_private_key(ec.SECP256R1())
        modulus = self._rsa.public_key().public_numbers()
        point = self._ec.public_key().public_numbers()
        self.key_set = json.dumps(
            {
                "keys": [
                    {"kty": "RSA", "kid": "r", "n": _number(modulus.n), "e": _number(modulus.e)},
                    {"kty": "EC", "kid": "e", "crv": "P-256", **_point(point)},
                    {"kty": "oct", "kid": "o", "k": "YQ"},
                ]
            }
        ).encode()

    def sign(self, algorithm: str, signed: bytes) -> bytes:
        """Return the signature of an algorithm; that of RS256 for an unknown one."""
        if algorithm == "ES256":
            first, second = decode_dss_signature(self._ec.sign(signed, ec.ECDSA(hashes.SHA256())))
            return first.to_bytes(32) + second.to_bytes(32)
        return self._rsa.sign(signed, padding.PKCS1v15(), hashes.SHA256())


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8))


def _point(numbers: ec.EllipticCurvePublicNumbers) -> dict[str, str]:
    return {"x": _text(numbers.x.to_bytes(32)), "y": _text(numbers.y.to_bytes(32))}


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@cache
def _signer() -> _Signer:
    return _Signer()


@cache
def _validator() -> TokenValidator:
    path = Path(workspace("tokens")) / "keys.json"
    path.write_bytes(_signer().key_set)
    rules = ClaimRules(("kafka",), "https://idp.example", 30, "sub")
    clock = _HOME.runtime.clock
    return TokenValidator("jwks", KeySetFile(str(path), clock), rules, clock)


def run(data: bytes) -> None:
    """Parse a key set, or send a token to the server."""
    if not data:
        return
    kind, given = data[0] % _KINDS, data[1:]
    if kind == _KEY_SET:
        _parse(given)
        return
    message = given if kind == _MESSAGE else _message(kind, given)
    server = OAuthBearerSaslServer(_validator())
    with refusals():
        try:
            if server.evaluate_response(message):
                server.evaluate_response(b"\x01")
        except KafkaError as error:
            _check_text(str(error))
            raise
    if server.complete:
        assert kind in (_HEADER, _CLAIMS) or _valid_token() in message
        assert server.authorization_id.encode()
        assert server.authorization_id.strip()
        assert server.expires_at_ms > (_now_s() - 31) * 1000


def _parse(given: bytes) -> None:
    with suppress(ValueError):
        assert parse_keys(given)


def _check_text(text: str) -> None:
    """Check that an error can be sent, and is one line of the log."""
    response: Struct = SaslAuthenticateResponse(error_code=58, error_message=text)
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.encode_bytes(2)
    assert text.isprintable(), repr(text)


def _now_s() -> float:
    return _HOME.runtime.clock.wall_ms() / 1000


def _message(kind: int, given: bytes) -> bytes:
    header = given if kind == _HEADER else _ES256 if given[:1] == b"\1" else _RS256
    claims = given if kind == _CLAIMS else _claims()
    signed = f"{_text(header)}.{_text(claims)}".encode()
    algorithm = "ES256" if b"ES256" in header else "RS256"
    signature = given if kind == _SIGNATURE else _signer().sign(algorithm, signed)
    return b"n,,\x01auth=Bearer %s.%s\x01\x01" % (signed, _text(signature).encode())


_RS256 = b'{"alg":"RS256","kid":"r"}'
_ES256 = b'{"alg":"ES256","kid":"e"}'


def _claims(**changes: object) -> bytes:
    now = int(_now_s())
    given = {"iss": "https://idp.example", "aud": ["kafka"], "sub": "alice", "iat": now}
    return json.dumps({**given, "exp": now + 10**9, "jti": CANARY.decode(), **changes}).encode()


@cache
def _valid_token() -> bytes:
    return _message(_CLAIMS, _claims()).split(b" ")[1].rstrip(b"\x01")


_CHANGED: tuple[dict[str, object], ...] = (
    {},
    {"sub": "a\nb"},
    {"sub": "\ud800"},
    {"sub": ""},
    {"sub": ["a"]},
    {"exp": 0},
    {"exp": 1e999},
    {"exp": 10**400},
    {"nbf": 1e18},
    {"aud": "other"},
    {"aud": {"kafka": 1}},
    {"iss": None},
    {"iat": "1"},
)
_HEADERS = (
    _RS256,
    _ES256,
    b'{"alg":"none"}',
    b'{"alg":"HS256","kid":"o"}',
    b'{"alg":["RS256"]}',
    b'{"alg":"RS256","kid":{}}',
    b'{"alg":"ES256","kid":"r"}',
    b'{"alg":"RS256","crit":["b64"]}',
    b'{"alg":"RS256"',
    b"[" * 5000,
)


def seeds() -> Iterator[bytes]:
    """Yield key sets, headers, claims and messages, valid and not."""
    yield bytes([_KEY_SET]) + _signer().key_set
    for keys in (b"{}", b"[]", b'{"keys":{}}', b'{"keys":[1,{"kty":"RSA"}]}', b"[" * 9999):
        yield bytes([_KEY_SET]) + keys
    yield from (bytes([_HEADER]) + header for header in _HEADERS)
    yield from (bytes([_CLAIMS]) + _claims(**changes) for changes in _CHANGED)
    yield bytes([_SIGNATURE]) + bytes(256)
    yield bytes([_SIGNATURE]) + b"\1" + bytes(63)
    first = bytes([_MESSAGE]) + b"n,,\x01auth=Bearer %s\x01\x01" % _valid_token()
    yield first
    for changed in (b"n,a=b\nob,", b"y,,", b"n,a=alice,"):
        yield first.replace(b"n,,", changed)
    yield first.replace(b"auth=", b"key=x\x01auth=")
    yield first.replace(b"Bearer ", b"bearer     ")


_WORDS = (b"RS256", b"ES256", b"none", b"1e400", b"null", b"[]", b"{}", b"true", b'"\\ud800"')


def mutate(data: bytes, random: Random) -> bytes:
    """Replace a value of the JSON text, or change random bytes."""
    if random.random() < 0.5 or b":" not in data:
        return data[:1] + spoil(data[1:], random)
    places = [place for place, byte in enumerate(data) if byte == ord(":")]
    place = random.choice(places) + 1
    end = min((found for mark in b",}" if (found := data.find(mark, place)) > 0), default=place)
    return data[:place] + random.choice(_WORDS) + data[end:]


TARGET = Target(run, seeds, mutate, lambda size: MEBIBYTE + 60 * size)
