"""AdminClient's calls have the same outcomes on the companion broker as on Apache Kafka.

Each case makes calls and returns what it saw. It runs against both brokers, and the results have to
be equal: values, errors and their texts.
"""

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    CreatedTopic,
    ElectionType,
    FeatureUpdate,
    OffsetAndMetadata,
    OffsetSpec,
    QuotaMatchType,
    RaftVoterEndpoint,
    ResourcePattern,
    ResourceType,
    Results,
    ScramCredentialInfo,
    TopicPartition,
    TopicPartitionReplica,
    UpgradeType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.foreign_names import CALLS
from kclient.errors import KafkaError
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until

WAIT = 30
_TIMESTAMP = 1_700_000_000_000
_AUTHORIZER = {"super.users": "User:ANONYMOUS", "allow.everyone.if.no.acl.found": "true"}


class Scene:
    """An admin client of one of the brokers."""

    def __init__(self, admin: AdminClient, bootstrap: str) -> None:
        self._admin = admin
        self.bootstrap = bootstrap

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._admin, name)
        return method

    def outcome(self, name: str, *args: Any, **kwargs: Any) -> object:
        """Return what a call returns or raises, without what differs between clusters."""
        try:
            found = getattr(self, name)(*args, **kwargs)
        except KafkaError as error:
            return self.text(error)
        if isinstance(found, Results):
            errors = found.errors
            return {
                item: self.text(errors[item]) if item in errors else _comparable(found[item])
                for item in found
            }
        return found

    def text(self, error: KafkaError) -> str:
        text = f"{type(error).__name__}: {error}"
        host, _, port = self.bootstrap.rpartition(":")
        return text.replace(f"{host}:{port}", "BROKER").replace(port, "PORT")

    def fill(self, topic: str, count: int, partition: int = 0) -> None:
        """Send records, with timestamps 1 s apart."""
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for number in range(count):
                producer.send(
                    topic,
                    b"%d" % number,
                    partition=partition,
                    timestamp_ms=_TIMESTAMP + 1000 * number,
                )

    def new_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic and wait until its leaders serve."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.create_topics(NewTopic(name, partitions, 1, named))
        latest = {TopicPartition(name, each): OffsetSpec.latest() for each in range(partitions)}
        wait_until(lambda: not self.list_offsets(latest).errors, f"{name} is served", WAIT)


def _comparable(value: object) -> object:
    return value[2:] if isinstance(value, CreatedTopic) else value  # without the topic id


def _names(code: CodeType) -> set[str]:
    """Return the attributes and constants that a function and its inner functions use."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names, *filter(lambda each: isinstance(each, str), code.co_consts)}.union(
        *inner
    )


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    properties = {
        "group.initial.rebalance.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        **_AUTHORIZER,
    }
    options = ClusterOptions(properties=properties)
    with KafkaCluster(runtimes(NEWEST), tmp_path_factory.mktemp("admin-"), options) as cluster:
        yield cluster.bootstrap()


@pytest.fixture(scope="module")
def companion() -> Iterator[str]:
    config = {
        "group.initial.rebalance.delay.ms": 0,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "log.retention.ms": -1,  # as that of the other broker
        **_AUTHORIZER,
    }
    with EmbeddedCluster(config=config) as cluster:
        yield cluster.bootstrap_servers


def topics(scene: Scene) -> list[object]:
    wanted = [
        NewTopic("orders", 2, 1, {"retention.ms": "1000"}),
        NewTopic("bad.config", 1, 1, {"retention.ms": "soon"}),
        NewTopic("unknown.config", 1, 1, {"retention": "1"}),
        NewTopic("wide", 1, 5),
        NewTopic("placed", replica_assignments={0: [1], 1: [1]}),
        NewTopic("misplaced", replica_assignments={0: [9]}),
    ]
    shown: list[object] = [
        scene.outcome("create_topics", wanted, validate_only=True),
        {name for name, *_ in scene.list_topics()} & {topic.name for topic in wanted},
    ]
    shown.append(scene.outcome("create_topics", wanted))
    shown.append(scene.outcome("create_topics", [NewTopic("orders", 1, 1)]))
    shown.append(scene.outcome("create_topics", NewTopic("orders", 1, 1)))
    totals = {"orders": 4, "placed": 1, "nowhere": 3}
    shown.append(scene.outcome("create_partitions", totals, validate_only=True))
    shown.append(scene.outcome("create_partitions", totals))

    def described() -> object:
        found = scene.describe_topics(["orders", "placed", "nowhere"])
        return {
            name: scene.text(found.errors[name])
            if name in found.errors
            else [(each.partition, each.replicas, each.isr) for each in found[name].partitions]
            for name in sorted(found)
        }

    wait_until(lambda: len(scene.describe_topics("orders")["orders"].partitions) == 4, "4", WAIT)
    shown += [described(), scene.outcome("describe_topics", "nowhere")]
    shown += by_id(scene, "placed")
    shown.append(scene.outcome("delete_topics", ["orders", "nowhere"]))
    wait_until(lambda: "orders" not in {each.name for each in scene.list_topics()}, "gone", WAIT)
    shown.append(scene.outcome("delete_topics", "orders"))
    return shown


def by_id(scene: Scene, name: str) -> list[object]:
    """Describe and delete a topic by its id."""
    topic_id = scene.describe_topics(name)[name].topic_id
    described = scene.describe_topics(topic_ids=[topic_id])[topic_id]
    scene.delete_topics(topic_ids=topic_id)
    wait_until(lambda: name not in {each.name for each in scene.list_topics()}, "deleted", WAIT)
    unknown = "4pmJmFVBQmG0yyT2_6yMVA"
    return [
        described.name,
        described.topic_id == topic_id,
        scene.outcome("describe_topics", topic_ids=[unknown]),
        scene.outcome("delete_topics", topic_ids=[unknown]),
    ]


def records(scene: Scene) -> list[object]:
    scene.new_topic("kept", 2)
    scene.new_topic("compacted", 1, cleanup_policy="compact")
    scene.fill("kept", 10)
    first, second, missing = (TopicPartition("kept", number) for number in (0, 1, 7))
    positions = [
        OffsetSpec.earliest(),
        OffsetSpec.latest(),
        OffsetSpec.for_timestamp(_TIMESTAMP + 2_500),
        OffsetSpec.for_timestamp(_TIMESTAMP + 60_000),
        OffsetSpec.max_timestamp(),
        OffsetSpec.earliest_local(),
        OffsetSpec.latest_tiered(),
    ]
    shown: list[object] = [
        scene.outcome("list_offsets", {first: spec, second: spec, missing: spec})
        for spec in positions
    ]
    latest = {first: OffsetSpec.latest()}
    shown.append(scene.outcome("list_offsets", latest, isolation_level="read_committed"))
    compacted = TopicPartition("compacted", 0)
    wanted = {first: 4, second: 1, missing: 0, compacted: 0}
    shown.append(scene.outcome("delete_records", wanted))
    shown.append(scene.outcome("list_offsets", {first: OffsetSpec.earliest()}))
    shown.append(scene.outcome("delete_records", {first: 3}))
    shown.append(scene.outcome("delete_records", {first: -1}))
    shown.append(scene.outcome("list_offsets", {first: OffsetSpec.earliest()}))
    return shown


SET = ConfigResource(ConfigResourceType.TOPIC, "set")
ABSENT = ConfigResource(ConfigResourceType.TOPIC, "nowhere")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
EVERY_BROKER = ConfigResource(ConfigResourceType.BROKER, "")


def changed(
    scene: Scene, resource: ConfigResource, *changes: AlterConfigOp, **options: bool
) -> object:
    return scene.outcome("incremental_alter_configs", {resource: list(changes)}, **options)


def described(scene: Scene, resource: ConfigResource, *names: str) -> dict[str, ConfigEntry]:
    found = scene.describe_configs(resource, include_synonyms=True)[resource]
    return {name: found[name] for name in names}


def await_setting(scene: Scene, resource: ConfigResource, name: str, value: str) -> None:
    """Wait until a setting is in force; a broker applies it after the controller."""
    wait_until(
        lambda: described(scene, resource, name)[name].value == value, f"{name}={value}", WAIT
    )


def topic_settings(scene: Scene) -> list[object]:
    scene.new_topic("set")
    delete, append, subtract = (
        AlterConfigOpType.DELETE, AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT,
    )  # fmt: skip
    shown: list[object] = [
        changed(scene, SET, AlterConfigOp("retention.ms", "7"), validate_only=True),
        changed(
            scene,
            SET,
            AlterConfigOp("retention.ms", "5000"),
            AlterConfigOp("cleanup.policy", "compact", append),
        ),
    ]
    names = ("retention.ms", "cleanup.policy", "max.message.bytes")
    await_setting(scene, SET, "retention.ms", "5000")
    shown += [
        described(scene, SET, *names),
        changed(scene, SET, AlterConfigOp("cleanup.policy", "delete", subtract)),
        changed(scene, SET, AlterConfigOp("retention.ms", "1", append)),
        changed(scene, SET, AlterConfigOp("retention.ms", "soon")),
        changed(scene, SET, AlterConfigOp("retention", "1")),
        changed(scene, SET, AlterConfigOp("retention.ms", None, delete)),
        changed(scene, ABSENT, AlterConfigOp("retention.ms", "1")),
        scene.outcome("describe_configs", [ABSENT]),
    ]
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        shown.append(scene.outcome("alter_configs", {SET: {"retention.ms": "9"}}))
    await_setting(scene, SET, "retention.ms", "9")
    return [
        *shown,
        described(scene, SET, *names),
        SET in scene.list_config_resources(ConfigResourceType.TOPIC),
    ]


def broker_settings(scene: Scene) -> list[object]:
    shown: list[object] = [
        changed(scene, BROKER, AlterConfigOp("log.cleaner.backoff.ms", "20000")),
        changed(scene, EVERY_BROKER, AlterConfigOp("message.max.bytes", "2000000")),
        changed(scene, BROKER, AlterConfigOp("node.id", "7")),
        changed(scene, BROKER, AlterConfigOp("num.partitions", "many")),
    ]
    await_setting(scene, BROKER, "log.cleaner.backoff.ms", "20000")
    await_setting(scene, BROKER, "message.max.bytes", "2000000")
    shown.append(described(scene, BROKER, "log.cleaner.backoff.ms", "message.max.bytes"))
    delete = AlterConfigOpType.DELETE
    shown += [
        changed(scene, BROKER, AlterConfigOp("log.cleaner.backoff.ms", None, delete)),
        changed(scene, EVERY_BROKER, AlterConfigOp("message.max.bytes", None, delete)),
    ]
    await_setting(scene, BROKER, "log.cleaner.backoff.ms", "15000")
    shown.append(described(scene, BROKER, "log.cleaner.backoff.ms"))
    return shown


def other_settings(scene: Scene) -> list[object]:
    kind = ConfigResourceType.CLIENT_METRICS
    metrics, group = ConfigResource(kind, "basic"), ConfigResource(ConfigResourceType.GROUP, "g")
    shown = [
        changed(scene, metrics, AlterConfigOp("interval.ms", "1000")),
        changed(scene, metrics, AlterConfigOp("interval.ms", "fast")),
        changed(scene, group, AlterConfigOp("consumer.session.timeout.ms", "50000")),
        changed(scene, group, AlterConfigOp("consumer.session.timeout.ms", "1")),
    ]
    wait_until(lambda: metrics in scene.list_config_resources(kind), "metrics", WAIT)
    listed = {each.type for each in scene.list_config_resources()}
    return [
        *shown,
        scene.list_config_resources(kind),
        listed >= {kind, ConfigResourceType.BROKER},
        scene.describe_configs(metrics)[metrics]["interval.ms"],
    ]


def quotas(scene: Scene) -> list[object]:
    alice = ClientQuotaEntity.of({"user": "alice", "client-id": None})
    planet, percentage = ClientQuotaEntity.of({"planet": "x"}), {"request_percentage": 5}
    shown: list[object] = [
        scene.outcome("alter_client_quotas", {alice: {"producer_byte_rate": 1e6}}),
        scene.outcome("alter_client_quotas", {alice: {"speed": 1}}),
        scene.outcome("alter_client_quotas", {alice: percentage}, validate_only=True),
        scene.outcome("alter_client_quotas", {planet: percentage}),
    ]
    component = ClientQuotaFilterComponent("user", QuotaMatchType.EXACT, "alice")
    wait_until(lambda: scene.describe_client_quotas(component), "quotas", WAIT)
    shown.append(scene.outcome("describe_client_quotas", component))
    shown.append(scene.outcome("describe_client_quotas", component, strict=True))
    shown.append(scene.outcome("alter_client_quotas", {alice: {"producer_byte_rate": None}}))
    wait_until(lambda: not scene.describe_client_quotas(component), "no quotas", WAIT)
    return shown


def groups(scene: Scene) -> list[object]:
    scene.new_topic("read", 2)
    first, second = TopicPartition("read", 0), TopicPartition("read", 1)
    shown: list[object] = [
        scene.outcome(
            "alter_consumer_group_offsets", "g", {first: OffsetAndMetadata(3, "note"), second: 4}
        ),
        scene.outcome("list_consumer_group_offsets", "g"),
        scene.outcome("list_consumer_group_offsets", "g", [first]),
        scene.outcome("list_consumer_group_offsets", "missing"),
        scene.outcome("list_offsets_of_consumer_groups", ["g", "missing"]),
        scene.outcome("alter_consumer_group_offsets", "g", {TopicPartition("nowhere", 0): 1}),
        scene.outcome("delete_consumer_group_offsets", "g", [first, TopicPartition("read", 9)]),
        scene.outcome("delete_consumer_group_offsets", "missing", first),
        [each for each in scene.list_groups() if each.group_id == "g"],
        [each for each in scene.list_groups(states=["Stable"]) if each.group_id == "g"],
        [each for each in scene.list_groups(types=["classic"]) if each.group_id == "g"],
    ]
    with Consumer(
        bootstrap_servers=scene.bootstrap, group_id="active", group_instance_id="one"
    ) as consumer:
        consumer.subscribe("read")
        wait_until(lambda: (consumer.poll(0.2), consumer.assignment())[1], "a member", WAIT)
        described = scene.describe_consumer_groups(["active", "missing"])
        (member,) = described["active"].members
        shown += [
            [each[:3:2] for each in described.values()],
            (member.group_instance_id, member.assignment, described["active"].partition_assignor),
            scene.describe_classic_groups("active")["active"].protocol,
            scene.outcome("describe_classic_groups", "missing"),
            scene.outcome("alter_consumer_group_offsets", "active", {first: 1}),
            scene.outcome("delete_consumer_group_offsets", "active", [first]),
            scene.outcome("delete_consumer_groups", ["active", "missing"]),
            scene.outcome("remove_members_from_consumer_group", "active", ["one", "two"]),
            scene.outcome("remove_members_from_consumer_group", "active"),
            [each for each in scene.list_groups() if each.group_id == "active"],
        ]
    shown.append(scene.outcome("delete_consumer_groups", ["g", "active"]))
    return shown


def replicas(scene: Scene) -> list[object]:
    scene.new_topic("led")
    partition, missing = TopicPartition("led", 0), TopicPartition("led", 9)
    (directory,) = scene.describe_log_dirs([1])[1]
    replica, absent = TopicPartitionReplica("led", 0, 1), TopicPartitionReplica("led", 9, 1)
    placed = scene.describe_replica_log_dirs([replica, absent])
    return [
        scene.outcome("elect_leaders", ElectionType.PREFERRED, [partition, missing]),
        scene.outcome("elect_leaders", ElectionType.UNCLEAN, [partition]),
        scene.outcome("alter_partition_reassignments", {partition: [1], missing: [1]}),
        scene.outcome("alter_partition_reassignments", {partition: [9]}),
        scene.outcome("alter_partition_reassignments", {partition: None}),
        scene.outcome("list_partition_reassignments"),
        scene.outcome("list_partition_reassignments", partition),
        [
            (each.current_replica_log_dir == directory, each.future_replica_log_dir)
            for each in placed.values()
        ],
        scene.outcome("alter_replica_log_dirs", {replica: directory}),
        scene.outcome("alter_replica_log_dirs", {replica: "/nowhere"}),
        scene.outcome("describe_producers", [partition, missing]),
    ]


def transactions(scene: Scene) -> list[object]:
    scene.new_topic("paid")
    partition = TopicPartition("paid", 0)
    shown: list[object] = []
    with Producer(bootstrap_servers=scene.bootstrap, transactional_id="payer") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("paid", b"1", partition=0).result(WAIT)
        described = scene.describe_transactions(["payer", "unknown"])
        shown += [
            (described["payer"].state, described["payer"].topic_partitions),
            scene.text(described.errors["unknown"]),
            [(each.transactional_id, each.state) for each in scene.list_transactions()],
            scene.list_transactions(states=["Empty"]),
            scene.outcome("find_hanging_transactions", topics="paid"),
        ]
        (state,) = scene.describe_producers(partition)[partition]
        shown.append((state.producer_epoch, state.current_transaction_start_offset))
        scene.force_terminate_transaction("payer")
        shown.append(scene.describe_transactions("payer")["payer"].state)
        shown.append(scene.outcome("force_terminate_transaction", "unknown"))
    fenced = scene.fence_producers(["payer", "new"])
    shown.append({name: fenced[name].producer_epoch for name in fenced})
    shown.append(scene.outcome("abort_transaction", partition, state.producer_id, 0, None))
    return shown


def cluster(scene: Scene) -> list[object]:
    described = scene.describe_cluster(include_fenced_brokers=True)
    quorum = scene.describe_metadata_quorum()
    features = scene.describe_features()
    lower = {"metadata.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}
    return [
        ([node.id for node in described.nodes], described.fenced_ids),
        ([voter.replica_id for voter in quorum.voters], quorum.leader_id, len(quorum.observers)),
        features.finalized_features["transaction.version"],
        features.finalized_features_epoch is not None,
        scene.outcome("update_features", {"no.such": FeatureUpdate(1)}),
        scene.outcome("update_features", {"transaction.version": FeatureUpdate(99)}),
        scene.outcome("update_features", lower, validate_only=True),
        scene.outcome("unregister_broker", 77),
    ]


def users(scene: Scene) -> list[object]:
    info = ScramCredentialInfo("SCRAM-SHA-256", 4096)
    shown: list[object] = [
        scene.outcome(
            "alter_user_scram_credentials",
            [
                UserScramCredentialUpsertion("ann", info, "ann-secret"),
                UserScramCredentialDeletion("ben", "SCRAM-SHA-256"),
            ],
        )
    ]
    wait_until(lambda: "ann" in scene.describe_user_scram_credentials(), "ann", WAIT)
    shown.append(scene.outcome("describe_user_scram_credentials", ["ann", "ben"]))
    rule = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "secret"),
        AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    shown.append(scene.outcome("create_acls", [rule]))
    wait_until(lambda: scene.describe_acls() == [rule], "the rule", WAIT)
    shown.append(scene.outcome("describe_acls", rule.to_filter()))
    shown.append(scene.outcome("delete_acls", [rule.to_filter(), AclBindingFilter()]))
    return shown


def voters(scene: Scene) -> list[object]:
    directory = "AAAAAAAAAAAAAAAAAAAABQ"
    endpoint = RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 9)
    cluster_id = scene.describe_cluster().cluster_id
    shown = [
        scene.outcome("add_raft_voter", 9, directory, [endpoint]),
        scene.outcome("add_raft_voter", 9, directory, [endpoint], cluster_id="another"),
        scene.outcome("remove_raft_voter", 9, directory),
        scene.outcome("remove_raft_voter", 9, directory, cluster_id=cluster_id),
        scene.outcome("remove_raft_voter", 9, directory, cluster_id="another"),
    ]
    return [str(each).replace(cluster_id, "ID") for each in shown]


CASES: list[Callable[[Scene], list[object]]] = [
    topics, records, topic_settings, broker_settings, other_settings, quotas, groups, replicas,
    transactions, cluster, users, voters,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_outcomes_are_those_of_apache_kafka(
    apache: str, companion: str, case: Callable[[Scene], list[object]]
) -> None:
    seen = []
    for bootstrap in (apache, companion):
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            seen.append(case(Scene(admin, bootstrap)))
    for expected, found in zip(*seen, strict=True):
        assert found == expected


OF_APACHE_KAFKA = {
    "alter_share_group_offsets",
    "create_delegation_token",
    "delete_share_group_offsets",
    "delete_share_groups",
    "describe_delegation_token",
    "describe_share_groups",
    "expire_delegation_token",
    "list_share_group_offsets",
    "renew_delegation_token",
}
"""Calls that the companion broker does not serve.

See test_admin_groups_and_tokens.py.
"""


def test_each_call_is_compared() -> None:
    used = {name for case in [*CASES, changed] for name in _names(case.__code__)}
    assert set(CALLS) - used == OF_APACHE_KAFKA
