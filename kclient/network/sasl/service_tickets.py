"""Kerberos tickets of a client for the brokers of a cluster."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kclient.common.errors import CredentialsPendingError, DisconnectedError, KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime, Task
from kclient.network.sasl.credentials import KerberosLogin
from kclient.network.sasl.gssapi import GssContext

_REFRESHED = 0.8  # share of the time in which a ticket is used
_LONGEST_USE_MS = 3_600_000.0  # then a renewed login and other keys of a broker are noticed
_MAX_HOSTS = 1000


class ServiceTicket(NamedTuple):
    """Ticket for one broker.

    Attributes:
        lifetime_s: Seconds until it expires.
        new_context: Returns a context with it, without waiting for a server.
    """

    lifetime_s: float
    new_context: Callable[[], GssContext]


class _KeptTicket(NamedTuple):
    ticket: ServiceTicket
    refresh_at_ms: float
    expires_at_ms: float


class ServiceTickets:
    """Tickets by host. Each is requested in another thread, since the KDC may respond slowly.

    Meanwhile, connections end before their authentication and are opened again.
    """

    def __init__(
        self,
        acquire: Callable[[KerberosLogin, str], ServiceTicket],
        runtime: Runtime,
        log_context: LogContext,
    ) -> None:
        """Create the tickets; `acquire` raises a KafkaError if there is none for a host."""
        self._acquire = acquire
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._log = log_context.logger(__name__)
        # An entry is written by the one thread of its host.
        self._outcomes: dict[str, _KeptTicket | KafkaError] = {}
        self._requests: dict[str, Task] = {}

    def new_context(self, login: KerberosLogin, host: str) -> GssContext:
        """Return a security context with a broker.

        Raises:
            CredentialsPendingError: The ticket is being requested.
            DisconnectedError: No KDC responds.
            SaslAuthenticationError: The KDC has no ticket for the broker.
        """
        found = self._outcomes.get(host)
        if isinstance(found, DisconnectedError):  # is the cause until another attempt succeeds
            self._request(login, host)
            raise DisconnectedError(str(found)) from found
        if isinstance(found, KafkaError):
            del self._outcomes[host]
            raise found
        now_ms = self._clock.monotonic_ms()
        if found is None or found.refresh_at_ms <= now_ms:
            self._request(login, host)
        if found is not None and now_ms < found.expires_at_ms:
            return found.ticket.new_context()
        raise CredentialsPendingError(
            f"GSSAPI: a ticket for {host} is requested before the connection is opened again"
        )

    def _request(self, login: KerberosLogin, host: str) -> None:
        running = self._requests.get(host)
        if running is not None and running.is_alive():
            return
        if len(self._requests) >= _MAX_HOSTS:
            self._requests.clear()
        acquire = partial(self._acquire_once, login, host)
        self._requests[host] = self._tasks.spawn("kclient-kerberos", acquire)

    def _acquire_once(self, login: KerberosLogin, host: str) -> bool:
        earlier = self._outcomes.get(host)
        outcome: _KeptTicket | KafkaError
        try:
            outcome = self._kept(self._acquire(login, host))
        except KafkaError as error:
            outcome = error
            if isinstance(earlier, _KeptTicket) and self._is_valid(earlier):
                self._log.warning("the ticket for %s could not be refreshed: %s", host, error)
                return False
        if len(self._outcomes) >= _MAX_HOSTS:
            self._outcomes.clear()
        self._outcomes[host] = outcome
        return False

    def _kept(self, ticket: ServiceTicket) -> _KeptTicket:
        now_ms = self._clock.monotonic_ms()
        use_ms = min(ticket.lifetime_s * 1000, _LONGEST_USE_MS)
        return _KeptTicket(ticket, now_ms + _REFRESHED * use_ms, now_ms + use_ms)

    def _is_valid(self, kept: _KeptTicket) -> bool:
        return self._clock.monotonic_ms() < kept.expires_at_ms
