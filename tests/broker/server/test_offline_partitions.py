"""Partitions whose logs could not be opened when their topic was created."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kclient.broker.controller.topic_control import PartitionsRequest, TopicRequest
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import NONE, CoordinatorLoadInProgressError, code_of
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from tests.support.checks.waiting import wait_until
from tests.support.virtual.controller_calls import BrokerCalls, create_partitions, create_topic


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


@pytest.fixture
def files() -> FullDisk:
    return FullDisk()


@pytest.fixture
def broker(tmp_path: Path, files: FullDisk) -> Iterator[BrokerServer]:
    config = BROKER_CONFIG.parse(
        {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    broker = BrokerServer(config, system_runtime()._replace(files=files))
    broker.start()
    yield broker
    broker.stop()


def test_concurrently_opened_partition_is_one_object(broker: BrokerServer, files: FullDisk) -> None:
    """A request and a metadata change open it concurrently and use the same object."""
    controller, replicas = BrokerCalls(broker.services), broker.services.replica_manager
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
    assert replicas.partition(TopicPartition("t", 1)).is_leader


def test_groups_are_served_once_their_partition_can_be_opened(
    broker: BrokerServer, files: FullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a request for the partition, and without another leader."""
    groups, where = broker.services.groups, TopicPartition("t", 0)

    def commit() -> int:
        codes: dict[TopicPartition, int] = {}
        offset = CommittedOffset(7, -1, "", 0, None)
        groups.commit_offsets("group", ("", None, -1), {where: offset}, codes.update)
        return codes[where]

    files.is_full = True
    create_topic(BrokerCalls(broker.services), TopicRequest(CONSUMER_OFFSETS, 1, 1))
    assert commit() == code_of(CoordinatorLoadInProgressError)
    files.is_full = False
    wait_until(lambda: commit() == NONE, "the offset is committed")
    assert "loading is retried" in caplog.text
    assert "no space left on device" in caplog.text
