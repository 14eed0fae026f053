"""Server side of a SASL mechanism."""

import math
from typing import Protocol

NO_EXPIRY = math.inf
"""Expiry of credentials that do not expire."""

_LONGEST_NAME = 80


def shown_name(name: str) -> str:
    """Return a name that a client has chosen for an error text: one line, not too long."""
    return f"{name:.{_LONGEST_NAME}}" if name.isprintable() else f"{name!r:.{_LONGEST_NAME}}"


class SaslServer(Protocol):
    """One authentication of a client by a SASL mechanism (Java: SaslServer).

    It does no input or output: the authenticator of the listener receives and sends its tokens.
    """

    @property
    def complete(self) -> bool:
        """Whether the client is authenticated, and no further token is expected."""
        ...

    @property
    def authorization_id(self) -> str:
        """Name of the client's principal; empty until the authentication is complete."""
        ...

    @property
    def expires_at_ms(self) -> float:
        """End of the credentials' validity, in milliseconds since the Unix epoch."""
        ...

    def evaluate_response(self, response: bytes) -> bytes:
        """Return the token that follows one of the client.

        Raises:
            SaslAuthenticationError: The client is refused, with a text for the client.
            ProtocolError: The client is refused, with a text that the client must not receive.
        """
        ...
