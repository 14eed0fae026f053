"""Authentication of the two ends of a channel."""

from typing import Protocol


class Authenticator(Protocol):
    """Authentication exchange before a channel's first request (Kafka: Authenticator)."""

    def authenticate(self) -> None:
        """Run the next step with the bytes that have arrived; never blocks.

        Raises:
            KafkaError: The authentication failed.
        """
        ...

    def complete(self) -> bool:
        """Return whether the authentication has succeeded."""
        ...

    def wants_write(self) -> bool:
        """Return whether bytes of the exchange are waiting to be written."""
        ...

    def close(self) -> None:
        """Discard secrets and release resources; idempotent."""
        ...


class NoAuthenticator:
    """Authenticator of a channel without authentication."""

    def authenticate(self) -> None:
        """Do nothing."""

    def complete(self) -> bool:
        """Return True."""
        return True

    def wants_write(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""
