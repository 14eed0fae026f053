"""The companion broker responds to administrators as Apache Kafka does.

Each case is a function that sends requests over a bare connection and returns what it saw. It runs
against both brokers, and the results have to be equal.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    OpData,
)
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from kclient.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kclient.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
_numbers = count()

Change = tuple[str, int, str | None]
Resource = tuple[int, str, list[Change]]
Row = tuple[str, str | None, int, bool, bool, int, list[tuple[str, str | None, int]]]


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    options = ClusterOptions(properties={"group.initial.rebalance.delay.ms": "0"})
    directory = tmp_path_factory.mktemp("admin-responses-")
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        yield cluster.bootstrap()


@pytest.fixture(scope="module")
def companion() -> Iterator[str]:
    with EmbeddedCluster(config={"log.retention.ms": -1}) as cluster:
        yield cluster.bootstrap_servers


def new_topic(wire: Wire) -> str:
    name = f"admin-{next(_numbers)}"
    wire.create_topic(name, 1)
    wait_until(lambda: wire.fetch(name, 0).error_code == 0, f"{name} can be read", 20)
    return name


# --- settings


def alter(wire: Wire, *resources: Resource, validate_only: bool = False) -> object:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    response = wire.ask(request, 1, IncrementalAlterConfigsResponse)
    return [
        (each.resource_type, each.error_code, each.error_message) for each in response.responses
    ]


def replace(
    wire: Wire, *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
) -> object:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in values.items()],
            )
            for kind, name, values in resources
        ],
        validate_only=validate_only,
    )
    response = wire.ask(request, 2, AlterConfigsResponse)
    return [
        (each.resource_type, each.error_code, each.error_message) for each in response.responses
    ]


def described(wire: Wire, kind: int, name: str, *keys: str) -> list[Row]:
    """Return settings with their sources and synonyms, once all changes before are applied."""
    _await_changes(wire)
    return _described(wire, kind, name, *keys)


def _described(wire: Wire, kind: int, name: str, *keys: str) -> list[Row]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = wire.ask(request, 4, DescribeConfigsResponse).results
    assert result.error_code == 0, result
    found = [
        (
            each.name,
            each.value,
            each.config_source,
            each.read_only,
            each.is_sensitive,
            each.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
        )
        for each in result.configs
    ]
    return sorted(found, key=lambda each: each[0])


def _await_changes(wire: Wire) -> None:
    """Wait for a later change; Apache Kafka responds before the broker has applied one."""
    value = str(20_000 + next(_numbers))
    alter(wire, (BROKER, "1", [("log.cleaner.backoff.ms", SET, value)]))

    def is_applied() -> bool:
        (row,) = _described(wire, BROKER, "1", "log.cleaner.backoff.ms")
        return row[1] == value

    wait_until(is_applied, "the change is applied", 20)


VALUES = (
    ("retention.ms", ("x", "-2", "", "9223372036854775808", " 5 ", "+5", "1_000", "1.5")),
    ("max.message.bytes", ("3000000000", "-1", "0")),
    ("cleanup.policy", ("foo", "", "delete,delete", "compact, delete")),
    ("min.insync.replicas", ("0", "1")),
    ("min.cleanable.dirty.ratio", ("2", "-1", "q", "0.25")),
    ("compression.type", ("foo", "ZSTD", "zstd")),
    ("compression.gzip.level", ("0", "12", "-1", "9")),
    ("compression.lz4.level", ("18", "0")),
    ("compression.zstd.level", ("23", "-131073")),
    ("preallocate", ("yes", "TRUE")),
    ("message.timestamp.type", ("createtime", "LogAppendTime")),
    ("segment.bytes", ("100",)),
    ("segment.index.bytes", ("3",)),
    ("leader.replication.throttled.replicas", ("foo", "*", "0:1", "0:1,1:", "0:1,2:3")),
    ("remote.storage.enable", ("true", "false")),
    ("retention.bytes", ("-5",)),
    ("local.retention.ms", ("5", "-3")),
    ("flush.messages", ("0",)),
    ("file.delete.delay.ms", ("-1",)),
    ("max.compaction.lag.ms", ("0",)),
    ("unknown.setting", ("1",)),
    ("message.format.version", ("3.0",)),
)


def values_of_topics(wire: Wire) -> object:
    name = new_topic(wire)
    return [
        (key, value, alter(wire, (TOPIC, name, [(key, SET, value)]), validate_only=True))
        for key, values in VALUES
        for value in values
    ]


def settings_of_topics(wire: Wire) -> object:
    name = new_topic(wire)
    seen: list[object] = []
    steps: list[list[Change]] = [
        [("retention.ms", SET, " 77 "), ("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", APPEND, "compact,delete")],
        [("cleanup.policy", SUBTRACT, "delete,other")],
        [("cleanup.policy", SET, "compact, delete,compact")],
        [("cleanup.policy", SUBTRACT, "compact")],
        [("cleanup.policy", DELETE, "any"), ("unknown", DELETE, None)],
        [("max.message.bytes", SET, "5000"), ("min.cleanable.dirty.ratio", SET, "0.25")],
        [("preallocate", SET, "TRUE"), ("retention.ms", DELETE, None)],
        [],
    ]
    for changes in steps:
        found = alter(wire, (TOPIC, name, changes))
        keys = ("retention.ms", "cleanup.policy", "max.message.bytes", "preallocate")
        seen.append((found, described(wire, TOPIC, name, *keys)))
    seen.append(alter(wire, (TOPIC, name, [("retention.ms", SET, "5")]), validate_only=True))
    seen.append(described(wire, TOPIC, name, "retention.ms"))
    return seen


def refused_changes(wire: Wire) -> object:
    name, other = new_topic(wire), "refused-topic"
    if wire.metadata(other).topics[0].error_code:
        wire.create_topic(other)
    valid: Change = ("retention.ms", SET, "5")
    attempts: list[list[Resource]] = [
        [(TOPIC, "absent", [valid])],
        [(TOPIC, "absent", [("retention.ms", SET, "x")])],
        [(TOPIC, "", [valid])],
        [(TOPIC, name, [valid]), (TOPIC, name, [valid]), (TOPIC, other, [valid])],
        [(TOPIC, name, [valid, ("retention.ms", DELETE, None)])],
        [(TOPIC, name, [("retention.ms", SET, None), ("a", APPEND, None)])],
        [(TOPIC, name, [("retention.ms", APPEND, "5")])],
        [(TOPIC, name, [("retention.ms", SUBTRACT, "5")])],
        [(TOPIC, name, [("unknown", APPEND, "5")])],
        [
            (
                TOPIC,
                name,
                [("min.compaction.lag.ms", SET, "77"), ("max.compaction.lag.ms", SET, "70")],
            )
        ],
        [(TOPIC, name, [("segment.ms", SET, "77"), ("retention.ms", SET, "x")])],
        [(0, name, [valid]), (1, name, [valid]), (64, name, [valid])],
        [],
    ]
    seen = [alter(wire, *resources) for resources in attempts]
    invalid = IncrementalAlterConfigsResource(
        resource_type=TOPIC,
        resource_name="a b",
        configs=[IncrementalAlterableConfig(name="retention.ms", config_operation=SET, value="5")],
    )
    request = IncrementalAlterConfigsRequest(resources=[invalid])
    response = wire.ask(request, 1, IncrementalAlterConfigsResponse)
    return (
        seen,
        [each.error_code for each in response.responses],
        described(wire, TOPIC, name, "segment.ms", "retention.ms"),
    )


def replaced_settings(wire: Wire) -> object:
    name, other = new_topic(wire), new_topic(wire)
    keys = ("retention.ms", "segment.ms", "cleanup.policy")
    seen: list[object] = []
    for values in ({"retention.ms": "7", "segment.ms": "8"}, {"segment.ms": "9"}, {}):
        seen.append(replace(wire, (TOPIC, name, dict(values))))
        seen.append(described(wire, TOPIC, name, *keys))
    seen.append(replace(wire, (TOPIC, name, {"retention.ms": "x"}), (TOPIC, "absent", {})))
    seen.append(replace(wire, (TOPIC, name, {"retention.ms": None}), (TOPIC, other, {})))
    seen.append(replace(wire, (TOPIC, name, {"retention.ms": "6"}), validate_only=True))
    seen.append(replace(wire, (LOGGER, "1", {"root": "INFO"}), (9, "1", {}), (BROKER, "9", {})))
    seen.append(replace(wire, (BROKER, "x", {}), (METRICS, "m", {"interval.ms": "5"})))
    seen.append(described(wire, TOPIC, name, *keys))
    return seen


def settings_of_brokers(wire: Wire) -> object:
    seen: list[object] = []
    name = new_topic(wire)
    for broker, changes in (
        ("1", [("message.max.bytes", SET, "5000")]),
        ("", [("message.max.bytes", SET, "6000"), ("log.retention.ms", SET, "2000")]),
        ("1", [("log.cleanup.policy", APPEND, "compact")]),
        ("1", [("message.max.bytes", DELETE, None)]),
        ("", [("max.connections.per.ip", SET, "900"), ("max.connections", SET, "1000")]),
        ("1", [("unknown.setting", SET, "secret")]),
        ("1", [("leader.replication.throttled.rate", SET, "100")]),
        ("1", [("log.cleanup.policy", SUBTRACT, "delete")]),
        ("", [("unclean.leader.election.enable", SET, "true")]),
        ("1", [("unknown.setting", DELETE, None), ("log.cleanup.policy", DELETE, None)]),
        ("1", [("leader.replication.throttled.rate", DELETE, None)]),
        ("", [("message.max.bytes", DELETE, None), ("log.retention.ms", DELETE, None)]),
        ("", [("max.connections.per.ip", DELETE, None), ("max.connections", DELETE, None)]),
        ("", [("unclean.leader.election.enable", DELETE, None)]),
    ):
        seen.append(alter(wire, (BROKER, broker, list(changes))))
        keys = {key for key, _, _ in changes}
        seen.append(described(wire, BROKER, "1", *keys))
        seen.append(described(wire, BROKER, "", *keys))
        topic_keys = ("max.message.bytes", "retention.ms", "cleanup.policy")
        seen.append(described(wire, TOPIC, name, *topic_keys))
    seen.append(replace(wire, (BROKER, "1", {"message.max.bytes": "7000", "log.dirs": "d"})))
    seen.append(replace(wire, (BROKER, "1", {"message.max.bytes": "7000"})))
    seen.append(described(wire, BROKER, "1", "message.max.bytes"))
    seen.append(replace(wire, (BROKER, "1", {})))
    seen.append(described(wire, BROKER, "1", "message.max.bytes"))
    return seen


BROKER_REFUSALS = (
    ("9", ("message.max.bytes", SET, "5")),
    ("x", ("message.max.bytes", SET, "5")),
    ("1", ("message.max.bytes", SET, "x")),
    ("1", ("message.max.bytes", SET, "-1")),
    ("1", ("log.dirs", SET, "d")),
    ("", ("log.dirs", SET, "d")),
    ("1", ("log.dirs", DELETE, None)),
    ("", ("auto.create.topics.enable", SET, "false")),
    ("", ("log.retention.hours", SET, "2")),
    ("", ("advertised.listeners", SET, "2")),
    ("1", ("max.connections", SET, "-100")),
    ("1", ("ssl.keystore.location", SET, "/x")),
    ("1", ("message.max.bytes", APPEND, "1")),
    ("1", ("message.max.bytes", SUBTRACT, "1")),
    ("1", ("unknown.setting", APPEND, "1")),
    ("", ("min.insync.replicas", SET, "x")),
    ("1", ("unclean.leader.election.enable", SET, "x")),
    ("", ("leader.replication.throttled.rate", SET, "-1")),
    ("1", ("message.max.bytes", SET, None)),
    ("", ("log.message.timestamp.type", SET, "Never")),
    ("", ("compression.type", SET, "foo")),
    ("", ("log.cleanup.policy", SET, "foo")),
)


def refused_settings_of_brokers(wire: Wire) -> object:
    return [
        (name, change, alter(wire, (BROKER, name, [change]), validate_only=True))
        for name, change in BROKER_REFUSALS
    ]


GROUP_VALUES = ("-1", "0", "1", "1000000", "x", "")


def settings_of_groups(wire: Wire) -> object:
    rows = described(wire, GROUP, "unused")
    keys = [row[0] for row in rows]
    seen: list[object] = [rows]
    seen += [
        (key, value, alter(wire, (GROUP, "g", [(key, SET, value)]), validate_only=True))
        for key in keys
        for value in GROUP_VALUES
    ]
    change: Change = ("consumer.session.timeout.ms", SET, "45001")
    seen.append(
        alter(wire, (GROUP, "g", [change, ("share.isolation.level", SET, "read_committed")]))
    )
    seen.append(described(wire, GROUP, "g"))
    seen.append(alter(wire, (GROUP, "g", [("unknown", SET, "1")]), (GROUP, "", [change])))
    seen.append(alter(wire, (GROUP, "g", [("consumer.session.timeout.ms", APPEND, "1")])))
    seen.append(alter(wire, (GROUP, "h", [("share.auto.offset.reset", SET, "by_duration:PT1H")])))
    return seen


MATCHES = ("client_id", "client_id=", "=x", "a b=c", "client_id=[a-", "", " client_id = x ")


def settings_of_client_metrics(wire: Wire) -> object:
    seen: list[object] = [described(wire, METRICS, "unused")]
    for key, values in (
        ("match", MATCHES),
        ("interval.ms", ("99", "100", "-1", "x", " 500 ", "3600001")),
        ("metrics", ("a,b", "a,,b", "")),
        ("unknown", ("1",)),
    ):
        seen += [
            (key, value, alter(wire, (METRICS, "m", [(key, SET, value)]), validate_only=True))
            for value in values
        ]
    changes: list[Change] = [
        ("interval.ms", SET, "1000"),
        ("metrics", SET, "a,b"),
        ("match", SET, "client_id=a.*,client_software_name=b"),
    ]
    seen.append(alter(wire, (METRICS, "m", changes), (METRICS, "", changes)))
    seen.append(alter(wire, (METRICS, "m", [("metrics", APPEND, "c")])))
    seen.append(described(wire, METRICS, "m"))
    return seen


# --- offsets of groups


def delete_offsets(
    wire: Wire, group: str, **topics: list[int]
) -> tuple[int, list[tuple[str, list[tuple[int, int]]]]]:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for name, numbers in topics.items()
        ],
    )
    response = wire.ask(request, 0, OffsetDeleteResponse)
    return response.error_code, [
        (topic.name, sorted((part.partition_index, part.error_code) for part in topic.partitions))
        for topic in response.topics
    ]


def await_coordinator(wire: Wire) -> None:
    def is_there() -> bool:
        response = wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
        return response.error_code == 0

    wait_until(is_there, "there is a coordinator", 60)


def commit(wire: Wire, group: str, topic: str, member: JoinGroupResponse | None = None) -> None:
    part = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1 if member is None else member.generation_id,
        member_id="" if member is None else member.member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )

    def is_committed() -> bool:
        response = wire.ask(request, 7, OffsetCommitResponse)
        return response.topics[0].partitions[0].error_code == 0

    wait_until(is_committed, "the offset is committed", 60)


def offset_of(wire: Wire, group: str, topic: str) -> int:
    request = OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
    )
    response = wire.ask(request, 5, OffsetFetchResponse)
    return response.topics[0].partitions[0].committed_offset


def member(wire: Wire, group: str, protocol_type: str, metadata: bytes) -> JoinGroupResponse:
    protocol = JoinGroupRequestProtocol(name="range", metadata=metadata)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type=protocol_type,
        protocols=[protocol],
    )
    joined = wire.ask(request, 3, JoinGroupResponse)
    assert joined.error_code == 0
    return joined


def deleted_offsets(wire: Wire) -> object:
    await_coordinator(wire)
    group = f"offsets-{next(_numbers)}"
    topics = {"one": new_topic(wire), "other": new_topic(wire)}
    one, other = topics.values()
    names = {value: key for key, value in topics.items()}
    seen: list[object] = []

    def delete(group: str, **wanted: list[int]) -> None:
        named = {topics.get(name, name): numbers for name, numbers in wanted.items()}
        code, found = delete_offsets(wire, group, **named)
        seen.append((code, sorted((names.get(name, name), parts) for name, parts in found)))

    commit(wire, group, one)
    for wanted in ({"one": [0]}, {"one": [0, 9]}, {"absent": [0]}, {"one": [-1]}, {}):
        delete(group, **wanted)
        seen.append(offset_of(wire, group, one))
    delete("no-such-group", one=[0])
    delete("no-such-group", absent=[0])
    delete("", one=[0])
    commit(wire, group, one)
    commit(wire, group, other)
    joined = member(wire, group, "consumer", subscription(one))
    delete(group, one=[0], other=[0])
    sync = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    wire.ask(sync, 3, SyncGroupResponse)
    commit(wire, group, other, joined)
    delete(group, one=[0], other=[0])
    seen += [offset_of(wire, group, one), offset_of(wire, group, other)]
    member(wire, f"{group}-odd", "consumer", b"odd")
    delete(f"{group}-odd", one=[0])
    member(wire, f"{group}-connect", "connect", b"odd")
    delete(f"{group}-connect", one=[0])
    return seen


def subscription(*topics: str) -> bytes:
    return ConsumerProtocolSubscription(topics=list(topics)).encode_versioned(0)


# --- reassignments


def reassign(
    wire: Wire,
    *topics: tuple[str, dict[int, list[int] | None]],
    version: int = 1,
    resize: bool = True,
) -> object:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=5000,
        allow_replication_factor_change=resize,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in topics
        ],
    )
    response = wire.ask(request, version, AlterPartitionReassignmentsResponse)
    return (
        response.error_code,
        response.error_message or None,
        response.allow_replication_factor_change,
        [
            (part.partition_index, part.error_code, part.error_message or None)
            for topic in response.responses
            for part in topic.partitions
        ],
    )


def reassignments(wire: Wire) -> object:
    name = "reassigned-topic"
    if wire.metadata(name).topics[0].error_code:
        wire.create_topic(name, 2)
    attempts: list[list[tuple[str, dict[int, list[int] | None]]]] = [
        [("absent", {0: [1]})],
        [(name, {0: [1], 9: [1], -1: [1]})],
        *([(name, {0: replicas})] for replicas in ([2], [1, 1], [], None, [1, 2], [-1])),
        [(name, {0: [1]}), (name, {0: [1], 1: [1]})],
        [("absent", {0: None})],
        [(name, {9: None})],
        [],
    ]
    seen = [reassign(wire, *topics) for topics in attempts]
    seen.append(reassign(wire, (name, {0: [1, 2]}), resize=False))
    seen.append(reassign(wire, (name, {0: [1]}), version=0))
    listed: list[list[tuple[str, list[int]]] | None] = [None, [], [(name, [0, 9]), ("absent", [0])]]
    for topics in listed:
        named = None
        if topics is not None:
            named = [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in topics
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=5000, topics=named)
        response = wire.ask(request, 0, ListPartitionReassignmentsResponse)
        seen.append((response.error_code, len(response.topics)))
    return seen


# --- quotas


Entity = list[tuple[str, str | None]]


def alter_quotas(
    wire: Wire, entity: Entity, *operations: tuple[str, float | None], validate_only: bool = False
) -> object:
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in operations
                ],
            )
        ],
        validate_only=validate_only,
    )
    (entry,) = wire.ask(request, 1, AlterClientQuotasResponse).entries
    found = sorted((part.entity_type, part.entity_name or "") for part in entry.entity)
    return entry.error_code, entry.error_message, found


def described_quotas(wire: Wire) -> object:
    _await_changes(wire)
    response = wire.ask(DescribeClientQuotasRequest(), 1, DescribeClientQuotasResponse)
    return sorted(
        (
            sorted((part.entity_type, part.entity_name or "") for part in entry.entity),
            sorted((value.key, value.value) for value in entry.values),
        )
        for entry in response.entries or ()
    )


QUOTAS: tuple[tuple[Entity, tuple[str, float | None]], ...] = (
    ([("user", "a")], ("producer_byte_rate", 1000.0)),
    ([("user", "a"), ("client-id", None)], ("request_percentage", 50.5)),
    ([("client-id", "c")], ("consumer_byte_rate", 5.0)),
    ([("user", "a")], ("controller_mutation_rate", 0.5)),
    ([("ip", "1.2.3.4")], ("connection_creation_rate", 10.0)),
    ([("ip", None)], ("connection_creation_rate", 10.0)),
    ([("ip", "not-an-ip!!")], ("connection_creation_rate", 10.0)),
    ([("ip", "1.2.3.4"), ("user", "a")], ("connection_creation_rate", 10.0)),
    ([("ip", "1.2.3.4")], ("producer_byte_rate", 10.0)),
    ([("user", "a")], ("connection_creation_rate", 10.0)),
    ([("user", "a")], ("unknown", 10.0)),
    ([("user", "a")], ("producer_byte_rate", 0.0)),
    ([("user", "a")], ("producer_byte_rate", -5.0)),
    ([("user", "a")], ("producer_byte_rate", 10.5)),
    ([("user", "a")], ("producer_byte_rate", 1e19)),
    ([("ip", "1.2.3.4")], ("connection_creation_rate", 1e10)),
    ([("ip", "1.2.3.4")], ("connection_creation_rate", 0.5)),
    ([("user", "")], ("producer_byte_rate", 10.0)),
    ([("odd", "x")], ("producer_byte_rate", 10.0)),
    ([], ("producer_byte_rate", 10.0)),
    ([("user", "absent")], ("producer_byte_rate", None)),
    ([("user", "absent")], ("unknown", None)),
    ([("client-id", "c")], ("consumer_byte_rate", None)),
)


def quotas(wire: Wire) -> object:
    seen: list[object] = []
    for entity, operation in QUOTAS:
        seen.append(alter_quotas(wire, entity, operation, validate_only=True))
        seen.append(alter_quotas(wire, entity, operation))
    seen.append(described_quotas(wire))
    for entity, (key, _) in QUOTAS[:6]:
        alter_quotas(wire, entity, (key, None))
    seen.append(described_quotas(wire))
    return seen


# --- features


FEATURES: tuple[list[tuple[str, int, int]], ...] = (
    [("transaction.version", 2, 1)],
    [("transaction.version", 1, 1)],
    [("transaction.version", 3, 1)],
    [("transaction.version", 1, 2)],
    [("transaction.version", 0, 1)],
    [("transaction.version", -1, 1)],
    [("transaction.version", 2, 0)],
    [("transaction.version", 2, 9)],
    [("unknown.version", 1, 1)],
    [("unknown.version", 1, 1), ("transaction.version", 2, 1)],
    [],
)


def features(wire: Wire) -> object:
    seen = []
    for version in (1, 2):
        for updates in FEATURES:
            request = UpdateFeaturesRequest(
                validate_only=True,
                feature_updates=[
                    FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                    for name, level, kind in updates
                ],
            )
            response = wire.ask(request, version, UpdateFeaturesResponse)
            results = [
                (each.feature, each.error_code, each.error_message) for each in response.results
            ]
            seen.append((response.error_code, response.error_message, results))
    return seen


# --- directories


def moved_replicas(wire: Wire) -> object:
    name = "moved-topic"
    if wire.metadata(name).topics[0].error_code:
        wire.create_topic(name, 1)
    request = DescribeLogDirsRequest(topics=None)
    (own,) = wire.ask(request, 4, DescribeLogDirsResponse).results
    seen: list[object] = [(own.error_code, own.total_bytes > 0, own.usable_bytes > 0)]
    for path in ("/no-such-directory", "relative", own.log_dir):
        topics = [
            AlterReplicaLogDirTopic(name=name, partitions=[0, 9]),
            AlterReplicaLogDirTopic(name="absent", partitions=[0]),
        ]
        directory = AlterReplicaLogDir(path=path, topics=topics)
        move = AlterReplicaLogDirsRequest(dirs=[directory])
        response = wire.ask(move, 2, AlterReplicaLogDirsResponse)
        seen.append(
            sorted(
                (topic.topic_name, part.partition_index, part.error_code)
                for topic in response.results
                for part in topic.partitions
            )
        )
    return seen


# --- loggers


def levels_of_loggers(wire: Wire) -> object:
    """The brokers have different loggers, but for the one above them."""
    assert alter(wire, (LOGGER, "1", [("root", SET, "INFO")])) == [(LOGGER, 0, None)]
    rows = described(wire, LOGGER, "1")
    name = next(row[0] for row in rows if row[0].endswith((".log.TimeIndex", ".log.log_cleaner")))
    attempts: list[list[Change]] = [
        [(name, SET, "DEBUG")],
        [(name, SET, "debug")],
        [(name, DELETE, None)],
        [(name, APPEND, "DEBUG")],
        [(name, SUBTRACT, "DEBUG")],
        [(name, SET, None)],
        [(name, SET, "DEBUG"), (name, SET, "INFO")],
        [("absent", SET, "INFO")],
        [("absent", DELETE, None)],
        [("root", SET, "WARN")],
        [("root", DELETE, None)],
        [(name, SET, "DEBUG"), ("root", DELETE, None)],
    ]
    seen: list[object] = []
    for changes in attempts:
        for validate_only in (True, False):
            seen.append(alter(wire, (LOGGER, "1", changes), validate_only=validate_only))
            seen.append(_described(wire, LOGGER, "1", name))
    seen += [alter(wire, (LOGGER, broker, [("root", SET, "INFO")])) for broker in ("9", "", "x")]
    seen.append(alter(wire, (LOGGER, "1", [("root", SET, "INFO")])))
    return str(seen).replace(name, "NAME")


CASES: list[Callable[[Wire], object]] = [
    values_of_topics,
    settings_of_topics,
    refused_changes,
    replaced_settings,
    settings_of_brokers,
    refused_settings_of_brokers,
    settings_of_groups,
    settings_of_client_metrics,
    deleted_offsets,
    reassignments,
    quotas,
    features,
    moved_replicas,
    levels_of_loggers,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_responses_equal_those_of_kafka(
    apache: str, companion: str, case: Callable[[Wire], object]
) -> None:
    with Wire(apache) as theirs, Wire(companion) as ours:
        assert case(ours) == case(theirs)
