"""Channel builders: transport layer and authenticator of each security protocol."""

from typing import Protocol

from kclient.common.runtime import StreamSocket
from kclient.network.authenticator import NoAuthenticator
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.transport_layer import PlaintextTransportLayer


class ChannelBuilder(Protocol):
    """Builds the channels of one client or listener (Kafka: ChannelBuilder)."""

    def build_channel(
        self, channel_id: str, stream: StreamSocket, max_receive_size: int, pool: MemoryPool
    ) -> KafkaChannel:
        """Return a channel for a socket that is connecting or connected."""
        ...


class PlaintextChannelBuilder:
    """Channels without encryption and authentication (Kafka: PlaintextChannelBuilder)."""

    def build_channel(
        self, channel_id: str, stream: StreamSocket, max_receive_size: int, pool: MemoryPool
    ) -> KafkaChannel:
        """Return a channel for a socket that is connecting or connected."""
        transport = PlaintextTransportLayer(stream)
        return KafkaChannel(channel_id, transport, NoAuthenticator(), pool, max_receive_size)
