"""Transactions of a principal without rights, and with rights that are added one by one."""

from collections.abc import Iterator

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kclient.consumer import ConsumerGroupMetadata
from kclient.errors import (
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
)
from kclient.testing import EmbeddedCluster

TOPICS = ("open", "closed")
GROUP = ConsumerGroupMetadata("group")
TIMEOUT_S = 20.0


def rule(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourcePattern(kind, name),
        AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW),
    )


WRITE_OPEN = rule(ResourceType.TOPIC, "open", AclOperation.WRITE)
WRITE_CLOSED = rule(ResourceType.TOPIC, "closed", AclOperation.WRITE)
USE_ID = rule(ResourceType.TRANSACTIONAL_ID, "t", AclOperation.WRITE)
READ_GROUP = rule(ResourceType.GROUP, "group", AclOperation.READ)
READ_OPEN = rule(ResourceType.TOPIC, "open", AclOperation.READ)


class World:
    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.admin = AdminClient(cluster.client_config())
        self.admin.create_topics([NewTopic(topic, 1) for topic in TOPICS]).raise_for_errors()

    def allow(self, *rules: AclBinding) -> None:
        self.admin.create_acls(rules)

    def producer(self) -> Producer[bytes, bytes]:
        options = {**self.cluster.client_config("alice"), "transactional.id": "t"}
        return Producer(options)

    def committed(self, topic: str) -> list[bytes | None]:
        options = self.cluster.client_config()
        with Consumer({**options, "isolation.level": "read_committed"}) as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning()
            end = consumer.end_offsets([partition])[partition]
            found: list[bytes | None] = []
            while consumer.position(partition) < end:
                found += [each.value for each in consumer.poll(0.1)]
            return found


@pytest.fixture
def world() -> Iterator[World]:
    users = {"alice": "alice-secret"}
    with EmbeddedCluster(security="sasl_plaintext", users=users, acls=[]) as cluster:
        made = World(cluster)
        yield made
        made.admin.close()


def test_initialization_succeeds_once_it_is_allowed(world: World) -> None:
    with world.producer() as producer:
        with pytest.raises(TransactionalIdAuthorizationError):
            producer.init_transactions(TIMEOUT_S)
        world.allow(USE_ID, WRITE_OPEN)
        producer.init_transactions(TIMEOUT_S)
        with producer.transaction():
            producer.send("open", b"a")
    assert world.committed("open") == [b"a"]


def test_denied_topic_fails_the_transaction_alone(world: World) -> None:
    world.allow(USE_ID, WRITE_OPEN)
    with world.producer() as producer:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.send("open", b"lost").result(TIMEOUT_S)
        with pytest.raises(TopicAuthorizationError, match="'closed'"):
            producer.send("closed", b"denied").result(TIMEOUT_S)
        with pytest.raises(TransactionAbortableError, match="'closed'"):
            producer.commit_transaction()
        producer.abort_transaction()
        world.allow(WRITE_CLOSED)
        with producer.transaction():
            producer.send("open", b"a")
            producer.send("closed", b"b")
    assert world.committed("open") == [b"a"]
    assert world.committed("closed") == [b"b"]


def test_denied_group_fails_the_transaction_alone(world: World) -> None:
    world.allow(USE_ID, WRITE_OPEN, READ_OPEN)
    offsets = {TopicPartition("open", 0): 1}
    with world.producer() as producer:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        with pytest.raises(GroupAuthorizationError, match="READ on it"):
            producer.send_offsets_to_transaction(offsets, GROUP)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        world.allow(READ_GROUP)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(offsets, GROUP)
        producer.commit_transaction()
    found = world.admin.list_consumer_group_offsets("group")
    assert found[TopicPartition("open", 0)].offset == 1
