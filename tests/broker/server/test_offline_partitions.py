"""Partitions whose logs could not be opened when their topic was created."""

import errno
from collections.abc import Callable
from pathlib import Path

from kclient.broker.controller.topic_control import PartitionsRequest, TopicRequest
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from tests.support.virtual.controller_calls import create_partitions, create_topic


class FullDisk(SystemFiles):
    """Fails to create directories while `is_full`; calls `on_directory` before each."""

    def __init__(self) -> None:
        self.is_full = False
        self.on_directory: Callable[[str], object] = lambda _: None

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        if self.is_full and not self.exists(path):
            raise OSError(errno.ENOSPC, "no space left on device", str(path))
        self.on_directory(path.name)
        super().make_directory(path, flushed=flushed)


def test_concurrently_opened_partition_is_one_object(tmp_path: Path) -> None:
    """A request and a metadata change open it concurrently and use the same object."""
    files = FullDisk()
    config = BROKER_CONFIG.parse(
        {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    broker = BrokerServer(config, system_runtime()._replace(files=files))
    broker.start()
    try:
        controller, replicas = broker.services.controller, broker.services.replica_manager
        files.is_full = True
        create_topic(controller, TopicRequest("t"))
        files.is_full = False
        found = []

        def look_up(name: str) -> None:
            if name == "t-1":
                found.append(replicas.partition(TopicPartition("t", 0)))

        files.on_directory = look_up
        create_partitions(controller, [PartitionsRequest("t", 2)])
        assert found
        assert replicas.partition(TopicPartition("t", 0)) is found[0]
        assert replicas.partition(TopicPartition("t", 1)).leader == config.node_id
    finally:
        broker.stop()
