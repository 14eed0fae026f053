"""Listener at which a node connects to the other nodes of its cluster."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from kclient.broker.network.failure_log import LineLimit
from kclient.common.errors import AuthenticationError, ConfigError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.network.channel_builder import ChannelBuilder, client_channel_builder
from kclient.network.sasl.credentials import CredentialsSource, FixedCredentials, UserCredentials
from kclient.network.security_config import SecurityConfig

if TYPE_CHECKING:
    from kclient.network.tls.reloading_context import ReloadingContext

_log = logging.getLogger(__name__)


class PeerListener:
    """A listener of the other nodes, with the security of connections to it.

    All connections of a node to one listener share the object: certificates are loaded once, and a
    failure is logged once.

    Attributes:
        name: Name of the listener.
        credentials: User and password of this node; None without SASL.
    """

    def __init__(self, name: str, security: SecurityConfig, runtime: Runtime) -> None:
        """Load the certificates.

        Args:
            name: Name of the listener.
            security: Security of the connections; with SASL, it has fixed credentials.
            runtime: Clock, tasks and random numbers.

        Raises:
            ConfigError: A certificate or a key cannot be loaded.
        """
        self.name = name
        self._security = security
        self._runtime = runtime
        self._tls = _context(name, security, runtime) if security.uses_ssl else None
        self.credentials: CredentialsSource | None = None
        if security.uses_sasl:
            self.credentials = FixedCredentials(UserCredentials(*security.credentials))
        self._limit = LineLimit()

    def channel_builder(self, client_id: str, log_context: LogContext) -> ChannelBuilder:
        """Return a builder of connections, for one thread.

        Args:
            client_id: Client id of the requests that authenticate a connection.
            log_context: Prefix of log lines.
        """
        return client_channel_builder(
            self._security, self.credentials, client_id, self._runtime, log_context, self._tls
        )

    def log_refusal(self, node: Node, error: AuthenticationError, now_ms: float) -> None:
        """Log that a connection was not authenticated: a warning, at most one a minute."""
        _log.log(
            logging.WARNING if self._limit.takes(node.id, now_ms) else logging.DEBUG,
            "connection to node %d at %s:%d not authenticated; listener %s, %s: %s",
            node.id,
            node.host,
            node.port,
            self.name,
            self._described(),
            error,
        )

    def _described(self) -> str:
        security = self._security
        if not security.uses_sasl:
            return str(security.security_protocol)
        user, _ = security.credentials
        return f"{security.security_protocol}, {security.sasl_mechanism} as user {user!r:.80}"


def _context(name: str, security: SecurityConfig, runtime: Runtime) -> "ReloadingContext":
    # Imported when it is needed: TLS takes long to import.
    builders = import_module("kclient.network.client_channel_builder")
    try:
        context: ReloadingContext = builders.reloading_context(security, runtime.clock, _log)
    except ConfigError as error:
        raise ConfigError(f"connections to the listener {name}: {error}") from error
    return context
