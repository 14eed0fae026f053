"""Authentication of the two ends of a channel."""

import math
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


FIRST_RESERVED_CORRELATION_ID = 2**31 - 8
"""First of the correlation ids that requests of authenticators alone have, as in Kafka.

The last ones of an int32 are reserved, so that a response to an earlier request of the client is
not taken for a response of a re-authentication.
"""


class Authenticator(Protocol):
    """Authentication exchange before a channel's first request (Kafka: Authenticator).

    A later exchange renews the session (KIP-368). The channel writes no request until it has ended,
    and reads its responses, since responses to earlier requests come first.
    """

    @property
    def reauthenticating(self) -> bool:
        """Whether a later exchange of a client is in progress (KIP-368)."""
        ...

    @property
    def failure_delay_ms(self) -> float:
        """Milliseconds that the channel remains open after a failure, before `write` is called.

        A delay makes it slow to guess passwords (KIP-306).
        """
        ...

    @property
    def session_expires_at_ms(self) -> float:
        """Monotonic time from which a server serves the client no more (KIP-368)."""
        ...

    def begin_server_reauthentication(self, handshake: memoryview) -> bool:
        """Start another exchange on the connection with a SaslHandshake request of the client.

        Returns:
            Whether it was started; if not, the request is handled as any other.
        """
        ...

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

    def write(self) -> None:
        """Write what the transport accepts of the exchange."""
        ...

    def must_reauthenticate(self) -> bool:
        """Return whether the session must be renewed before the next request."""
        ...

    def start_reauthentication(self) -> None:
        """Start another exchange."""
        ...

    def handle_response(self, payload: memoryview) -> None:
        """Handle a response of the exchange that the channel has read.

        Raises:
            KafkaError: The authentication failed.
        """
        ...

    def close(self) -> None:
        """Discard secrets and release resources; idempotent."""
        ...


class NoAuthenticator:
    """Authenticator of a channel without authentication."""

    reauthenticating = False
    failure_delay_ms = 0.0
    session_expires_at_ms = math.inf

    def begin_server_reauthentication(self, handshake: memoryview) -> bool:
        """Return False: there is no session."""
        return False

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

    def write(self) -> None:
        """Do nothing."""

    def must_reauthenticate(self) -> bool:
        """Return False."""
        return False

    def start_reauthentication(self) -> None:
        """Do nothing."""

    def handle_response(self, payload: memoryview) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
