"""Foreign admin clients against the broker."""

from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaAdminClient

from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord

TIMEOUT = 10.0

native: Any = confluent_kafka.admin  # its annotations are incomplete


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Any:
    return native.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def outcome(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(TIMEOUT)


def settings(admin: Any, kind: Any, name: str) -> Any:
    return outcome(admin.describe_configs([native.ConfigResource(kind, name)]))


def test_create_describe_and_delete_topic(admin: Any) -> None:
    config = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    topic = native.NewTopic("life", num_partitions=2, replication_factor=1, config=config)
    outcome(admin.create_topics([topic]))
    with pytest.raises(KafkaException, match="already exists"):
        outcome(admin.create_topics([topic]))
    outcome(admin.create_partitions([native.NewPartitions("life", 5)]))
    with pytest.raises(KafkaException, match="would not be an increase"):
        outcome(admin.create_partitions([native.NewPartitions("life", 3)]))
    assert len(admin.list_topics("life", timeout=TIMEOUT).topics["life"].partitions) == 5
    outcome(admin.delete_topics(["life"]))
    assert "life" not in admin.list_topics(timeout=TIMEOUT).topics


def test_topic_configs(admin: Any) -> None:
    outcome(admin.create_topics([native.NewTopic("set", 1, 1, config={"retention.ms": "1000"})]))
    found = outcome(
        admin.describe_configs([native.ConfigResource(native.ResourceType.TOPIC, "set")])
    )
    retention, segment = found["retention.ms"], found["segment.bytes"]
    assert (retention.value, retention.source, retention.is_default) == ("1000", 1, False)
    assert [(synonym.name, synonym.value) for synonym in retention.synonyms.values()] == [
        ("retention.ms", "1000"),
        ("log.retention.hours", "168"),
    ]
    assert (segment.value, segment.source) == ("1073741824", 5)
    with pytest.raises(KafkaException):
        settings(admin, native.ResourceType.TOPIC, "unset")


def test_broker_configs(admin: Any, cluster: EmbeddedCluster) -> None:
    found = outcome(
        admin.describe_configs([native.ConfigResource(native.ResourceType.BROKER, "1")])
    )
    advertised = found["advertised.listeners"]
    assert advertised.value == f"PLAINTEXT://{cluster.bootstrap_servers}"
    assert (advertised.source, advertised.is_read_only) == (4, True)
    assert found["log.retention.hours"].value == "168"


def test_describe_cluster(admin: Any, cluster: EmbeddedCluster) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(TIMEOUT)
    assert found.cluster_id == cluster.broker.services.cluster_id
    assert [f"{node.host}:{node.port}" for node in found.nodes] == [cluster.bootstrap_servers]
    assert found.controller.id == 1
    assert len(found.authorized_operations) == 7


def test_list_and_delete_offsets(admin: Any, cluster: EmbeddedCluster, topic: str) -> None:
    client = FOREIGN_CLIENTS["confluent-kafka"](cluster.bootstrap_servers)
    client.produce(
        topic,
        [ForeignRecord(value=b"%d" % n, partition=0, timestamp_ms=1000 + n) for n in range(10)],
    )
    zero = ConfluentPartition(topic, 0)

    def offset(spec: Any) -> int:
        found = outcome(admin.list_offsets({zero: spec}))
        value: int = found.offset
        return value

    assert offset(native.OffsetSpec.latest()) == 10
    assert offset(native.OffsetSpec.max_timestamp()) == 9
    assert offset(native.OffsetSpec.for_timestamp(1004)) == 4
    deleted = outcome(admin.delete_records([ConfluentPartition(topic, 0, 6)]))
    assert deleted.low_watermark == 6
    assert offset(native.OffsetSpec.earliest()) == 6
    assert [record.offset for record in client.read_all(topic)] == [6, 7, 8, 9]
    with pytest.raises(KafkaException):
        outcome(admin.delete_records([ConfluentPartition(topic, 0, 11)]))


def test_kafka_python_describes(cluster: EmbeddedCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        (described,) = admin.describe_topics([topic])
        assert len(described["partitions"]) == 2
        assert topic in admin.list_topics()
    finally:
        admin.close()
