"""Keys of an identity provider (RFC 7517), and the verification of signatures by them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kclient.common.errors import ProtocolError
from kclient.network.sasl.json_web_token import SignedToken, decoded

_MIN_RSA_BITS, _MAX_RSA_BITS = 2048, 8192
_MAX_KEYS = 1000

_HASHES: Mapping[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES: Mapping[str, tuple[str, ec.EllipticCurve]] = {
    "P-256": ("ES256", ec.SECP256R1()),
    "P-384": ("ES384", ec.SECP384R1()),
}
_RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256")


class VerificationKey(NamedTuple):
    """Public key.

    Attributes:
        key_id: Its id; None if it has none.
        algorithms: Algorithms that it is for.
        key: The key.
    """

    key_id: str | None
    algorithms: tuple[str, ...]
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey


def parse_keys(data: bytes) -> list[VerificationKey]:
    """Return the keys of a JSON Web Key Set; keys for other uses and of other types are left out.

    Raises:
        ValueError: It is no key set, a key is malformed, or none can be used.
    """
    try:
        rows = json.loads(data)["keys"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise ValueError("it is no JSON Web Key Set") from None
    if not isinstance(rows, list) or len(rows) > _MAX_KEYS:
        raise ValueError("it is no JSON Web Key Set")
    keys = [key for row in rows if (key := _key_of(row)) is not None]
    if not keys:
        raise ValueError("it has no RSA or EC key for signatures")
    return keys


def _key_of(row: Any) -> VerificationKey | None:
    if not isinstance(row, dict) or row.get("use", "sig") != "sig":
        return None
    try:
        if row.get("kty") == "RSA":
            key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey = _rsa_key(row)
            fitting: tuple[str, ...] = _RSA_ALGORITHMS
        elif row.get("kty") == "EC" and row.get("crv") in _CURVES:
            algorithm, curve = _CURVES[row["crv"]]
            key = ec.EllipticCurvePublicNumbers(_int(row, "x"), _int(row, "y"), curve).public_key()
            fitting = (algorithm,)
        else:
            return None
    except (KeyError, TypeError, ValueError, AttributeError, ProtocolError):
        raise ValueError("a key is malformed") from None
    algorithms = tuple(each for each in fitting if row.get("alg", each) == each)
    return VerificationKey(row.get("kid"), algorithms, key) if algorithms else None


def _rsa_key(row: Mapping[str, Any]) -> rsa.RSAPublicKey:
    key = rsa.RSAPublicNumbers(_int(row, "e"), _int(row, "n")).public_key()
    if not _MIN_RSA_BITS <= key.key_size <= _MAX_RSA_BITS:
        raise ValueError
    return key


def _int(row: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(decoded(row[name]), "big")


def key_of(token: SignedToken, keys: Iterable[VerificationKey]) -> VerificationKey | None:
    """Return the key that a token names, or else the only one that fits; None if there is none."""
    fitting = [
        each
        for each in keys
        if token.algorithm in each.algorithms and token.key_id in (None, each.key_id)
    ]
    return fitting[0] if len(fitting) == 1 else None


def verify_signature(token: SignedToken, key: VerificationKey) -> None:
    """Verify the signature of a token.

    Raises:
        ProtocolError: It is wrong.
    """
    try:
        _verify(key.key, token)
    except InvalidSignature:
        raise ProtocolError("token: its signature is wrong") from None


def _verify(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, token: SignedToken) -> None:
    kind, digest = token.algorithm[:2], _HASHES[token.algorithm[2:]]
    if isinstance(key, ec.EllipticCurvePublicKey):
        size = (key.key_size + 7) // 8
        if len(token.signature) != 2 * size:
            raise InvalidSignature
        first, second = token.signature[:size], token.signature[size:]
        pair = int.from_bytes(first, "big"), int.from_bytes(second, "big")
        key.verify(encode_dss_signature(*pair), token.signed, ec.ECDSA(digest))
        return
    pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
    scheme: padding.AsymmetricPadding = pss if kind == "PS" else padding.PKCS1v15()
    key.verify(token.signature, token.signed, scheme, digest)
