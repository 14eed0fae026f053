"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677, KIP-84).

User names and passwords are used as UTF-8 without SASLprep, as Apache Kafka does: a normalized
password would not match the credentials that Kafka's tools store.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import CredentialsPendingError
from kclient.common.runtime import Task, Tasks
from kclient.common.secret import Secret
from kclient.network.sasl.mechanism import CREDENTIALS_HINT

_GS2_HEADER = b"n,,"
_TOKEN_EXTENSION = b",tokenauth=true"
_NONCE_BYTES = 18
_SALT_BITS = 130
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_NONCE = 1024
_MAX_DIGITS = 10


class ScramMechanism(NamedTuple):
    """SCRAM with one hash function (Kafka: ScramMechanism).

    Attributes:
        name: Name of the SASL mechanism.
        code: Number of the mechanism in requests and metadata records (KIP-554).
        hash_name: Name of the hash function in `hashlib`.
        least_iterations: Smallest iteration count that is secure, as in Kafka.
        most_iterations: Largest iteration count of stored credentials, as in Kafka.
    """

    name: str
    code: int
    hash_name: str
    least_iterations: int
    most_iterations: int


SCRAM_MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        ScramMechanism("SCRAM-SHA-256", 1, "sha256", 4096, 16_384),
        ScramMechanism("SCRAM-SHA-512", 2, "sha512", 4096, 16_384),
    )
}

SCRAM_MECHANISMS_BY_CODE = {mechanism.code: mechanism for mechanism in SCRAM_MECHANISMS.values()}

MAX_ITERATIONS = 1_000_000
"""Largest iteration count of a server that a client computes, in less than a second.

Kafka's servers use 4,096 to 16,384.
"""

MAX_IMMEDIATE_ITERATIONS = 100_000
"""Largest iteration count that is computed in the thread of the connections, in some 0.1 s."""

_KEPT_PASSWORDS = 8

_Derivation = tuple[str, bytes, bytes, int]


@lru_cache(maxsize=8)
def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return the salted password (RFC 5802: Hi).

    The last ones are kept: each new connection of a client needs the same, and the computation is
    slow on purpose.
    """
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


def random_salt() -> bytes:
    """Return the salt of a new credential."""
    return salt_of(secrets.token_bytes(32))


def salt_of(random: bytes) -> bytes:
    """Return a salt in the form of Kafka's tools: 130 bits as digits of base 36.

    Args:
        random: At least 17 random bytes.

    Source: ScramFormatter.secureRandomString.
    """
    number = int.from_bytes(random) >> 8 * len(random) - _SALT_BITS
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))


class SaltedPasswords:
    """Salted passwords of a client; those of many iterations are computed in another thread.

    Meanwhile, connections end before their authentication and are opened again.
    """

    def __init__(
        self,
        tasks: Tasks,
        derive: Callable[[str, bytes, bytes, int], bytes] = salted_password,
    ) -> None:
        """Create the passwords; `derive` computes one, as `salted_password` does."""
        self._tasks = tasks
        self._derive = derive
        self._computed: dict[_Derivation, bytes] = {}  # replaced as a whole by the other thread
        self._task: Task | None = None

    def get(self, hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Return the salted password.

        Raises:
            CredentialsPendingError: It is being computed.
        """
        found = self._find((hash_name, password, salt, iterations))
        del password  # error trackers store the variables of a traceback
        if found is None:
            raise CredentialsPendingError(
                f"SCRAM: {iterations} iterations are computed before the connection is opened again"
            )
        return found

    def _find(self, derivation: _Derivation) -> bytes | None:
        """Return a salted password, or None while it is being computed."""
        if derivation[-1] <= MAX_IMMEDIATE_ITERATIONS:
            return self._derive(*derivation)
        found = self._computed.get(derivation)
        if found is None and (self._task is None or not self._task.is_alive()):
            self._task = self._tasks.spawn("kclient-scram", partial(self._compute, derivation))
        return found

    def _compute(self, derivation: _Derivation) -> bool:
        kept = list(self._computed.items())[-_KEPT_PASSWORDS + 1 :]
        self._computed = dict([*kept, (derivation, self._derive(*derivation))])
        return False


class ScramCredential(NamedTuple):
    """Stored credential of a user for one mechanism (Kafka: ScramCredential).

    Attributes:
        salt: Salt of the password.
        stored_key: Hash of the key that proves the client's knowledge of the password.
        server_key: Key that proves the server's knowledge of the credential.
        iterations: Iteration count of the salted password.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"  # no secrets in logs


class ScramKeys(NamedTuple):
    """Keys of a salted password.

    Attributes:
        client_key: Key that proves the client's knowledge of the password.
        stored_key: Hash of the client key, which the server stores.
        server_key: Key that proves the server's knowledge of the credentials.
    """

    client_key: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, hash_name: str, salted: bytes) -> "ScramKeys":
        """Return the keys of a salted password."""
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        stored_key = hashlib.new(hash_name, client_key).digest()
        return cls(client_key, stored_key, hmac.digest(salted, b"Server Key", hash_name))


class ScramSaslClient:
    """Client of SCRAM (Kafka: ScramSaslClient)."""

    hint = CREDENTIALS_HINT

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: Secret,
        salted: Callable[[str, bytes, bytes, int], bytes] = salted_password,
        new_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(_NONCE_BYTES),
        *,
        is_token: bool = False,
    ) -> None:
        """Create the client of one exchange.

        Args:
            mechanism: Mechanism of the exchange.
            user: User name.
            password: Password.
            salted: Returns the salted password, or raises; see `SaltedPasswords.get`.
            new_nonce: Returns printable text without a comma.
            is_token: Whether user and password are id and secret of a delegation token (KIP-48).
        """
        self._salted = salted
        self.mechanism = mechanism.name
        self.identity = f"user {user!r}"
        self._hash_name = mechanism.hash_name
        self._least_iterations = mechanism.least_iterations
        self._password = password
        self._nonce = new_nonce().encode()
        self._bare_first = b"n=%s,r=%s" % (escaped_name(user), self._nonce)
        if is_token:
            self._bare_first += _TOKEN_EXTENSION
        self._server_signature: bytes | None = None
        self._complete = False

    def initial_response(self) -> bytes:
        """Return the client-first message."""
        return _GS2_HEADER + self._bare_first

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """Return the client-final message for server-first; check server-final."""
        if self._server_signature is None:
            return self._final_message(challenge)
        if not self._complete:
            self._check_server_final(challenge)
            self._complete = True
        elif challenge:
            raise self._refused(f"a further message of {len(challenge)} bytes", "none")
        return None

    def _final_message(self, server_first: bytes) -> bytes:
        values = self._attributes(server_first, (b"r", b"s", b"i"))
        nonce, salt, count = values
        if not nonce.startswith(self._nonce) or not len(self._nonce) < len(nonce) <= _MAX_NONCE:
            raise self._refused("a nonce", "this client's nonce and one of the server's")
        iterations = self._iterations(count)
        keys = ScramKeys.of(
            self._hash_name,
            self._salted(
                self._hash_name,
                self._password.reveal().encode(),
                self._decoded(salt, "salt"),
                iterations,
            ),
        )
        without_proof = b"c=%s,r=%s" % (base64.b64encode(_GS2_HEADER), nonce)
        signed = b",".join((self._bare_first, server_first, without_proof))
        signature = hmac.digest(keys.stored_key, signed, self._hash_name)
        self._server_signature = hmac.digest(keys.server_key, signed, self._hash_name)
        proof = bytes(a ^ b for a, b in zip(keys.client_key, signature, strict=True))
        return b"%s,p=%s" % (without_proof, base64.b64encode(proof))

    def _iterations(self, count: bytes) -> int:
        iterations = int(count) if count.isdigit() and len(count) <= _MAX_DIGITS else -1
        if iterations < self._least_iterations:
            raise self._refused(
                f"{count[:20].decode(errors='replace')!r} iterations",
                f"at least {self._least_iterations}",
            )
        if iterations > MAX_ITERATIONS:
            raise self._refused(f"{iterations} iterations", f"at most {MAX_ITERATIONS}")
        return iterations

    def _check_server_final(self, server_final: bytes) -> None:
        if server_final.startswith(b"e="):
            reason = server_final[2:82].decode(errors="replace")
            raise SaslAuthenticationError(f"{self.mechanism}: the server refused: {reason!r}")
        (signature,) = self._attributes(server_final, (b"v",))
        expected = self._server_signature or b""
        if not hmac.compare_digest(self._decoded(signature, "signature"), expected):
            raise SaslAuthenticationError(
                f"{self.mechanism}: the server could not prove that it knows the credentials of"
                f" {self.identity}; it may be an impostor"
            )

    def _attributes(self, message: bytes, names: tuple[bytes, ...]) -> list[bytes]:
        """Return the values of the attributes with which a message of the server starts."""
        parts = message.split(b",", len(names))
        found = [part.partition(b"=") for part in parts[: len(names)]]
        if tuple(name for name, _, _ in found) != names or not all(value for *_, value in found):
            wanted = ",".join(f"{name.decode()}=…" for name in names)
            raise self._refused(f"a message of {len(message)} bytes", repr(wanted))
        return [value for *_, value in found]

    def _decoded(self, text: bytes, what: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self._refused(f"a {what} of {len(text)} bytes", "base64") from None

    def _refused(self, got: str, expected: str) -> SaslAuthenticationError:
        return SaslAuthenticationError(
            f"{self.mechanism}: got {got} from the server, expected {expected}"
        )


def escaped_name(user: str) -> bytes:
    """Return a user name as SCRAM messages have it (RFC 5802: saslname)."""
    return user.replace("=", "=3D").replace(",", "=2C").encode()
