"""Authentication of the two ends of a channel."""

from typing import NamedTuple, Protocol


class KafkaPrincipal(NamedTuple):
    """Identity of a client (Kafka: KafkaPrincipal).

    Attributes:
        principal_type: Type of the principal, ``User``.
        name: Name of the principal.
    """

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS = KafkaPrincipal("User", "ANONYMOUS")
"""Principal of a connection without authentication (Kafka: KafkaPrincipal.ANONYMOUS)."""


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

    def principal(self) -> KafkaPrincipal:
        """Return the principal of the peer, once the authentication is complete."""
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

    def principal(self) -> KafkaPrincipal:
        """Return ANONYMOUS."""
        return ANONYMOUS

    def wants_write(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""
