"""Client side of a SASL mechanism."""

from typing import Protocol


class SaslClient(Protocol):
    """One authentication by a SASL mechanism (Java: SaslClient).

    It does no input or output: `SaslClientAuthenticator` sends and receives its tokens.
    """

    mechanism: str
    user: str

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
