"""Channel builders: transport layer and authenticator of each security protocol."""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime, StreamSocket
from kclient.network.authenticator import NoAuthenticator
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.sasl.credentials import CredentialsSource
from kclient.network.security_config import SecurityConfig
from kclient.network.transport_layer import PlaintextTransportLayer

if TYPE_CHECKING:
    from kclient.network.tls.reloading_context import ReloadingContext


class ChannelBuilder(Protocol):
    """Builds the channels of one client or listener (Kafka: ChannelBuilder)."""

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        """Return a channel for a socket.

        Args:
            channel_id: Name of the channel.
            stream: Socket that is connecting or connected.
            max_receive_size: Largest frame.
            pool: Memory of the received frames.
            peer_host: Host name that a client connects to, as configured or advertised, for the
                verification of the peer; empty for an accepted connection.
        """
        ...


READ_AHEAD = 1024
"""Bytes that are read with the size of a frame: most frames, and few to copy of a larger one."""


class PlaintextChannelBuilder:
    """Channels without encryption and authentication (Kafka: PlaintextChannelBuilder).

    Args:
        read_ahead: Most bytes that are read together with the size of a frame.
    """

    _read_ahead = 0

    def __init__(self, read_ahead: int = 0) -> None:
        self._read_ahead = read_ahead

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
        return KafkaChannel(
            channel_id, transport, NoAuthenticator(), pool, max_receive_size, self._read_ahead
        )


def client_channel_builder(
    config: SecurityConfig,
    credentials: CredentialsSource | None,
    client_id: str,
    runtime: Runtime,
    log_context: LogContext,
    context: "ReloadingContext | None" = None,
) -> ChannelBuilder:
    """Return the channel builder of a client (Kafka: ChannelBuilders.clientChannelBuilder).

    The arguments are those of `ClientChannelBuilder`.

    Raises:
        ConfigError: A certificate or a key cannot be loaded.
    """
    if not config.uses_ssl and not config.uses_sasl:
        return PlaintextChannelBuilder(READ_AHEAD)
    # Imported when they are needed: TLS alone takes longer to import than the rest of a client.
    builders = import_module("kclient.network.client_channel_builder")
    builder: ChannelBuilder = builders.ClientChannelBuilder(
        config, credentials, client_id, runtime, log_context, context
    )
    return builder
