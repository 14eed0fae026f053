"""Channels of a listener: transport layer and authenticator of its security protocol."""

from functools import partial

from kclient.broker.network.listener_security import ListenerSecurity, MechanismSettings
from kclient.broker.network.sasl_server_authenticator import (
    BrokerResponses,
    SaslServerAuthenticator,
    ServerMechanism,
)
from kclient.common.runtime import Clock, StreamSocket
from kclient.network.channel_builder import ChannelBuilder, PlaintextChannelBuilder
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.sasl.plain_server import PlainSaslServer, PlainUsers
from kclient.network.transport_layer import PlaintextTransportLayer

READ_AHEAD = 1024
"""Bytes that are read with the size of a frame: most requests, and few to copy of a larger one."""


def server_channel_builder(
    security: ListenerSecurity, responses: BrokerResponses, clock: Clock
) -> ChannelBuilder:
    """Return the channel builder of a listener (Kafka: ChannelBuilders.serverChannelBuilder)."""
    if not security.uses_sasl:
        return PlaintextChannelBuilder(READ_AHEAD)
    return ServerChannelBuilder(security, responses, clock)


class ServerChannelBuilder:
    """Channels with SASL (Kafka: SaslChannelBuilder)."""

    def __init__(
        self, security: ListenerSecurity, responses: BrokerResponses, clock: Clock
    ) -> None:
        self._security = security
        self._responses = responses
        self._clock = clock
        self._mechanisms = {
            name: _server_mechanism(settings) for name, settings in security.mechanisms.items()
        }
        # An authenticator reads from the transport, where no bytes of a later exchange may lack.
        self._read_ahead = 0 if security.limits_sessions else READ_AHEAD

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        """Return a channel for a socket."""
        transport = PlaintextTransportLayer(stream)
        authenticator = SaslServerAuthenticator(
            channel_id,
            transport,
            self._mechanisms,
            self._responses,
            self._clock,
            max_receive_size=self._security.max_receive_size,
            failure_delay_ms=self._security.failed_authentication_delay_ms,
        )
        return KafkaChannel(
            channel_id, transport, authenticator, pool, max_receive_size, self._read_ahead
        )


def _server_mechanism(settings: MechanismSettings) -> ServerMechanism:
    users = PlainUsers(settings.users)
    return ServerMechanism(partial(PlainSaslServer, users), settings.max_reauth_ms)
