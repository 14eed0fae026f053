"""Channel builders by security protocol, and the host name that they get."""

from kclient.common.runtime import StreamSocket
from kclient.network.authenticator import ANONYMOUS
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool
from kclient.network.selector import Selector
from tests.support.virtual.virtual_home import IP, VirtualHome


class RecordingBuilder(PlaintextChannelBuilder):
    """Builder that records the host name of each channel."""

    def __init__(self) -> None:
        self.hosts: dict[str, str] = {}

    def build_channel(
        self,
        channel_id: str,
        stream: StreamSocket,
        max_receive_size: int,
        pool: MemoryPool,
        peer_host: str,
    ) -> KafkaChannel:
        self.hosts[channel_id] = peer_host
        return super().build_channel(channel_id, stream, max_receive_size, pool, peer_host)


def test_builder_gets_configured_host_of_client_and_none_of_server() -> None:
    home, builder = VirtualHome(), RecordingBuilder()
    runtime = home.runtime
    selector = Selector(runtime.net, runtime.clock, channel_builder=builder)
    listener = runtime.net.listen((IP, 9092), 10)
    selector.connect("client", (IP, 9092), host="kafka.example")
    selector.poll(10, home.clock.now_ms)
    selector.register("server", listener.accept())
    selector.poll(10, home.clock.now_ms)
    assert builder.hosts == {"client": "kafka.example", "server": ""}
    server = selector.channel("server")
    assert server is not None
    assert server.principal() == ANONYMOUS
    assert str(server.principal()) == "User:ANONYMOUS"
    selector.close()
