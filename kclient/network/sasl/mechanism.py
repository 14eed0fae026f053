"""Client side of a SASL mechanism."""

from typing import Protocol

CREDENTIALS_HINT = "check user and password, and that credentials exist for this mechanism"
"""What to check if a broker refuses a user name and password."""


class SaslClient(Protocol):
    """One authentication by a SASL mechanism (Java: SaslClient).

    It does no input or output: `SaslClientAuthenticator` sends and receives its tokens.
    """

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        ...

    @property
    def identity(self) -> str:
        """What is authenticated, for messages."""
        ...

    @property
    def hint(self) -> str:
        """What to check if the broker refuses it."""
        ...

    def initial_response(self) -> bytes:
        """Return the first token of the client."""
        ...

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """Return the token that follows one of the server; None if the exchange has ended.

        Raises:
            SaslAuthenticationError: The token of the server is malformed, or the server could not
                prove that it knows the credentials.
        """
        ...
