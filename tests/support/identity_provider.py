"""Identity provider of tests: keys, and tokens that are signed by them."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

_HASHES: Mapping[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}


class IdentityProvider:
    """Keys RSA, P-256 and P-384, with the ids ``rsa``, ``ec256`` and ``ec384``."""

    def __init__(self) -> None:
        self._rsa = rsa.generate_private_key(65537, 2048)
        self._ec = {
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "ES384": ec.generate_private_key(ec.SECP384R1()),
        }

    def key_set(self) -> dict[str, Any]:
        """Return the public keys as a JSON Web Key Set."""
        numbers = self._rsa.public_key().public_numbers()
        rows = [
            {"kty": "RSA", "kid": "rsa", "n": _number(numbers.n), "e": _number(numbers.e)},
            {"kty": "oct", "kid": "secret", "k": encoded(b"secret")},
        ]
        for algorithm, key in self._ec.items():
            size = key.key_size // 8
            point = key.public_key().public_numbers()
            rows.append(
                {
                    "kty": "EC",
                    "kid": f"ec{algorithm[2:]}",
                    "crv": f"P-{algorithm[2:]}",
                    "x": encoded(point.x.to_bytes(size, "big")),
                    "y": encoded(point.y.to_bytes(size, "big")),
                    "use": "sig",
                    "alg": algorithm,
                }
            )
        return {"keys": rows}

    def token(self, claims: Mapping[str, Any], algorithm: str = "RS256", **header: Any) -> str:
        """Return a signed token; the header has the id of the key unless it is given."""
        key_id = f"ec{algorithm[2:]}" if algorithm.startswith("ES") else "rsa"
        whole = {"alg": algorithm, "kid": key_id, **header}
        parts = [encoded(json.dumps(each).encode()) for each in (whole, claims)]
        signed = ".".join(parts)
        return f"{signed}.{encoded(self._signature(signed.encode(), algorithm))}"

    def _signature(self, data: bytes, algorithm: str) -> bytes:
        digest = _HASHES[algorithm[2:]]
        if algorithm in self._ec:
            key = self._ec[algorithm]
            pair = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
            return b"".join(each.to_bytes(key.key_size // 8, "big") for each in pair)
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        scheme = pss if algorithm == "PS256" else padding.PKCS1v15()
        return self._rsa.sign(data, scheme, digest)


def encoded(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))
