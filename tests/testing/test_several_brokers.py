"""An embedded cluster of several brokers: replication, failover, restarts."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ElectionType,
    RaftVoterEndpoint,
    ResourcePattern,
    ResourceType,
)
from kclient.broker.server.raft_manager import RaftManager
from kclient.client.client_config import ClientOptions
from kclient.common.acls import CLUSTER_NAME
from kclient.common.broker_errors import (
    NotEnoughReplicasError,
    PreferredLeaderNotAvailableError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.common.errors import (
    ConfigError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaTimeoutError,
)
from kclient.common.types import TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until

T0 = TopicPartition("t", 0)
FIRST = 200


def in_sync(cluster: EmbeddedCluster, topic: str = "t") -> set[int]:
    """Return the in-sync replicas of a topic's first partition, as its leader knows them."""
    leader = cluster.leader_of(topic, 0)
    if leader is None or leader not in cluster.brokers:
        return set()
    hosted = cluster.brokers[leader].services.replica_manager.hosted
    partition = hosted.table.get(TopicPartition(topic, 0))
    return set() if partition is None else set(partition.in_sync.isr)


def values(
    cluster: EmbeddedCluster, count: int, options: ClientOptions | None = None
) -> list[bytes]:
    """Return the records of the topic t, as a consumer without a group reads them."""
    found: list[bytes] = []
    options = cluster.client_config() if options is None else options
    with Consumer(**options, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])

        def has_all() -> bool:
            found.extend(record.value or b"" for record in consumer.poll(timeout=0.2))
            return len(found) >= count

        wait_until(has_all, "all records are read")
    return found


def log_bytes(cluster: EmbeddedCluster, data_dir: Path, node: int) -> bytes:
    """Return the first segment of the topic t on a broker, up to its high watermark."""
    log = cluster.brokers[node].services.replica_manager.partition(T0).log
    assert log.high_watermark == log.log_end_offset
    return (data_dir / f"node-{node}" / "t-0" / f"{0:020}.log").read_bytes()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, data_dir=tmp_path) as started:
        yield started
    left = [each.name for each in threading.enumerate() if each.name.startswith("kclient-")]
    assert left == []


@pytest.mark.fault("B5")
def test_records_survive_the_loss_of_each_role(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sent: list[bytes] = []
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:

        def produce() -> None:
            batch = [b"%d" % number for number in range(len(sent), len(sent) + FIRST)]
            futures = [producer.send("t", value, partition=0) for value in batch]
            for future in futures:
                future.result(timeout=30)
            sent.extend(batch)

        produce()

        def leader() -> int | None:
            return cluster.leader_of("t", 0)

        def follower() -> int | None:
            return next(each for each in cluster.brokers if each != leader())

        def controller() -> int | None:
            return cluster.controller_id

        for role in (leader, follower, controller):
            wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
            wait_until(lambda: cluster.controller_id is not None, "a controller is active")
            victim = role()
            assert victim is not None
            cluster.kill(victim)
            produce()
            cluster.restart(victim)
    wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
    assert values(cluster, len(sent)) == sent

    def logs_are_equal() -> bool:
        partitions = [
            each.services.replica_manager.partition(T0) for each in cluster.brokers.values()
        ]
        ends = {(each.log.log_end_offset, each.log.high_watermark) for each in partitions}
        return ends == {(len(sent), len(sent))}

    wait_until(logs_are_equal, "the followers know that everything is committed")
    first, *others = [log_bytes(cluster, tmp_path, node) for node in (1, 2, 3)]
    assert others == [first, first]


@pytest.mark.fault("B8")
def test_acks_all_needs_min_insync_replicas(cluster: EmbeddedCluster) -> None:
    strict = NewTopic("t", 1, 3, configs={"min.insync.replicas": "3"})
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([strict]).raise_for_errors()
    with Producer(bootstrap_servers=cluster.bootstrap_servers, retries=0) as producer:
        wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
        producer.send("t", b"a", partition=0).result(timeout=30)
        follower = next(each for each in (1, 2, 3) if each != cluster.leader_of("t", 0))
        cluster.stop(follower)
        with pytest.raises(NotEnoughReplicasError):
            producer.send("t", b"refused", partition=0).result(timeout=30)
        cluster.start(follower)
        wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
        producer.send("t", b"b", partition=0).result(timeout=30)
    assert values(cluster, 2) == [b"a", b"b"]


@pytest.mark.fault("B6")
def test_follower_that_is_away_leaves_the_isr_and_returns(cluster: EmbeddedCluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer.send("t", b"a", partition=0).result(timeout=30)
        follower = next(each for each in (1, 2, 3) if each != cluster.leader_of("t", 0))
        cluster.stop(follower)
        wait_until(lambda: follower not in in_sync(cluster), "the follower has left the ISR")
        producer.send("t", b"b", partition=0).result(timeout=30)
        cluster.start(follower)
        wait_until(lambda: follower in in_sync(cluster), "the follower is in sync")
    assert values(cluster, 2) == [b"a", b"b"]


def test_orderly_stop_moves_leaders_first(cluster: EmbeddedCluster) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)]).raise_for_errors()
    with Producer(bootstrap_servers=cluster.bootstrap_servers, retries=0) as producer:
        producer.send("t", b"a", partition=0).result(timeout=30)
    wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
    cluster.stop(2)
    assert 2 not in {cluster.leader_of("t", number) for number in range(6)}
    image = cluster.broker.services.metadata.image
    assert all(2 not in each.isr for each in image.topics["t"].partitions)
    cluster.start(2)  # at once: its session has ended
    wait_until(lambda: in_sync(cluster) == {1, 2, 3}, "the broker is in sync again")


def test_nodes_that_stop_one_after_another_do_not_wait_for_each_other(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = RaftManager.leave
    left: list[int] = []

    def leave_in_time(self: RaftManager, _timeout_ms: float) -> None:
        leave(self, 60_000)
        left.append(self.node_id)

    monkeypatch.setattr(RaftManager, "leave", leave_in_time)
    controller = cluster.controller_id
    assert controller is not None
    others = [each for each in (1, 2, 3) if each != controller]
    for node in (*others, controller):
        cluster.stop(node)
    assert left == [*others, controller]


def test_preferred_leaders_are_restored_and_stopped_brokers_removed(
    cluster: EmbeddedCluster,
) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1, 3)]).raise_for_errors()
        preferred = cluster.leader_of("t", 0)
        assert preferred is not None
        cluster.stop(preferred)
        assert cluster.leader_of("t", 0) != preferred
        with pytest.raises(PreferredLeaderNotAvailableError):
            admin.elect_leaders(ElectionType.PREFERRED, T0)
        admin.unregister_broker(preferred)
        images = [each.services.metadata for each in cluster.brokers.values()]
        wait_until(
            lambda: all(preferred not in each.image.brokers for each in images),
            "no broker knows the broker that was removed",
        )
        cluster.start(preferred)
        wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
        assert admin.elect_leaders(ElectionType.PREFERRED, T0) == {T0: True}
        wait_until(lambda: cluster.leader_of("t", 0) == preferred, "the preferred replica leads")
        assert admin.elect_leaders(ElectionType.PREFERRED, T0) == {T0: False}


def test_each_broker_refuses_to_change_the_configured_voters(cluster: EmbeddedCluster) -> None:
    directory, endpoint = "AAAAAAAAAAAAAAAAAAAABQ", RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 9)
    refusal = "Cluster doesn't support {} voter because the kraft.version feature is 0$"
    for node, broker in cluster.brokers.items():
        with AdminClient(bootstrap_servers=broker.endpoint.address) as admin:
            wait_until(lambda: cluster.controller_id is not None, "a controller is active")
            for what, call in (
                ("adding", partial(admin.add_raft_voter, 9, directory, [endpoint])),
                ("removing", partial(admin.remove_raft_voter, node, directory)),
            ):
                text = f"voter [0-9]: UNSUPPORTED_VERSION: {refusal.format(what)}"
                with pytest.raises(UnsupportedVersionError, match=text):
                    call()


def test_controller_elects_uncleanly_by_the_static_setting() -> None:
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": 1}
    with EmbeddedCluster(brokers=3, config=settings) as cluster:
        with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            topic = NewTopic("t", replica_assignments={0: [1, 2]})
            admin.create_topics([topic]).raise_for_errors()
        wait_until(lambda: in_sync(cluster) == {1, 2}, "both replicas are in sync")
        cluster.stop(2)
        wait_until(lambda: in_sync(cluster) == {1}, "the follower has left the ISR")
        cluster.kill(1)
        cluster.start(2)
        wait_until(lambda: cluster.leader_of("t", 0) == 2, "the replica that was away leads")


def test_group_keeps_its_offsets_when_its_coordinator_is_killed(cluster: EmbeddedCluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("t", b"%d" % number, partition=0)
        producer.flush()
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe(["t"])
        seen: list[bytes] = []

        def has_ten() -> bool:
            seen.extend(record.value or b"" for record in consumer.poll(timeout=0.2))
            return len(seen) >= 10

        wait_until(has_ten, "ten records are read")
        consumer.commit()
        with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            coordinator = admin.describe_consumer_groups(["g"])["g"].coordinator
        cluster.kill(coordinator.id)
        committed = consumer.committed([T0])[T0]
        assert committed is not None
        assert committed.offset == 10


def test_whole_cluster_is_killed_and_continues(cluster: EmbeddedCluster) -> None:
    addresses = cluster.bootstrap_servers
    with Producer(bootstrap_servers=addresses) as producer:
        producer.send("t", b"a", partition=0).result(timeout=30)
    cluster.kill()
    with pytest.raises(IllegalStateError, match="is not running"):
        _ = cluster.bootstrap_servers
    cluster.start()
    assert cluster.bootstrap_servers == addresses
    assert values(cluster, 1) == [b"a"]


def test_data_is_that_of_a_number_of_brokers(tmp_path: Path) -> None:
    with EmbeddedCluster(brokers=2, data_dir=tmp_path) as cluster:
        assert sorted(cluster.brokers) == [1, 2]
    with pytest.raises(ConfigError, match=r"data_dir: .* has node-2, .* than 1"):
        EmbeddedCluster(data_dir=tmp_path).start()
    alone = tmp_path / "alone"
    with EmbeddedCluster(data_dir=alone):
        pass
    with pytest.raises(ConfigError, match=r"data_dir: .* has meta\.properties, .* than 3"):
        EmbeddedCluster(brokers=3, data_dir=alone).start()


def test_unknown_nodes_and_partitions_are_named(cluster: EmbeddedCluster) -> None:
    for call in (cluster.kill, cluster.stop, cluster.start, cluster.restart, cluster.faults_of):
        with pytest.raises(
            InvalidArgumentError, match=r"node: got 4 \(int\), expected one of 1, 2, 3"
        ):
            call(4)
    with pytest.raises(UnknownTopicOrPartitionError, match="t-0: there is no such partition"):
        cluster.leader_of("t", 0)
    with pytest.raises(IllegalStateError, match="use faults_of"):
        _ = cluster.faults


def acl(
    user: str, kind: ResourceType, name: str, operation: AclOperation = AclOperation.ALL
) -> AclBinding:
    entry = AccessControlEntry(f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(kind, name), entry)


@pytest.mark.parametrize(
    ("security", "users", "user"),
    [
        ("ssl", (), None),
        ("ssl", ["alice"], "alice"),
        ("sasl_plaintext", {"alice": "alice-secret"}, "alice"),
        ("sasl_ssl", {"alice": "alice-secret"}, "alice"),
    ],
)
def test_secured_brokers_fail_over(security: str, users: Any, user: str | None) -> None:
    acls = [acl("alice", ResourceType.TOPIC, "t")] if user else None
    with EmbeddedCluster(brokers=3, security=security, users=users, acls=acls) as cluster:
        options = cluster.client_config(user)
        assert options["security_protocol"] == security.upper()
        protocols = {each.security_protocol.name for each in cluster.broker.bound}
        assert protocols == {security.upper()}
        with Producer(**options) as producer:
            producer.send("t", b"a", partition=0).result(timeout=30)
            wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
            victim = cluster.leader_of("t", 0)
            cluster.kill(victim)
            producer.send("t", b"b", partition=0).result(timeout=30)
            assert cluster.leader_of("t", 0) != victim
            cluster.restart(victim)
            wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
            if user:
                with pytest.raises(TopicAuthorizationError):
                    producer.send("other", b"c").result(timeout=30)
        assert values(cluster, 2, options) == [b"a", b"b"]


SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = {"alice": "canary-a", "replica": "canary-r"}
BROKERS_AS_REPLICA = {
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
        f'{SCRAM_MODULE} required username="replica" password="canary-r";'
    ),
}


def test_brokers_with_a_user_of_scram_need_cluster_action(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level("INFO"),
        EmbeddedCluster(
            brokers=3,
            security="sasl_plaintext",
            users=USERS,
            acls=[],
            config=BROKERS_AS_REPLICA,
        ) as cluster,
        AdminClient(**cluster.client_config()) as admin,
        Producer(**cluster.client_config()) as producer,
    ):
        admin.create_topics([NewTopic("t", 1, 3)]).raise_for_errors()
        refusal = (
            "User:replica at 127.0.0.1 may not act as a node of this cluster: FETCH needs an ACL"
            " that allows CLUSTER_ACTION on the cluster, or the principal in super.users"
        )
        wait_until(lambda: refusal in caplog.text, "a follower's fetch is refused")
        leader = cluster.leader_of("t", 0)
        assert leader is not None
        wait_until(lambda: in_sync(cluster) == {leader}, "the followers have left the ISR")
        admin.create_acls(
            [acl("replica", ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)]
        )
        wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
        producer.send("t", b"a", partition=0).result(timeout=30)
    lines = [each.getMessage() for each in caplog.records if refusal in each.getMessage()]
    assert 1 <= len(lines) <= 3  # at most one of each node
    assert "canary" not in caplog.text


def test_controllers_need_super_users(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "super.users": "User:cluster-administrator",
        "initial.broker.registration.timeout.ms": 2000,
    }
    cluster = EmbeddedCluster(
        brokers=3, security="sasl_plaintext", users=USERS, acls=[], config=config
    )
    with caplog.at_level("INFO"), pytest.raises(KafkaTimeoutError, match="not registered within"):
        cluster.start()
    refusals = [each for each in caplog.messages if "may not act as a node" in each]
    assert 1 <= len(refusals) <= 3  # at most one of each node
    assert refusals[0].startswith("User:cluster-node at 127.0.0.1 may not act as a node of this")
    assert "needs an ACL that allows CLUSTER_ACTION on the cluster, or the" in refusals[0]
    errors = [
        each for each in caplog.messages if each.startswith("VoteResponse: error 31 (Cluster")
    ]
    assert 1 <= len(errors) <= 3  # of each node one


def test_node_with_a_wrong_password_is_one_warning_for_each_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    config = {
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{module} required username="cluster-node" password="canary-1" user_cluster-node='
            '"canary-2";'
        ),
        "initial.broker.registration.timeout.ms": 2000,
    }
    cluster = EmbeddedCluster(brokers=3, security="sasl_plaintext", users=USERS, config=config)
    with caplog.at_level("INFO"), pytest.raises(KafkaTimeoutError, match="not registered within"):
        cluster.start()
    warnings = [each for each in caplog.messages if "not authenticated; listener" in each]
    assert 1 <= len(warnings) <= 6  # of each node one for each other
    assert len(set(warnings)) == len({each.partition(" at ")[0] for each in warnings})
    assert "; listener CONTROLLER, SASL_PLAINTEXT, PLAIN as user 'cluster-node': " in warnings[0]
    assert "Invalid username or password" in warnings[0]
    assert "canary" not in caplog.text


def test_nodes_authenticate_again_on_their_connections(caplog: pytest.LogCaptureFixture) -> None:
    """The sessions of nodes are renewed, so that no connection is closed and no request fails."""
    reauth_ms = 1500  # a broker refuses to authenticate again within a second
    config = {"connections.max.reauth.ms": reauth_ms}
    with (
        caplog.at_level("INFO"),
        EmbeddedCluster(
            brokers=3, security="sasl_plaintext", users=USERS, config=config
        ) as cluster,
        Producer(**cluster.client_config()) as producer,
    ):
        producer.send("t", b"a", partition=0).result(timeout=30)
        wait_until(lambda: len(in_sync(cluster)) == 3, "all replicas are in sync")
        controller, started = cluster.controller_id, time.monotonic()
        while time.monotonic() < started + 3 * reauth_ms / 1000:
            producer.send("t", b"b", partition=0).result(timeout=30)
        assert cluster.controller_id == controller
        assert len(in_sync(cluster)) == 3
        messages = list(caplog.messages)
    for failure in ("a fetch from the leader failed", "session has expired", "not authenticated"):
        assert not [each for each in messages if failure in each]
