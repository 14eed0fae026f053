"""Server of PLAIN: user name and password as they are (RFC 4616)."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.secret import Secret
from kclient.network.sasl.server_mechanism import NO_EXPIRY

_PARTS = 3


class PlainUsers:
    """Users of a listener, without their passwords.

    Passwords are kept and compared as keyed hashes, so that the time of a comparison depends
    neither on the length of a password nor on where it differs.
    """

    def __init__(self, users: Mapping[str, Secret]) -> None:
        self._key = secrets.token_bytes(32)
        self._digests = {name: self._digest(each.reveal()) for name, each in users.items()}
        self._of_unknown = secrets.token_bytes(hashlib.sha256().digest_size)

    def verify(self, user: str, password: str) -> bool:
        """Return whether a user has this password."""
        expected = self._digests.get(user, self._of_unknown)
        return hmac.compare_digest(self._digest(password), expected)

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8", "surrogatepass"), "sha256")


class PlainSaslServer:
    """Server of PLAIN, with the error texts of Apache Kafka (Kafka: PlainSaslServer)."""

    expires_at_ms = NO_EXPIRY

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.complete = False
        self.authorization_id = ""

    def evaluate_response(self, response: bytes) -> bytes:
        """Check user name and password; the token that follows is empty."""
        parts = response.decode("utf-8", "replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise _failed("username not specified")
        if not password:
            raise _failed("password not specified")
        if not self._users.verify(user, password):
            raise _failed("Invalid username or password")
        if authorization_id not in ("", user):
            raise _failed("Client requested an authorization id that is different from username")
        self.authorization_id = user
        self.complete = True
        return b""


def _failed(reason: str) -> SaslAuthenticationError:
    return SaslAuthenticationError(f"Authentication failed: {reason}")
