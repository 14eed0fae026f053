"""Proving to each other who the two ends of a channel are."""

from typing import Protocol


class Authenticator(Protocol):
    """The exchange that precedes a channel's first request (Kafka: Authenticator)."""

    def authenticate(self) -> None:
        """Take the next step with whatever has arrived; never blocks.

        Raises:
            KafkaError: The exchange failed for good.
        """
        ...

    def complete(self) -> bool:
        """Return whether the exchange is over and requests may flow."""
        ...

    def wants_write(self) -> bool:
        """Return whether bytes of the exchange are waiting to be written."""
        ...

    def close(self) -> None:
        """Forget secrets and release resources; idempotent."""
        ...


class NoAuthenticator:
    """The listener asks for no proof."""

    def authenticate(self) -> None:
        """Nothing to prove."""

    def complete(self) -> bool:
        """Return True: requests may flow at once."""
        return True

    def wants_write(self) -> bool:
        """Nothing to write."""
        return False

    def close(self) -> None:
        """Nothing to release."""
