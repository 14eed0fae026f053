"""AdminClient's methods for a cluster, against three nodes of Apache Kafka."""

from collections.abc import Iterator

import pytest

from integration.conftest import StartCluster
from integration.harness.discovery import NEWEST, chosen_versions
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import (
    AclBindingFilter,
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureUpdate,
    QuotaMatchType,
    TopicPartitionReplica,
    UpgradeType,
)
from kclient.common.broker_errors import (
    MismatchedEndpointTypeError,
    SecurityDisabledError,
    UnsupportedVersionError,
)
from kclient.errors import KafkaError
from tests.support.checks.waiting import wait_until

WAIT = 30


@pytest.fixture
def cluster(start_cluster: StartCluster) -> KafkaCluster:
    return start_cluster(ClusterOptions(nodes=3, heap_mb=384), NEWEST)


@pytest.fixture
def admin(cluster: KafkaCluster) -> Iterator[AdminClient]:
    with AdminClient(bootstrap_servers=cluster.bootstrap()) as client:
        yield client


def test_methods_for_a_cluster(cluster: KafkaCluster, admin: AdminClient) -> None:
    admin.create_topics(
        [
            NewTopic("moved", replica_assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]}),
            NewTopic("other", 3, 1),
        ]
    )
    _settings(admin)
    _quotas(admin)
    _no_authorizer(admin)
    _features(admin)
    _quorum(admin)
    _pages(admin)
    _producers(cluster, admin)
    _group_offsets(cluster, admin)
    _reassignment(admin)
    _log_dirs(admin)
    _unclean_and_voters(admin)
    _leaders_after_a_failure(cluster, admin)


def _settings(admin: AdminClient) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, "moved")
    broker = ConfigResource(ConfigResourceType.BROKER, "2")
    admin.incremental_alter_configs(
        {
            topic: [
                AlterConfigOp("retention.ms", "1000"),
                AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND),
            ],
            broker: [AlterConfigOp("log.cleaner.threads", "2")],
        }
    ).raise_for_errors()

    def altered() -> bool:
        found = admin.describe_configs(topic)[topic]
        of_broker = admin.describe_configs(broker)[broker]["log.cleaner.threads"].value
        return (found["retention.ms"].value, of_broker) == ("1000", "2")

    wait_until(altered, "the settings are in force", WAIT)
    assert admin.describe_configs(topic)[topic]["cleanup.policy"].value == "delete,compact"
    admin.incremental_alter_configs(
        {topic: [AlterConfigOp("retention.ms", "5")]}, validate_only=True
    ).raise_for_errors()
    with pytest.raises(KafkaError, match="topic 'moved'"):
        admin.incremental_alter_configs(
            {topic: [AlterConfigOp("retention.ms", "soon")]}
        ).raise_for_errors()
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        admin.alter_configs({topic: {"retention.ms": "2000"}}).raise_for_errors()
    wait_until(
        lambda: admin.describe_configs(topic)[topic]["cleanup.policy"].value == "delete",
        "the other settings are reset",
        WAIT,
    )
    assert topic in admin.list_config_resources(ConfigResourceType.TOPIC)
    assert broker in admin.list_config_resources()


def _quotas(admin: AdminClient) -> None:
    alice = ClientQuotaEntity.of({"user": "alice", "client-id": None})
    admin.alter_client_quotas(
        {alice: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}}
    ).raise_for_errors()
    wanted = [
        ClientQuotaFilterComponent("user", QuotaMatchType.EXACT, "alice"),
        ClientQuotaFilterComponent("client-id", QuotaMatchType.DEFAULT),
    ]
    expected = {alice: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}}
    wait_until(
        lambda: admin.describe_client_quotas(wanted, strict=True) == expected, "quotas", WAIT
    )
    admin.alter_client_quotas({alice: {"producer_byte_rate": None}}).raise_for_errors()
    wait_until(
        lambda: admin.describe_client_quotas() == {alice: {"consumer_byte_rate": 2e6}},
        "one quota is removed",
        WAIT,
    )
    with pytest.raises(KafkaError, match="quotas of"):
        admin.alter_client_quotas({alice: {"speed": 1}}).raise_for_errors()


def _no_authorizer(admin: AdminClient) -> None:
    with pytest.raises(SecurityDisabledError, match="the broker has no authorizer"):
        admin.describe_acls()
    with pytest.raises(SecurityDisabledError, match="the broker has no authorizer"):
        admin.delete_acls(AclBindingFilter())


def _features(admin: AdminClient) -> None:
    for found in (admin.describe_features(), admin.describe_features(node_id=3)):
        level = found.finalized_features["metadata.version"]
        assert level.max_version <= found.supported_features["metadata.version"].max_version
        assert found.finalized_features_epoch is not None
    lower = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
    admin.update_features({"transaction.version": lower}, validate_only=True).raise_for_errors()
    assert admin.describe_features().finalized_features["transaction.version"].max_version == 2
    with pytest.raises(KafkaError, match=r"metadata\.version"):
        admin.update_features({"metadata.version": FeatureUpdate(9999)}).raise_for_errors()


def _quorum(admin: AdminClient) -> None:
    quorum = admin.describe_metadata_quorum()
    assert {voter.replica_id for voter in quorum.voters} == {1, 2, 3}
    assert quorum.leader_id in {1, 2, 3}
    assert quorum.high_watermark > 0
    assert quorum.observers == ()
    described = admin.describe_cluster(include_fenced_brokers=True)
    assert ([node.id for node in described.nodes], described.fenced_ids) == ([1, 2, 3], frozenset())


def _pages(admin: AdminClient) -> None:
    whole = admin.describe_topics(["moved", "other"])
    paged = admin.describe_topics(["moved", "other"], partition_size_limit_per_response=2)
    assert paged == whole
    assert [part.replicas for part in whole["moved"].partitions] == [(1, 2), (2, 3), (3, 1)]
    assert whole["moved"].partitions[0].elr is not None


def _producers(cluster: KafkaCluster, admin: AdminClient) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap()) as producer:
        for partition in range(3):
            producer.send("moved", b"x" * 1000, partition=partition).result(WAIT)
    partitions = [TopicPartition("moved", number) for number in range(3)]
    for states in admin.describe_producers(partitions).values():
        (state,) = states
        assert (state.last_sequence, state.current_transaction_start_offset) == (0, None)
    assert admin.describe_producers(partitions[0], broker_id=1)[partitions[0]]


def _group_offsets(cluster: KafkaCluster, admin: AdminClient) -> None:
    first, second = TopicPartition("moved", 0), TopicPartition("moved", 1)
    with Consumer(bootstrap_servers=cluster.bootstrap(), group_id="g") as consumer:
        consumer.commit({first: 1, second: 1})
    admin.delete_consumer_group_offsets("g", first)
    assert set(admin.list_consumer_group_offsets("g")) == {second}
    with pytest.raises(KafkaError, match="group 'missing'"):
        admin.delete_consumer_group_offsets("missing", first)


def _reassignment(admin: AdminClient) -> None:
    partition = TopicPartition("moved", 0)
    admin.alter_partition_reassignments({partition: [3, 2]}).raise_for_errors()
    wait_until(lambda: not admin.list_partition_reassignments(), "the move has ended", WAIT)
    wait_until(
        lambda: admin.describe_topics("moved")["moved"].partitions[0].replicas == (3, 2),
        "the replicas are the wanted ones",
        WAIT,
    )
    with pytest.raises(KafkaError, match="partition moved-0"):
        admin.alter_partition_reassignments({partition: None}).raise_for_errors()
    with pytest.raises(KafkaError, match="partition moved-0"):
        admin.alter_partition_reassignments(
            {partition: [1, 2, 3]}, allow_replication_factor_change=False
        ).raise_for_errors()
    assert admin.list_partition_reassignments(partition) == {}


def _log_dirs(admin: AdminClient) -> None:
    described = admin.describe_log_dirs([1, 2, 3])
    assert set(described) == {1, 2, 3}
    ((path, directory),) = described[2].items()
    assert directory.error is None
    assert directory.replica_infos[TopicPartition("moved", 0)].size > 1000
    assert directory.total_bytes is not None
    replica = TopicPartitionReplica("moved", 0, 2)
    absent = TopicPartitionReplica("moved", 99, 2)
    found = admin.describe_replica_log_dirs([replica, absent])
    assert found[replica].current_replica_log_dir == path
    assert found[absent].current_replica_log_dir is None
    admin.alter_replica_log_dirs({replica: path}).raise_for_errors()
    with pytest.raises(KafkaError, match="replica moved-0 at broker 2"):
        admin.alter_replica_log_dirs({replica: "/nowhere"}).raise_for_errors()


def _unclean_and_voters(admin: AdminClient) -> None:
    partition = TopicPartition("moved", 1)
    assert admin.elect_leaders(ElectionType.UNCLEAN, partition) == {partition: False}
    directory_id = admin.describe_metadata_quorum().voters[0].replica_directory_id
    unknown = directory_id or "4pmJmFVBQmG0yyT2_6yMVA"
    with pytest.raises(KafkaError, match="voter 9"):
        admin.remove_raft_voter(9, unknown)


def _leaders_after_a_failure(cluster: KafkaCluster, admin: AdminClient) -> None:
    node = cluster.nodes[1]
    partition = TopicPartition("moved", 1)  # its preferred leader is broker 2
    node.kill()

    def leader() -> int | None:
        return admin.describe_topics("moved")["moved"].partitions[1].leader

    wait_until(lambda: leader() == 3, "another leader", WAIT)
    assert admin.describe_cluster(include_fenced_brokers=True).fenced_ids == {2}
    with pytest.raises(KafkaError, match="partition moved-1"):
        admin.elect_leaders(ElectionType.PREFERRED, partition)
    admin.unregister_broker(2)
    wait_until(
        lambda: 2 not in {n.id for n in admin.describe_cluster(include_fenced_brokers=True).nodes},
        "the broker is not registered",
        WAIT,
    )
    with pytest.raises(KafkaError, match="broker 2"):
        admin.unregister_broker(2)


@pytest.mark.parametrize("version", chosen_versions())
def test_client_of_controllers(start_cluster: StartCluster, version: str) -> None:
    """KIP-919: the calls that controllers serve, without a broker between."""
    options = ClusterOptions(nodes=1, controllers=3, heap_mb=384)
    cluster = start_cluster(options, version)
    servers = ",".join(node.address("CONTROLLER") for node in cluster.controllers)
    with AdminClient(bootstrap_controllers=servers) as admin:
        described = admin.describe_cluster()
        ids = {node.id for node in described.nodes}
        assert ids == {node.node_id for node in cluster.controllers}
        quorum = admin.describe_metadata_quorum()
        assert {voter.replica_id for voter in quorum.voters} == ids
        assert described.controller is not None
        assert described.controller.id == quorum.leader_id
        assert admin.describe_features(node_id=min(ids)).finalized_features
        updates = {"metadata.version": FeatureUpdate(1, UpgradeType.UNSAFE_DOWNGRADE)}
        with pytest.raises(KafkaError, match="INVALID_UPDATE_VERSION"):
            admin.update_features(updates, validate_only=True).raise_for_errors()
        _settings_by_controllers(admin, min(ids))
        with pytest.raises(KafkaError, match="voter 9: "):
            admin.remove_raft_voter(9, described.cluster_id)
        admin.create_topics(NewTopic("by-controllers", 1, 1))
        with pytest.raises(UnsupportedVersionError, match="METADATA"):
            admin.list_topics()
    with AdminClient(bootstrap_servers=cluster.bootstrap()) as admin:
        wait_until(
            lambda: "by-controllers" in {each.name for each in admin.list_topics()}, "known", WAIT
        )
    with (
        AdminClient(bootstrap_controllers=cluster.bootstrap()) as admin,
        pytest.raises(MismatchedEndpointTypeError, match="bootstrap_controllers"),
    ):
        admin.describe_cluster()


def _settings_by_controllers(admin: AdminClient, controller_id: int) -> None:
    brokers = ConfigResource(ConfigResourceType.BROKER, "")
    change = AlterConfigOp("log.cleaner.threads", "2")
    broker = ConfigResource(ConfigResourceType.BROKER, "1")
    admin.incremental_alter_configs({brokers: [change], broker: [change]}).raise_for_errors()
    controller = ConfigResource(ConfigResourceType.BROKER, str(controller_id))

    def value() -> str | None:
        return admin.describe_configs(controller)[controller]["log.cleaner.threads"].value

    wait_until(lambda: value() == "2", "a controller has the setting", WAIT)
