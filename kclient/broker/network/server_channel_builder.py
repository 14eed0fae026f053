"""Channels of a listener: transport layer and authenticator of its security protocol."""

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kclient.broker.network.listener_security import (
    ListenerSecurity,
    MechanismSettings,
    TlsSettings,
    TokenSettings,
)
from kclient.broker.network.sasl_server_authenticator import (
    BrokerResponses,
    SaslServerAuthenticator,
    ServerMechanism,
)
from kclient.broker.network.ssl_server_authenticator import SslServerAuthenticator
from kclient.common.errors import ConfigError
from kclient.common.runtime import Clock, Runtime, StreamSocket
from kclient.network.authenticator import Authenticator, NoAuthenticator
from kclient.network.channel_builder import READ_AHEAD, ChannelBuilder, PlaintextChannelBuilder
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.sasl.oauthbearer_server import OAuthBearerSaslServer, Validator
from kclient.network.sasl.plain_server import PlainSaslServer, PlainUsers
from kclient.network.sasl.scram import SCRAM_MECHANISMS
from kclient.network.sasl.scram_server import ScramCredentials, ScramSaslServer
from kclient.network.sasl.server_mechanism import SaslServer
from kclient.network.tls.ssl_principal_mapper import SslPrincipalMapper
from kclient.network.transport_layer import PlaintextTransportLayer, TransportLayer

if TYPE_CHECKING:
    from kclient.network.tls.ssl_transport_layer import SslTransportLayer

_log = logging.getLogger(__name__)

_TIMEOUT_MS = 10_000
"""Time for the connection to an identity provider, and for its response."""


class AuthenticationContext(NamedTuple):
    """What the authentication of clients needs from the broker.

    Attributes:
        responses: Responses of the request handlers.
        scram_credentials: Credentials of all users for SCRAM.
    """

    responses: BrokerResponses
    scram_credentials: ScramCredentials


def server_channel_builder(
    security: ListenerSecurity, context: AuthenticationContext, runtime: Runtime
) -> ChannelBuilder:
    """Return the channel builder of a listener, for one network thread.

    Kafka: ChannelBuilders.serverChannelBuilder.

    Raises:
        ConfigError: A certificate or a key cannot be loaded.
    """
    if security.tls is None and not security.protocol.uses_sasl:
        return PlaintextChannelBuilder(READ_AHEAD)
    return ServerChannelBuilder(security, context, runtime)


class ServerChannelBuilder:
    """Channels with TLS and SASL (Kafka: SslChannelBuilder, SaslChannelBuilder)."""

    def __init__(
        self, security: ListenerSecurity, context: AuthenticationContext, runtime: Runtime
    ) -> None:
        self._security = security
        self._responses = context.responses
        self._clock = runtime.clock
        self._mechanisms = {
            name: ServerMechanism(
                _new_server(name, settings, context.scram_credentials, runtime),
                settings.max_reauth_ms,
            )
            for name, settings in security.mechanisms.items()
        }
        self._tls = None if security.tls is None else _tls_transports(security.tls, runtime.clock)
        rules = "DEFAULT" if security.tls is None else security.tls.principal_mapping_rules
        self._mapper = SslPrincipalMapper(rules)
        # An authenticator reads from the transport, where no bytes of a later exchange may lack;
        # TLS reads ahead itself.
        reads_ahead = security.tls is None and not security.limits_sessions
        self._read_ahead = READ_AHEAD if reads_ahead else 0

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        """Return a channel for a socket."""
        transport: TransportLayer
        authenticator: Authenticator = NoAuthenticator()
        if self._tls is None:
            transport = PlaintextTransportLayer(stream)
        else:
            transport = encrypted = self._tls(stream)
            authenticator = SslServerAuthenticator(encrypted.peer_certificate, self._mapper)
        if self._security.protocol.uses_sasl:
            authenticator = self._sasl(channel_id, transport)
        return KafkaChannel(
            channel_id, transport, authenticator, pool, max_receive_size, self._read_ahead
        )

    def _sasl(self, channel_id: str, transport: TransportLayer) -> SaslServerAuthenticator:
        return SaslServerAuthenticator(
            channel_id,
            transport,
            self._mechanisms,
            self._responses,
            self._clock,
            max_receive_size=self._security.max_receive_size,
            failure_delay_ms=self._security.failed_authentication_delay_ms,
        )


class _TlsTransports(Protocol):
    """Returns the transport layer with TLS of a socket."""

    def __call__(self, stream: StreamSocket) -> "SslTransportLayer": ...


def _tls_transports(tls: TlsSettings, clock: Clock) -> _TlsTransports:
    # Imported when they are needed: TLS takes long to import.
    contexts = import_module("kclient.network.tls.server_context")
    layers = import_module("kclient.network.tls.ssl_transport_layer")
    reloading = import_module("kclient.network.tls.reloading_context")
    create = partial(contexts.server_context, tls.stores, tls.versions, tls.client_auth)
    locations = (tls.stores.truststore_location, tls.stores.keystore_location)
    files = [path for path in locations if path is not None]
    context = reloading.ReloadingContext(files, create, clock, _log)
    scratch = bytearray(layers.READ_SIZE)

    def transport(stream: StreamSocket) -> "SslTransportLayer":
        made: SslTransportLayer = layers.SslTransportLayer(
            stream, context.current(), scratch, server_side=True
        )
        return made

    return transport


def _new_server(
    mechanism: str, settings: MechanismSettings, credentials: ScramCredentials, runtime: Runtime
) -> Callable[[], SaslServer]:
    if settings.tokens is not None:
        return partial(OAuthBearerSaslServer, _validator(settings.tokens, runtime))
    if mechanism in SCRAM_MECHANISMS:
        return partial(ScramSaslServer, SCRAM_MECHANISMS[mechanism], credentials)
    return partial(PlainSaslServer, PlainUsers(settings.users))


def _validator(tokens: TokenSettings, runtime: Runtime) -> Validator:
    try:
        module = import_module("kclient.network.sasl.token_validator")
        key_sets = import_module("kclient.network.sasl.key_sets")
    except ImportError as error:
        raise ConfigError(
            f"{tokens.setting}: got it without the package cryptography; install"
            f" kclient-kafka[oauth] ({error})"
        ) from error
    if isinstance(tokens.keys, str):
        source = key_sets.KeySetFile(tokens.keys, runtime.clock)
    else:
        contexts = import_module("kclient.network.tls.client_context")
        clients = import_module("kclient.network.https_client")
        context = contexts.https_context("https.ca.location", tokens.authorities)
        client = clients.HttpsClient(
            tokens.keys, context, clients.HttpTimeouts(_TIMEOUT_MS, _TIMEOUT_MS), runtime.clock
        )
        source = key_sets.KeySetUrl(tokens.keys, client, runtime, tokens.refresh_ms)
    validator: Validator = module.TokenValidator(
        tokens.setting, source, tokens.rules, runtime.clock
    )
    return validator
