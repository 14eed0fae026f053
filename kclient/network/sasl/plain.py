"""PLAIN: user name and password as they are (RFC 4616)."""

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.secret import Secret
from kclient.network.sasl.mechanism import CREDENTIALS_HINT

PLAIN = "PLAIN"


class PlainSaslClient:
    """Client of PLAIN; only a connection with TLS protects the password."""

    mechanism = PLAIN
    hint = CREDENTIALS_HINT

    def __init__(self, user: str, password: Secret) -> None:
        self._user = user
        self.identity = f"user {user!r}"
        self._password = password

    def initial_response(self) -> bytes:
        """Return user name and password, without an authorization id."""
        return b"\0".join((b"", self._user.encode(), self._password.reveal().encode()))

    def evaluate_challenge(self, challenge: bytes) -> None:
        """Check that the server sends no token."""
        if challenge:
            raise SaslAuthenticationError(
                f"PLAIN: got a token of {len(challenge)} bytes, expected an empty one"
            )
