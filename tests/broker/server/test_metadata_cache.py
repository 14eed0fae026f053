"""Order in which a change of the metadata becomes visible to handlers."""

from pathlib import Path

from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.system_files import SystemFiles
from kclient.network.system_runtime import system_runtime
from tests.support.virtual.controller_calls import create_topic


class ObservedFiles(SystemFiles):
    """Files that report each partition directory before it is created."""

    def __init__(self) -> None:
        super().__init__()
        self.broker: BrokerServer | None = None
        self.seen: list[tuple[str, bool]] = []

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        if self.broker is not None:
            self.seen.append((path.name, "t" in self.broker.services.metadata.image.topics))
        super().make_directory(path, flushed=flushed)


def test_handlers_see_topic_after_its_partitions_are_open(tmp_path: Path) -> None:
    files = ObservedFiles()
    config = BROKER_CONFIG.parse(
        {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    broker = BrokerServer(config, system_runtime()._replace(files=files))
    broker.start(threads=False)
    try:
        files.broker = broker
        create_topic(broker.services.controller, TopicRequest("t"))
        assert set(files.seen) == {("t-0", False)}
        assert "t" in broker.services.metadata.image.topics
        assert broker.services.metadata.image is broker.services.controller.image
    finally:
        broker.stop()
