"""Construction of a network client."""

from kclient.client.client_config import ClientConfig
from kclient.client.metadata import Metadata
from kclient.client.network_client_builder import build_network_client
from kclient.common.config_def import ConfigDef
from tests.support.virtual.virtual_home import VirtualHome

CLIENT = ConfigDef("client", ClientConfig)


def test_client_is_built_without_network_access() -> None:
    home = VirtualHome()
    runtime, net = home.runtime, home.net
    config = CLIENT.parse(
        {
            "bootstrap.servers": "nowhere.example:9092",
            "client.id": "mine",
            "metadata.recovery.strategy": "NONE",
            "reconnect.backoff.ms": 7,
        }
    )
    assert (config.client_id, config.rebootstraps) == ("mine", False)
    assert config.reconnect_backoff_ms == 7
    metadata = Metadata(runtime)
    client = build_network_client(config, runtime, metadata, client_id="other")
    assert [node.host for node in metadata.cluster().nodes.values()] == ["nowhere.example"]
    assert net.resolved == []
    client.close()
