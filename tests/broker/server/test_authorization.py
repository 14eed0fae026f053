"""Broker with an authorizer, as clients see it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient import AdminClient, Consumer, Producer
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kclient.admin.new_topic import NewTopic
from kclient.broker.authorizer.standard_authorizer import STANDARD_AUTHORIZER
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    SecurityDisabledError,
    TopicAuthorizationError,
)
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.fetch import FetchResponse
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import TIMEOUT, Wire, batch, fetch_request

SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
OPEN = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
DENIED = 29
READ = AclOperation.READ


def rule(
    kind: ResourceType,
    name: str,
    operation: AclOperation = AclOperation.ALL,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    host: str = "*",
) -> AclBinding:
    entry = AccessControlEntry("User:ANONYMOUS", host, operation, permission)
    return AclBinding(ResourcePattern(kind, name), entry)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(data_dir=tmp_path, config=OPEN) as running:
        yield running


def test_denied_records_fail_with_their_topic(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    with AdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics(
            [NewTopic("read-only", 1, 1), NewTopic("free", 1, 1)]
        ).raise_for_errors()
        deny = AclPermissionType.DENY
        everything = rule(ResourceType.TOPIC, "read-only")
        admin.create_acls(
            [everything, rule(ResourceType.TOPIC, "read-only", AclOperation.WRITE, deny)]
        )
    with Producer(bootstrap_servers=servers) as producer:
        text = "not authorized to write to topic 'read-only'; an ACL has to allow WRITE"
        refused, written = producer.send("read-only", b"a"), producer.send("free", b"b")
        with pytest.raises(TopicAuthorizationError, match=text):
            refused.result(10)
        assert written.result(10).offset == 0
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition("read-only", 0)])
        assert consumer.end_offsets([TopicPartition("read-only", 0)])


def test_acls_are_kept_over_a_restart(cluster: EmbeddedCluster) -> None:
    found = rule(ResourceType.GROUP, "g", AclOperation.READ)
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_acls(found)
        admin.create_acls(found)
    cluster.kill()
    cluster.start()
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert admin.describe_acls() == [found]
        condition = found.to_filter()
        assert admin.delete_acls(condition) == {condition: [found]}
        assert admin.describe_acls() == []


def test_acls_restrict_a_host(cluster: EmbeddedCluster) -> None:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("t", 1, 1))
        admin.create_acls(rule(ResourceType.TOPIC, "t", host="127.0.0.1"))
    other = socket.create_connection((host, int(port)), TIMEOUT, source_address=("127.0.0.2", 0))
    with Wire(cluster.bootstrap_servers, other) as wire:
        assert wire.produce("t", batch([b"a"])).error_code == DENIED
        assert wire.fetch("t", 0).error_code == DENIED
    with Wire(cluster.bootstrap_servers) as wire:
        assert wire.produce("t", batch([b"a"])).error_code == 0
        assert wire.fetch("t", 0).error_code == 0


@pytest.mark.fault("A11")
def test_deletion_of_an_acl_leaves_the_others_of_its_resource(cluster: EmbeddedCluster) -> None:
    """Also after a restart (CVE-2024-27309)."""
    topic, deny = ResourceType.TOPIC, AclPermissionType.DENY
    allowed = rule(topic, "t")
    denied = [rule(topic, "t", operation, deny) for operation in (AclOperation.WRITE, READ)]

    def outcomes() -> list[int]:
        with Wire(cluster.bootstrap_servers) as wire:
            return [wire.produce("t", batch([b"a"])).error_code, wire.fetch("t", 0).error_code]

    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("t", 1, 1))
        admin.create_acls([allowed, *denied]).raise_for_errors()
        assert outcomes() == [DENIED, DENIED]
        condition = denied[0].to_filter()
        assert admin.delete_acls(condition) == {condition: [denied[0]]}
    wait_until(lambda: outcomes() == [0, DENIED], "the deletion has effect")
    cluster.kill()
    cluster.start()
    assert outcomes() == [0, DENIED]
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert sorted(admin.describe_acls()) == sorted([allowed, denied[1]])


@pytest.mark.fault("A6")
def test_client_cannot_fetch_as_a_replica(cluster: EmbeddedCluster) -> None:
    """Neither with READ on the topic, nor with a replica that exists (CVE-2018-1288)."""
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("t", 1, 1))
        admin.create_acls(
            [
                rule(ResourceType.TOPIC, "t"),
                rule(ResourceType.CLUSTER, "kafka-cluster", AclOperation.DESCRIBE),
            ]
        )
    with Wire(cluster.bootstrap_servers) as wire:
        assert wire.produce("t", batch([b"a"])).error_code == 0
        assert wire.fetch("t", 0).error_code == 0
        for replica_id in (1, 2, 2**31 - 1):
            request = fetch_request("t", 0)
            request.replica_id = replica_id
            response = wire.ask(request, 12, FetchResponse)
            codes = [part.error_code for topic in response.responses for part in topic.partitions]
            assert response.error_code or all(codes), response
            assert not any(
                part.records for topic in response.responses for part in topic.partitions
            )


def test_nothing_is_allowed_without_acls_and_super_users() -> None:
    config = {"authorizer.class.name": STANDARD_AUTHORIZER}
    with (
        EmbeddedCluster(config=config) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        assert admin.list_topics() == []
        with pytest.raises(TopicAuthorizationError):
            admin.create_topics(NewTopic("t", 1, 1))
        with pytest.raises(ClusterAuthorizationError):
            admin.describe_acls()


def test_super_users_need_no_acls() -> None:
    with (
        EmbeddedCluster(config=SECURED) as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers) as producer,
    ):
        assert producer.send("t", b"a").result(10).offset == 0


def test_acls_need_an_authorizer() -> None:
    with (
        EmbeddedCluster() as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
        pytest.raises(SecurityDisabledError),
    ):
        admin.describe_acls()


def test_other_authorizers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"authorizer.class.name: got 'kafka\.Other'"):
        EmbeddedCluster(config={"authorizer.class.name": "kafka.Other"}).start()
