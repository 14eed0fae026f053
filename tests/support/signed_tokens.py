"""JSON Web Tokens that an identity provider of a test signs (RFC 7515, RS256)."""

import base64
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_KEY_ID = "key-of-the-test"


class TokenSigner:
    """Identity provider with one RSA key.

    Attributes:
        key_set: Its public key, as a JSON Web Key Set.
    """

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_encoded(_big_endian(each)) for each in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": _KEY_ID, "alg": "RS256", "n": modulus, "e": exponent}
        self.key_set = json.dumps({"keys": [key]})

    def sign(self, **claims: object) -> str:
        """Return a token with these claims."""
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _big_endian(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
