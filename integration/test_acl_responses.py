"""The companion broker refuses what ACLs deny as Apache Kafka does, call by call.

Both brokers have the same ACLs. Everything is allowed from 127.0.0.1; clients at 127.0.0.2 have the
rights of `GRANTS`. Each case is a request of such a client, which both brokers respond to with the
same fields.
"""

import itertools
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from kclient import AdminClient, Consumer, Producer
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kclient.admin.new_topic import NewTopic
from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.common.uuids import text_to_uuid
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct
from kclient.protocol.message import Request
from kclient.protocol.messages import (
    acls,
    alter_configs,
    client_quotas,
    committed_offsets,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    group_membership,
    groups,
    init_producer_id,
    leaders_and_reassignments,
    log_dirs,
    log_offsets,
    metadata,
    node_registration,
    offset_delete,
    produce,
    quorum,
    raft_voters,
    topics,
    transaction_descriptions,
    transactions,
    update_features,
    user_scram_credentials,
)
from kclient.protocol.messages.sasl import SaslHandshakeRequest
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.transactions import marker, transactional_batch
from tests.support.clients.wire import TIMEOUT, Wire, batch

ADMIN_HOST, CLIENT_HOST = "127.0.0.1", "127.0.0.2"
PRINCIPAL = "User:ANONYMOUS"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "0",
    # A producer without coordinator may write in transactions.
    "transaction.partition.verification.enable": "false",
}
TOPICS = ("open", "seen", "secret")
NAMED = (*TOPICS, "missing")
GROUPS = ("g-open", "g-seen", "g-secret")
UNKNOWN_ID = b"\x07" * 16

Grant = tuple[ResourceType, str, PatternType, AclOperation, AclPermissionType]
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

GRANTS: tuple[Grant, ...] = (
    (ResourceType.TOPIC, "open", LITERAL, AclOperation.ALL, ALLOW),
    (ResourceType.TOPIC, "seen", LITERAL, AclOperation.DESCRIBE, ALLOW),
    (ResourceType.TOPIC, "secret", LITERAL, AclOperation.ALL, ALLOW),
    (ResourceType.TOPIC, "sec", PREFIXED, AclOperation.ALL, DENY),
    (ResourceType.TOPIC, "make-", PREFIXED, AclOperation.CREATE, ALLOW),
    (ResourceType.TOPIC, "full-", PREFIXED, AclOperation.ALL, ALLOW),
    (ResourceType.TRANSACTIONAL_ID, "t-open", LITERAL, AclOperation.ALL, ALLOW),
    (ResourceType.GROUP, "g-open", LITERAL, AclOperation.ALL, ALLOW),
    (ResourceType.GROUP, "g-seen", LITERAL, AclOperation.DESCRIBE, ALLOW),
)
ADMIN_GRANTS: tuple[Grant, ...] = tuple(
    (kind, name, LITERAL, AclOperation.ALL, ALLOW)
    for kind, name in (
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.CLUSTER, "kafka-cluster"),
    )
)


class Broker(NamedTuple):
    """A broker with topics, committed offsets and ACLs.

    Attributes:
        bootstrap: Its address.
        ids: Topic ids by name.
    """

    bootstrap: str
    ids: dict[str, bytes]


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("acl-responses-")
    options = ClusterOptions(properties=AUTHORIZER)
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        yield prepared(cluster.bootstrap())


@pytest.fixture(scope="module")
def companion() -> Iterator[Broker]:
    with EmbeddedCluster(config=AUTHORIZER) as cluster:
        yield prepared(cluster.bootstrap_servers)


def prepared(bootstrap: str) -> Broker:
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).raise_for_errors()
        with Producer(bootstrap_servers=bootstrap) as producer:
            for name in TOPICS:
                producer.send(name, b"a").result(30)
        offsets = {TopicPartition(name, 0): OffsetAndMetadata(1) for name in TOPICS}
        for group in GROUPS:
            with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
                consumer.assign(list(offsets))
                consumer.commit(offsets)
        for host, grants in ((ADMIN_HOST, ADMIN_GRANTS), (CLIENT_HOST, GRANTS)):
            admin.create_acls([binding(host, grant) for grant in grants]).raise_for_errors()
        described = admin.describe_topics(TOPICS)
    ids = {name: text_to_uuid(each.topic_id or "") for name, each in described.items()}
    broker = Broker(bootstrap, ids)

    def is_denied() -> bool:
        with client(broker) as wire:
            return bool(wire.metadata("seen").topics) and wire.fetch("seen", 0).error_code == 29

    wait_until(is_denied, "the ACLs are in force", 20)
    return broker


def binding(host: str, grant: Grant) -> AclBinding:
    kind, name, pattern, operation, permission = grant
    entry = AccessControlEntry(PRINCIPAL, host, operation, permission)
    return AclBinding(ResourcePattern(kind, name, pattern), entry)


def client(broker: Broker, source: str = CLIENT_HOST) -> Wire:
    host, _, port = broker.bootstrap.rpartition(":")
    connected = socket.create_connection((host, int(port)), TIMEOUT, source_address=(source, 0))
    return Wire(broker.bootstrap, connected)


def seen(value: Any, names: dict[bytes, str]) -> Any:
    """Return a response without what differs between brokers."""
    if isinstance(value, Struct):
        return {
            name: 1
            if name == "port" and getattr(value, name) > 0
            else seen(getattr(value, name), names)
            for name in value.fields
            if name not in _DIFFERENT
        }
    if isinstance(value, list):
        return [seen(each, names) for each in value]
    return names.get(value, "another id") if isinstance(value, bytes) else value


_DIFFERENT = {
    "brokers",
    "cluster_id",
    "controller_id",
    "error_message",
    "leader_epoch",
    "last_timestamp",
    "log_append_time_ms",
    "member_id",
    "producer_id",
    "records",
    "throttle_time_ms",
    "timestamp",
    "configs",
}
"""Fields that differ between brokers, or whose equality other tests show."""

Case = tuple[str, Callable[[Broker], Request], tuple[int, ...]]


def named_topics(kind: type[Any], build: Callable[[], list[Any]], name: str = "name") -> list[Any]:
    """Return one entry for each topic, with its name in the field `name`."""
    return [kind(**{name: topic, "partitions": build()}) for topic in NAMED]


def produce_request(
    broker: Broker, *, by_id: bool = False, acks: int = -1, transactional_id: str | None = None
) -> Request:
    records = batch([b"b"]) if transactional_id is None else transactional_batch([b"b"], 77)
    found = [
        produce.TopicProduceData(
            name=name,
            topic_id=broker.ids.get(name, UNKNOWN_ID) if by_id else bytes(16),
            partition_data=[produce.PartitionProduceData(index=0, records=records)],
        )
        for name in NAMED
    ]
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=found,
    )


def fetch_request(broker: Broker, *, replica_id: int = -1) -> Request:
    def positions() -> list[Any]:
        return [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)]

    found = named_topics(fetch.FetchTopic, positions, name="topic")
    for each in found:
        each.topic_id = broker.ids.get(each.topic, UNKNOWN_ID)
    return fetch.FetchRequest(replica_id=replica_id, max_wait_ms=0, max_bytes=1000, topics=found)


def list_offsets(_broker: Broker) -> Request:
    found = named_topics(
        log_offsets.ListOffsetsTopic,
        lambda: [log_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)],
    )
    return log_offsets.ListOffsetsRequest(replica_id=-1, topics=found)


def leader_epochs(_broker: Broker) -> Request:
    found = named_topics(
        log_offsets.OffsetForLeaderTopic,
        lambda: [log_offsets.OffsetForLeaderPartition(partition=0, leader_epoch=100)],
        name="topic",
    )
    return log_offsets.OffsetForLeaderEpochRequest(replica_id=-1, topics=found)


def delete_records(_broker: Broker) -> Request:
    found = [
        log_offsets.DeleteRecordsTopic(
            name=name,
            partitions=[log_offsets.DeleteRecordsPartition(partition_index=0, offset=0)],
        )
        for name in ("seen", "secret")
    ]
    return log_offsets.DeleteRecordsRequest(topics=found, timeout_ms=5000)


def named_metadata(_broker: Broker, *, create: bool = False, operations: bool = False) -> Request:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in NAMED],
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
    )


def metadata_by_id(broker: Broker) -> Request:
    ids = [*(broker.ids[name] for name in TOPICS), UNKNOWN_ID]
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=None, topic_id=each) for each in ids]
    )


def all_metadata(_broker: Broker) -> Request:
    return metadata.MetadataRequest(topics=None, include_cluster_authorized_operations=True)


def topic_partitions(_broker: Broker, names: tuple[str, ...]) -> Request:
    request = describe_topic_partitions.DescribeTopicPartitionsRequest
    topic = describe_topic_partitions.DescribeTopicPartitionsTopicRequest
    return request(topics=[topic(name=name) for name in names])


def coordinators(_broker: Broker, key_type: int) -> Request:
    keys = list(GROUPS) if key_type == 0 else ["t"]
    return find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)


def join_group(_broker: Broker) -> Request:
    protocol = group_membership.JoinGroupRequestProtocol(name="range", metadata=b"")
    return group_membership.JoinGroupRequest(
        group_id="g-seen", session_timeout_ms=6000, protocol_type="consumer", protocols=[protocol]
    )


def sync_group(_broker: Broker) -> Request:
    return group_membership.SyncGroupRequest(
        group_id="g-seen", protocol_type="consumer", protocol_name="range"
    )


def leave_group(_broker: Broker) -> Request:
    member = group_membership.MemberIdentity(member_id="m")
    return group_membership.LeaveGroupRequest(group_id="g-seen", members=[member])


def commit(broker: Broker, group: str) -> Request:
    found = []
    for name in NAMED:
        part = committed_offsets.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=""
        )
        topic_id = broker.ids.get(name, UNKNOWN_ID)
        found.append(
            committed_offsets.OffsetCommitRequestTopic(
                name=name, topic_id=topic_id, partitions=[part]
            )
        )
    return committed_offsets.OffsetCommitRequest(group_id=group, topics=found)


def commit_in_transaction(_broker: Broker, group: str, transactional_id: str) -> Request:
    def parts() -> list[Any]:
        return [
            committed_offsets.TxnOffsetCommitRequestPartition(
                partition_index=0, committed_offset=1, committed_metadata=""
            )
        ]

    return committed_offsets.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=900_000,
        topics=named_topics(committed_offsets.TxnOffsetCommitRequestTopic, parts),
        generation_id_or_member_epoch=-1,
    )


def old_offset_fetch(_broker: Broker, group: str, names: tuple[str, ...] | None) -> Request:
    found = None
    if names is not None:
        found = [
            committed_offsets.OffsetFetchRequestTopic(name=name, partition_indexes=[0])
            for name in names
        ]
    return committed_offsets.OffsetFetchRequest(group_id=group, topics=found)


def offset_fetch(broker: Broker, names: tuple[str, ...] | None) -> Request:
    asked = []
    for group in GROUPS:
        found = None
        if names is not None:
            found = [
                committed_offsets.OffsetFetchRequestTopics(
                    name=name, topic_id=broker.ids.get(name, UNKNOWN_ID), partition_indexes=[0]
                )
                for name in names
            ]
        asked.append(committed_offsets.OffsetFetchRequestGroup(group_id=group, topics=found))
    return committed_offsets.OffsetFetchRequest(groups=asked)


def delete_offsets(_broker: Broker, group: str) -> Request:
    def parts() -> list[Any]:
        return [offset_delete.OffsetDeleteRequestPartition(partition_index=5)]

    found = named_topics(offset_delete.OffsetDeleteRequestTopic, parts)
    return offset_delete.OffsetDeleteRequest(group_id=group, topics=found)


def create_topics(_broker: Broker) -> Request:
    names = ("make-1", "full-1", "other", "open")
    found = [
        topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names
    ]
    return topics.CreateTopicsRequest(topics=found, timeout_ms=5000, validate_only=True)


def delete_topics(broker: Broker) -> Request:
    states = [topics.DeleteTopicState(name=name) for name in ("seen", "missing")]
    ids = (broker.ids["secret"], broker.ids["seen"], UNKNOWN_ID)
    states += [topics.DeleteTopicState(name=None, topic_id=each) for each in ids]
    return topics.DeleteTopicsRequest(topics=states, timeout_ms=5000)


def create_partitions(_broker: Broker) -> Request:
    found = [
        topics.CreatePartitionsTopic(name=name, count=2, assignments=None)
        for name in ("seen", "secret", "missing")
    ]
    return topics.CreatePartitionsRequest(topics=found, timeout_ms=5000, validate_only=True)


def configs(_broker: Broker) -> Request:
    wanted = ((2, "open"), (2, "seen"), (2, "secret"), (2, "missing"), (4, "1"), (32, "g-seen"))
    return describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in wanted
        ]
    )


def one(request: type[Request], **fields: Any) -> Callable[[Broker], Request]:
    return lambda _broker: request(**fields)


def add_partitions(_broker: Broker) -> Request:
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_topics=[
            transactions.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in NAMED
        ],
    )


ALTERED = (
    *((2, name, "retention.ms", "5") for name in NAMED),
    (4, "1", "message.max.bytes", "5000"),
    (4, "", "message.max.bytes", "5000"),
    (8, "1", "root", "INFO"),
    (16, "m", "interval.ms", "500"),
    (32, "g-open", "consumer.session.timeout.ms", "45001"),
    (32, "g-seen", "consumer.session.timeout.ms", "45001"),
)
"""Type and name of resources, with a setting and its value."""

CASES: tuple[Case, ...] = (
    ("produce", produce_request, (7, 9, 12)),
    ("produce by id", partial(produce_request, by_id=True), (13,)),
    ("produce in a transaction", partial(produce_request, transactional_id="t"), (7, 12)),
    ("produce in own transaction", partial(produce_request, transactional_id="t-open"), (7, 11)),
    ("fetch", fetch_request, (4, 12, 13, 16)),
    ("fetch as replica", partial(fetch_request, replica_id=5), (12, 14)),
    ("list offsets", list_offsets, (1, 7, 10)),
    ("leader epochs", leader_epochs, (3, 4)),
    ("delete records", delete_records, (0, 2)),
    ("named metadata", named_metadata, (4, 9, 12, 13)),
    ("metadata with operations", partial(named_metadata, operations=True), (8, 13)),
    ("metadata that creates", partial(named_metadata, create=True), (5, 12)),
    ("metadata by id", metadata_by_id, (12, 13)),
    ("all metadata", all_metadata, (8, 10)),
    ("all topics", one(metadata.MetadataRequest, topics=None), (4, 13)),
    ("topic partitions", partial(topic_partitions, names=NAMED), (0,)),
    ("partitions of all topics", partial(topic_partitions, names=()), (0,)),
    ("groups' coordinators", partial(coordinators, key_type=0), (4, 6)),
    ("transaction's coordinator", partial(coordinators, key_type=1), (4, 6)),
    ("a coordinator", one(find_coordinator.FindCoordinatorRequest, key="g-secret"), (0, 1, 3)),
    ("join", join_group, (0, 5, 7, 9)),
    ("sync", sync_group, (0, 3, 5)),
    ("heartbeat", one(group_membership.HeartbeatRequest, group_id="g-seen", member_id="m"), (0, 4)),
    ("leave", leave_group, (3, 5)),
    ("commit", partial(commit, group="g-open"), (2, 8, 10)),
    ("commit to a group", partial(commit, group="g-seen"), (2, 8, 10)),
    (
        "commit in a transaction",
        partial(commit_in_transaction, group="g-open", transactional_id="t"),
        (2, 5),
    ),
    (
        "commit in a transaction to a group",
        partial(commit_in_transaction, group="g-seen", transactional_id="t-open"),
        (2, 5),
    ),
    (
        "commit in a transaction of topics",
        partial(commit_in_transaction, group="g-open", transactional_id="t-open"),
        (2, 5),
    ),
    ("old fetch of offsets", partial(old_offset_fetch, group="g-seen", names=NAMED), (1, 5, 7)),
    ("old fetch of all offsets", partial(old_offset_fetch, group="g-seen", names=None), (2, 7)),
    ("old fetch of a group", partial(old_offset_fetch, group="g-secret", names=NAMED), (1, 2, 7)),
    ("fetch of offsets", partial(offset_fetch, names=NAMED), (8, 9, 10)),
    ("fetch of all offsets", partial(offset_fetch, names=None), (8, 9, 10)),
    (
        "describe groups",
        one(groups.DescribeGroupsRequest, groups=list(GROUPS), include_authorized_operations=True),
        (3, 5, 6),
    ),
    ("delete offsets", partial(delete_offsets, group="g-open"), (0,)),
    ("delete offsets of a group", partial(delete_offsets, group="g-seen"), (0,)),
    ("list groups", one(groups.ListGroupsRequest), (0, 4)),
    ("delete groups", one(groups.DeleteGroupsRequest, groups_names=["g-seen", "g-none"]), (0, 2)),
    ("producer id", one(init_producer_id.InitProducerIdRequest, transactional_id=None), (1, 4)),
    ("transaction", one(init_producer_id.InitProducerIdRequest, transactional_id="t"), (1, 4)),
    ("partitions in a transaction", add_partitions, (0, 2, 3)),
    (
        "offsets in a transaction",
        one(transactions.AddOffsetsToTxnRequest, transactional_id="t", group_id="g-open"),
        (0, 2, 4),
    ),
    (
        "end of a transaction",
        one(transactions.EndTxnRequest, transactional_id="t", producer_id=5),
        (0, 2, 4),
    ),
    (
        "describe transactions",
        one(
            transaction_descriptions.DescribeTransactionsRequest,
            transactional_ids=["t-secret", "t-none"],
        ),
        (0,),
    ),
    (
        "list transactions",
        one(transaction_descriptions.ListTransactionsRequest, state_filters=["Empty", "odd"]),
        (0, 1),
    ),
    (
        "transaction markers",
        one(transactions.WriteTxnMarkersRequest, markers=[marker(77, *NAMED)]),
        (1, 2),
    ),
    (
        "producers",
        one(
            describe_producers.DescribeProducersRequest,
            topics=[
                describe_producers.DescribeProducersTopicRequest(
                    name=name, partition_indexes=[0, 9]
                )
                for name in NAMED
            ],
        ),
        (0,),
    ),
    ("create topics", create_topics, (2, 5, 7)),
    ("delete topics", delete_topics, (6,)),
    ("create partitions", create_partitions, (0, 3)),
    ("describe configs", configs, (1, 4)),
    (
        "alter configs incrementally",
        one(
            alter_configs.IncrementalAlterConfigsRequest,
            resources=[
                alter_configs.IncrementalAlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        alter_configs.IncrementalAlterableConfig(
                            name=key, config_operation=0, value=value
                        )
                    ],
                )
                for kind, name, key, value in ALTERED
            ],
            validate_only=True,
        ),
        (0, 1),
    ),
    (
        "alter configs",
        one(
            alter_configs.AlterConfigsRequest,
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name=key, value=value)],
                )
                for kind, name, key, value in ALTERED
            ],
            validate_only=True,
        ),
        (0, 2),
    ),
    ("list config resources", one(alter_configs.ListConfigResourcesRequest), (0, 1)),
    (
        "alter quotas",
        one(
            client_quotas.AlterClientQuotasRequest,
            entries=[
                client_quotas.AlterClientQuotasRequestEntryData(
                    entity=[client_quotas.EntityData(entity_type="user", entity_name="a")],
                    ops=[client_quotas.OpData(key="producer_byte_rate", value=5.0)],
                )
            ],
        ),
        (0, 1),
    ),
    (
        "update features",
        one(
            update_features.UpdateFeaturesRequest,
            feature_updates=[
                update_features.FeatureUpdateKey(feature="transaction.version", max_version_level=2)
            ],
        ),
        (0, 2),
    ),
    (
        "reassign",
        one(
            leaders_and_reassignments.AlterPartitionReassignmentsRequest,
            topics=[
                leaders_and_reassignments.ReassignableTopic(
                    name=name,
                    partitions=[
                        leaders_and_reassignments.ReassignablePartition(
                            partition_index=0, replicas=[1]
                        )
                    ],
                )
                for name in NAMED
            ],
        ),
        (0, 1),
    ),
    (
        "reassignments",
        one(leaders_and_reassignments.ListPartitionReassignmentsRequest, topics=None),
        (0,),
    ),
    (
        "move between directories",
        one(
            log_dirs.AlterReplicaLogDirsRequest,
            dirs=[
                log_dirs.AlterReplicaLogDir(
                    path="/d",
                    topics=[
                        log_dirs.AlterReplicaLogDirTopic(name=name, partitions=[0])
                        for name in NAMED
                    ],
                )
            ],
        ),
        (1, 2),
    ),
    ("quotas", one(client_quotas.DescribeClientQuotasRequest), (0, 1)),
    ("log directories", one(log_dirs.DescribeLogDirsRequest, topics=None), (2, 4)),
    (
        "cluster",
        one(metadata.DescribeClusterRequest, include_cluster_authorized_operations=True),
        (0, 2),
    ),
    (
        "describe ACLs",
        one(
            acls.DescribeAclsRequest,
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
        ),
        (1, 3),
    ),
    (
        "create ACLs",
        one(
            acls.CreateAclsRequest,
            creations=[
                acls.AclCreation(
                    resource_type=2,
                    resource_name="a",
                    principal="User:a",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ],
        ),
        (1, 3),
    ),
    (
        "delete ACLs",
        one(
            acls.DeleteAclsRequest,
            filters=[acls.DeleteAclsFilter(resource_type_filter=2, operation=3, permission_type=3)],
        ),
        (1, 3),
    ),
    (
        "users",
        one(
            user_scram_credentials.DescribeUserScramCredentialsRequest,
            users=[user_scram_credentials.UserName(name="u")],
        ),
        (0,),
    ),
    (
        "user to delete",
        one(
            user_scram_credentials.AlterUserScramCredentialsRequest,
            deletions=[user_scram_credentials.ScramCredentialDeletion(name="u", mechanism=1)],
        ),
        (0,),
    ),
    ("SASL", one(SaslHandshakeRequest, mechanism="PLAIN"), (1,)),
    (
        "quorum",
        one(
            quorum.DescribeQuorumRequest,
            topics=[
                quorum.DescribeQuorumRequestTopicData(
                    topic_name="__cluster_metadata",
                    partitions=[quorum.DescribeQuorumRequestPartitionData(partition_index=0)],
                )
            ],
        ),
        (0, 2),
    ),
    (
        "elect leaders",
        one(
            leaders_and_reassignments.ElectLeadersRequest,
            topic_partitions=[
                leaders_and_reassignments.ElectLeadersTopicPartitions(topic="open", partitions=[0])
            ],
        ),
        (0, 1, 2),
    ),
    ("unregister broker", one(node_registration.UnregisterBrokerRequest, broker_id=77), (0,)),
    ("add voter", one(raft_voters.AddRaftVoterRequest, voter_id=77), (0, 1)),
    ("remove voter", one(raft_voters.RemoveRaftVoterRequest, voter_id=77), (0,)),
)
VERSIONS = [
    pytest.param(build, version, id=f"{name} v{version}")
    for name, build, versions in CASES
    for version in versions
]


def outcome(broker: Broker, build: Callable[[Broker], Request], version: int) -> Any:
    names = {topic_id: name for name, topic_id in broker.ids.items()}
    names |= {UNKNOWN_ID: "unknown", bytes(16): "none"}
    request = build(broker)
    with client(broker) as wire:
        try:
            response = wire.ask(request, version, request.response_type)
        except EOFError:
            return "closed"
    return in_order(seen(response, names))


def in_order(value: Any) -> Any:
    """Sort lists: Apache Kafka puts refused items before or after the others."""
    if isinstance(value, dict):
        return {name: in_order(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((in_order(each) for each in value), key=repr)
    return value


@pytest.mark.parametrize(("build", "version"), VERSIONS)
def test_refusals_equal_those_of_kafka(
    apache: Broker, companion: Broker, build: Callable[[Broker], Request], version: int
) -> None:
    assert outcome(companion, build, version) == outcome(apache, build, version)


def test_refused_append_without_acks_closes_the_connection(
    apache: Broker, companion: Broker
) -> None:
    for broker in (apache, companion):
        with client(broker) as wire:
            wire.send(produce_request(broker, acks=0), 9)
            assert wire.is_closed_by_peer()


def test_each_served_api_has_a_case(companion: Broker) -> None:
    tried = {build(companion).api_key for _, build, _ in CASES}
    without_authorization = {ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE}
    assert set(API_TABLE) == tried | without_authorization


# --- ACLs themselves, from the host that may alter the cluster


def acl(**changes: Any) -> acls.AclCreation:
    values: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:u",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return acls.AclCreation(**{**values, **changes})


INVALID_ACLS = (
    {"resource_type": 4, "resource_name": "other"},
    {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
    {"resource_name": ""},
    {"principal": "u"},
    {"host": "10.0.0.0/8"},
    {"operation": 99},
)
"""Changes of an ACL."""


@pytest.mark.parametrize("changes", INVALID_ACLS, ids=repr)
def test_created_acls_are_checked_as_in_kafka(
    apache: Broker, companion: Broker, changes: dict[str, Any]
) -> None:
    found = []
    for broker in (companion, apache):
        with client(broker, ADMIN_HOST) as wire:
            request = acls.CreateAclsRequest(creations=[acl(**changes), acl(), acl()])
            response = wire.ask(request, 3, acls.CreateAclsResponse)
            found.append([(each.error_code, each.error_message) for each in response.results])
    assert found[0] == found[1]


FILTERED = "User:filtered"
PATTERNS = (("t", 3), ("t", 4), ("topic", 3), ("top", 4), ("*", 3), ("*", 4))


def condition(pattern_type: int, name: str | None) -> dict[str, Any]:
    return {
        "resource_type_filter": 2,
        "resource_name_filter": name,
        "pattern_type_filter": pattern_type,
        "principal_filter": FILTERED,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def described_acls(wire: Wire, given: dict[str, Any]) -> Any:
    response = wire.ask(acls.DescribeAclsRequest(**given), 3, acls.DescribeAclsResponse)
    return in_order(seen(response, {}))


@pytest.mark.parametrize(
    ("pattern_type", "name"), list(itertools.product((1, 2, 3, 4), ("t", "topic", "*", None)))
)
def test_filters_find_the_acls_that_kafka_finds(
    apache: Broker, companion: Broker, pattern_type: int, name: str | None
) -> None:
    found = []
    creations = [
        acl(resource_name=pattern, resource_pattern_type=kind, principal=FILTERED)
        for pattern, kind in PATTERNS
    ]
    given = condition(pattern_type, name)
    for broker in (companion, apache):
        with client(broker, ADMIN_HOST) as wire:
            wire.ask(acls.CreateAclsRequest(creations=creations), 3, acls.CreateAclsResponse)
            while len(described_acls(wire, condition(1, None))["resources"]) < len(PATTERNS):
                pass  # Apache Kafka responds before the broker has applied them
            found.append(described_acls(wire, given))
            request = acls.DeleteAclsRequest(filters=[acls.DeleteAclsFilter(**given)])
            found.append(in_order(seen(wire.ask(request, 3, acls.DeleteAclsResponse), {})))
    assert found[:2] == found[2:]
    assert found[0]["error_code"] == 0
