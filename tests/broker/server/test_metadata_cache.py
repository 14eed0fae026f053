"""Order in which a change of the metadata becomes visible to handlers."""

import threading
from collections.abc import Callable
from math import inf
from pathlib import Path

from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.replication.delayed_operation import OperationTimer
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_runtime import system_runtime
from tests.support.virtual.controller_calls import BrokerCalls, create_topic


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
        create_topic(BrokerCalls(broker.services), TopicRequest("t"))
        assert set(files.seen) == {("t-0", False)}
        assert "t" in broker.services.metadata.image.topics
    finally:
        broker.stop()


def has(offset: int) -> Callable[[MetadataImage], bool]:
    return lambda image: image.offset >= offset


def test_caller_waits_until_the_image_has_a_change() -> None:
    cache = MetadataCache(SystemTasks(), OperationTimer(threading.Condition()))
    seen: list[int] = []
    cache.await_image(has(-1), inf, lambda: seen.append(cache.image.offset))
    for offset in (3, 5):
        cache.await_image(has(offset), inf, lambda: seen.append(cache.image.offset))
    assert seen == [-1]
    cache.publish(MetadataImage(offset=4))
    assert seen == [-1, 4]
    cache.publish(MetadataImage(offset=5))
    assert seen == [-1, 4, 5]


def test_caller_waits_no_longer_than_its_deadline() -> None:
    timer = OperationTimer(threading.Condition())
    cache = MetadataCache(SystemTasks(), timer)
    seen: list[int] = []
    cache.await_image(has(3), 100.0, lambda: seen.append(cache.image.offset))
    timer.advance(99.0)
    assert seen == []
    timer.advance(100.0)
    assert seen == [-1]
    cache.publish(MetadataImage(offset=3))
    assert seen == [-1]
