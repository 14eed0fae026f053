"""Channels of a client with TLS, with SASL, or with both."""

import logging
from functools import partial

from kclient.common.log_context import LogContext
from kclient.common.runtime import Clock, Runtime, StreamSocket
from kclient.network.authenticator import Authenticator, NoAuthenticator
from kclient.network.endpoint import is_loopback
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.sasl.client_authenticator import SaslClientAuthenticator
from kclient.network.sasl.credentials import (
    CredentialsSource,
    KerberosLogin,
    OAuthBearerToken,
)
from kclient.network.sasl.gssapi import GssapiSaslClient
from kclient.network.sasl.kerberos import acquire_ticket
from kclient.network.sasl.mechanism import SaslClient
from kclient.network.sasl.oauthbearer import OAUTHBEARER, OAuthBearerSaslClient
from kclient.network.sasl.plain import PLAIN, PlainSaslClient
from kclient.network.sasl.scram import SCRAM_MECHANISMS, SaltedPasswords, ScramSaslClient
from kclient.network.sasl.service_tickets import ServiceTickets
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.client_context import client_context
from kclient.network.tls.reloading_context import ReloadingContext
from kclient.network.tls.session_cache import TlsSessionCache
from kclient.network.tls.ssl_transport_layer import READ_SIZE, SslTransportLayer
from kclient.network.transport_layer import PlaintextTransportLayer, TransportLayer

_READABLE = frozenset({PLAIN, OAUTHBEARER})
"""Mechanisms that send credentials as they are; others prove that they know them."""


class ClientChannelBuilder:
    """Channels with TLS and SASL (Kafka: SslChannelBuilder, SaslChannelBuilder).

    Args:
        config: How the connections are protected.
        credentials: Credentials for SASL, if it is used.
        client_id: Client id of the requests that authenticate a connection.
        runtime: Clock and random numbers.
        log_context: Prefix of the client's log lines.
        context: TLS context, if several builders share it; None for one of their own.

    Raises:
        ConfigError: A certificate or a key cannot be loaded.
    """

    def __init__(
        self,
        config: SecurityConfig,
        credentials: CredentialsSource | None,
        client_id: str,
        runtime: Runtime,
        log_context: LogContext,
        context: ReloadingContext | None = None,
    ) -> None:
        self._credentials = credentials
        self._log = log_context.logger(__name__)
        self._log_context = log_context
        self._config = config
        self._client_id = client_id
        self._runtime = runtime
        self._context = context
        if context is None and config.uses_ssl:
            self._context = reloading_context(config, runtime.clock, self._log)
        self._sends_readable_credentials = (
            config.uses_sasl and not config.uses_ssl and config.sasl_mechanism in _READABLE
        )
        self._salted_passwords = SaltedPasswords(runtime.tasks)
        self._tickets = ServiceTickets(acquire_ticket, runtime, log_context)
        self._sessions = TlsSessionCache()
        self._scratch = bytearray(READ_SIZE if config.uses_ssl else 0)

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        """Return a channel for a socket."""
        if self._sends_readable_credentials and not is_loopback(peer_host):
            self._sends_readable_credentials = False  # warned of once for each client
            self._log.warning(
                "security.protocol=SASL_PLAINTEXT: %s sends the credentials to %s in readable form;"
                " use SASL_SSL",
                self._config.sasl_mechanism,
                peer_host,
            )
        transport = self._transport(stream, peer_host)
        authenticator: Authenticator = NoAuthenticator()
        if self._credentials is not None:
            authenticator = SaslClientAuthenticator(
                channel_id,
                transport,
                partial(
                    sasl_client,
                    self._config.sasl_mechanism or "",
                    self._credentials,
                    self._salted_passwords,
                    self._tickets,
                    verified_name(peer_host) or "",
                ),
                self._credentials,
                self._client_id,
                self._runtime,
                self._log_context,
            )
        return KafkaChannel(channel_id, transport, authenticator, pool, max_receive_size)

    def _transport(self, stream: StreamSocket, peer_host: str) -> TransportLayer:
        if self._context is None:
            return PlaintextTransportLayer(stream)
        return SslTransportLayer(
            stream,
            self._context.current(),
            self._scratch,
            server_hostname=verified_name(peer_host),
            sessions=self._sessions,
        )


def reloading_context(
    config: SecurityConfig,
    clock: Clock,
    log: logging.LoggerAdapter[logging.Logger] | logging.Logger,
) -> ReloadingContext:
    """Return the TLS context of a configuration, which follows changes of its files.

    Raises:
        ConfigError: A certificate or a key cannot be loaded.
    """
    locations = (config.ssl_truststore_location, config.ssl_keystore_location)
    files = [path for path in locations if path is not None]
    return ReloadingContext(files, partial(client_context, config), clock, log)


def verified_name(host: str) -> str | None:
    """Return the name of a host as certificates have it: without a zone or the final dot."""
    return host.partition("%")[0].removesuffix(".") or None


def sasl_client(
    mechanism: str,
    source: CredentialsSource,
    passwords: SaltedPasswords,
    tickets: ServiceTickets,
    host: str,
) -> SaslClient:
    """Return the client of a mechanism, for one authentication with the current credentials."""
    credentials = source.current()
    if isinstance(credentials, KerberosLogin):
        return GssapiSaslClient(partial(tickets.new_context, credentials, host))
    if isinstance(credentials, OAuthBearerToken):
        return OAuthBearerSaslClient(credentials)
    if mechanism == PLAIN:
        return PlainSaslClient(credentials.user, credentials.password)
    return ScramSaslClient(
        SCRAM_MECHANISMS[mechanism],
        credentials.user,
        credentials.password,
        passwords.get,
        is_token=credentials.is_token,
    )
