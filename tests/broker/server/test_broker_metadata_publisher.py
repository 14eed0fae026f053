"""Order and errors of what a broker does with an image, with components that record calls."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_batch_loader import Manifest
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.replication.delayed_operation import OperationTimer
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_metadata_publisher import BrokerMetadataPublisher
from kclient.broker.server.dynamic_broker_config import DynamicBrokerConfig
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.protocol.messages.metadata_records import ConfigRecord, TopicRecord

DEFAULTS = LogConfig.parse({}, LogConfig())
TOPIC_RESOURCE = 2


class Log:
    """Log as far as the publisher reads it."""

    def __init__(self, topic: str, topic_id: bytes | None, end_offset: int = 1) -> None:
        self.partition = TopicPartition(topic, 0)
        self.topic_id = topic_id
        self.log_end_offset = end_offset


class Components:
    """Logs, partitions, groups and cache of a broker; each call is recorded.

    Attributes:
        calls: Names of the calls in their order.
        configs: Settings with which the logs were loaded.
        deleted: Topics whose logs were deleted.
        errors: Errors of calls by name.
    """

    def __init__(
        self, *logs: Log, removed: Sequence[bytes] = (), stray: Sequence[str] = ()
    ) -> None:
        self.calls: list[str] = []
        self.configs: Mapping[str, LogConfig] = {}
        self.deleted: list[str] = []
        self.errors: dict[str, Exception] = {}
        self._logs = [cast("UnifiedLog", log) for log in logs]
        self._stray = [TopicPartition(name, 0) for name in stray]
        self.metadata = MetadataCache(SystemTasks(), OperationTimer(SystemTasks().condition()))
        replicas = SimpleNamespace(
            publish=lambda _delta, _image: self._call("partitions"),
            hosted=SimpleNamespace(set_aside_stray_logs=self._set_aside),
        )
        self.publisher = BrokerMetadataPublisher(
            DynamicBrokerConfig(BROKER_CONFIG.parse({"log.dir": "d"})),
            cast("LogManager", self),
            lambda image, topic: LogConfig.parse(image.topic_config(topic), DEFAULTS),
            cast("ReplicaManager", replicas),
            [lambda _delta, _image: self._call("groups")],
            self.metadata,
            lambda: set(removed),
        )

    def publish(self, image: MetadataImage) -> None:
        delta = MetadataDelta.between(self.metadata.image, image)
        self.publisher.on_metadata_update(delta, image, Manifest(is_snapshot=False))

    def load(self, configs: Mapping[str, LogConfig]) -> None:
        self._call("load")
        self.configs = configs

    def all_logs(self) -> list[UnifiedLog]:
        return self._logs

    def delete(self, *partitions: TopicPartition) -> None:
        self._call("delete")
        self.deleted += [each.topic for each in partitions]

    def _set_aside(self, _image: MetadataImage) -> list[TopicPartition]:
        self._call("set aside")
        return self._stray

    def _call(self, name: str) -> None:
        assert self.metadata.image.offset < 0, "the cache is last"
        self.calls.append(name)
        if name in self.errors:
            raise self.errors[name]


def image_of(*topics: str, offset: int = 5) -> MetadataImage:
    """Return an image with topics, whose retention is 1 s."""
    delta = MetadataDelta(MetadataImage())
    for name in topics:
        delta.replay(TopicRecord(name=name, topic_id=name.encode() * 16))
        delta.replay(
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=name, name="retention.ms", value="1000"
            )
        )
    return delta.apply(offset, 1, 0)


def test_first_image_loads_the_logs_and_the_cache_is_last() -> None:
    broker = Components()
    broker.publish(image_of("a"))
    assert broker.calls == ["load", "set aside", "partitions", "groups"]
    assert {name: config.retention_ms for name, config in broker.configs.items()} == {"a": 1000}
    assert broker.metadata.image.offset == 5


def test_later_image_is_applied_to_partitions_and_groups() -> None:
    broker = Components()
    broker.publish(image_of("a"))
    broker.calls.clear()
    broker.metadata.image = MetadataImage()
    broker.publish(image_of("a", "b", offset=6))
    assert broker.calls == ["partitions", "groups"]
    assert broker.metadata.image.offset == 6


def test_logs_of_deleted_topics_are_deleted_at_the_first_image(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Components(
        Log("a", b"a" * 16),
        Log("removed", b"r" * 16),
        Log("without-id", None, end_offset=0),
        Log("records-without-id", None),
        Log("a", None, end_offset=0),
        removed=[b"r" * 16],
        stray=["records-without-id"],
    )
    broker.publish(image_of("a"))
    assert broker.deleted == ["removed", "without-id"]
    assert broker.calls[:3] == ["load", "delete", "set aside"]
    assert "records-without-id-0: set aside: the metadata does not assign it" in caplog.text


def test_failed_disk_of_a_partition_does_not_stop_the_publication(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Components()
    broker.errors["partitions"] = KafkaStorageError("disk error")
    broker.publish(image_of("a"))
    assert broker.calls[-2:] == ["partitions", "groups"]
    assert broker.metadata.image.offset == 5
    assert "could not be applied completely: disk error" in caplog.text


def test_defect_of_a_component_is_raised_after_the_publication() -> None:
    broker = Components()
    broker.errors["partitions"] = ValueError("a defect")
    with pytest.raises(ValueError, match="a defect"):
        broker.publish(image_of("a"))
    assert broker.metadata.image.offset == 5


def test_logs_that_cannot_be_loaded_are_not_published() -> None:
    broker = Components()
    broker.errors["load"] = KafkaStorageError("disk error")
    with pytest.raises(KafkaStorageError):
        broker.publish(image_of("a"))
    assert broker.metadata.image.offset == -1
    del broker.errors["load"]
    broker.publish(image_of("a"))
    assert broker.calls.count("load") == 2
