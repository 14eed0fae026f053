"""The companion broker responds to the same requests with the same fields as Apache Kafka.

Each case is a function that sends requests over a bare connection and returns what it saw. It runs
against both brokers, and the results have to be equal.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from kclient.common.broker_errors import CoordinatorNotAvailableError, code_of
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.protocol.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kclient.protocol.messages.produce import PartitionProduceResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from kclient.record import CompressionType, Record, read_batches
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.transaction_requests import (
    add,
    end,
    init,
    new_producer,
    prepare_coordinator,
)
from tests.support.clients.transactions import (
    commit_in_transaction,
    described_producers,
    end_group_transaction,
    end_transaction,
    fetch_offset,
    marker,
    transactional_batch,
    write_markers,
)
from tests.support.clients.wire import Wire, batch

_numbers = count()
_TIMESTAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    properties = {
        "group.initial.rebalance.delay.ms": "0",
        # A producer without coordinator may write transactional batches.
        "transaction.partition.verification.enable": "false",
    }
    options = ClusterOptions(properties=properties)
    directory = tmp_path_factory.mktemp("same-responses-")
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        _await_coordinator(cluster.bootstrap())
        yield cluster.bootstrap()


@pytest.fixture(scope="module")
def companion() -> Iterator[str]:
    settings = {"transaction.partition.verification.enable": False}
    with EmbeddedCluster(config=settings) as cluster:
        _await_coordinator(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


def _await_coordinator(bootstrap: str) -> None:
    not_yet = code_of(CoordinatorNotAvailableError)

    def is_there() -> bool:
        with Wire(bootstrap) as wire:
            response = wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
        return response.error_code != not_yet

    wait_until(is_there, "there is a coordinator", 60)


def new_topic(wire: Wire, configs: Mapping[str, str] | None = None) -> str:
    name = f"same-{next(_numbers)}"
    wire.create_topic(name, 1, **(configs or {}))
    # Apache Kafka responds before the partition's leader serves.
    wait_until(lambda: wire.fetch(name, 0).error_code == 0, f"{name} can be read", 20)
    return name


def new_producer_id(wire: Wire) -> int:
    """Return a producer id; Apache Kafka needs a moment for its first."""

    def request_id() -> InitProducerIdResponse | None:
        response = wire.ask(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse)
        return None if response.error_code else response

    given = wait_until(request_id, "there is a producer id", 20)
    assert given is not None
    assert given.producer_epoch == 0
    return given.producer_id


def fields(response: PartitionProduceResponse) -> dict[str, Any]:
    return {
        "code": response.error_code,
        "base_offset": response.base_offset,
        "log_append_time": response.log_append_time_ms,
        "log_start_offset": response.log_start_offset,
    }


def cut(wire: Wire, topic: str, value: bytes = b"a") -> None:
    """Append two records and delete the first, so that the log starts at 1."""
    wire.produce(topic, batch([value], timestamp=_TIMESTAMP))
    wire.produce(topic, batch([value], timestamp=_TIMESTAMP))
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
            )
        ],
        timeout_ms=5000,
    )
    response = wire.ask(request, 2, DeleteRecordsResponse)
    assert response.topics[0].partitions[0].low_watermark == 1


# --- records


def fetch_out_of_range(wire: Wire) -> object:
    topic = new_topic(wire)
    cut(wire, topic)
    found = [wire.fetch(topic, offset) for offset in (0, 5)]
    return [
        (part.error_code, part.high_watermark, part.last_stable_offset, part.log_start_offset)
        for part in found
    ]


def fetch_in_session(
    wire: Wire,
    topics: list[FetchTopic],
    session: tuple[int, int],
    *,
    forgotten: list[ForgottenTopic] | None = None,
    version: int = 16,
) -> tuple[int, tuple[int, bool, list[tuple[int, ...]]]]:
    """Return the session id of a response, and what does not differ between brokers."""
    session_id, epoch = session
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=forgotten or [],
    )
    response = wire.ask(request, version, FetchResponse)
    seen: list[tuple[int, ...]] = [
        (part.partition_index, part.error_code, part.high_watermark, part.log_start_offset)
        for topic in response.responses
        for part in topic.partitions
    ]
    return response.session_id, (response.error_code, response.session_id > 0, seen)


def fetched_topic(name: str, topic_id: bytes, *indexes: int, offset: int = 0) -> FetchTopic:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in indexes
    ]
    return FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)


def new_partitions(wire: Wire, count: int) -> tuple[str, bytes]:
    """Create a topic whose partitions can all be read; return its name and id."""
    name = f"same-{next(_numbers)}"
    topic_id = wire.create_topic(name, count)

    def are_led() -> bool:
        found = [wire.fetch(name, 0, partition=index) for index in range(count)]
        return all(part.error_code == 0 for part in found)

    wait_until(are_led, f"{name} can be read", 20)
    return name, topic_id


def incremental_fetches(wire: Wire) -> object:
    """Unchanged, appended, changed, added, forgotten and rotated partitions of a session."""
    name, topic_id = new_partitions(wire, 5)
    session, first = fetch_in_session(wire, [fetched_topic(name, topic_id, 0, 1, 2)], (0, 0))
    seen = [first, fetch_in_session(wire, [], (session, 1))[1]]
    for index in (0, 2):
        wire.produce(name, batch([b"a"]), partition=index)
    seen.append(fetch_in_session(wire, [], (session, 2))[1])
    seen.append(fetch_in_session(wire, [], (session, 3))[1])
    wire.produce(name, batch([b"a"]), partition=1)
    seen.append(fetch_in_session(wire, [], (session, 4))[1])
    moved = [fetched_topic(name, topic_id, 0, 1, offset=1), fetched_topic(name, topic_id, 4)]
    seen.append(fetch_in_session(wire, moved, (session, 5))[1])
    beyond = [fetched_topic(name, topic_id, 0, offset=9)]
    for epoch, topics in ((6, beyond), (7, []), (8, moved), (9, [])):
        seen.append(fetch_in_session(wire, topics, (session, epoch))[1])
    gone = [ForgottenTopic(topic=name, topic_id=topic_id, partitions=[2, 3])]
    seen.append(fetch_in_session(wire, [], (session, 10), forgotten=gone)[1])
    gone = [ForgottenTopic(topic=name, topic_id=topic_id, partitions=[0, 1, 4])]
    seen.append(fetch_in_session(wire, [], (session, 11), forgotten=gone)[1])
    seen.append(fetch_in_session(wire, [], (session, 12))[1])
    return seen


def fetch_session_errors(wire: Wire) -> object:
    """Unknown sessions, wrong epochs, other topic keys, closed and replaced sessions."""
    name, topic_id = new_partitions(wire, 2)
    topics = [fetched_topic(name, topic_id, 0, 1)]
    session, first = fetch_in_session(wire, topics, (0, 0))
    seen = [first]
    for at, version in (((session, 2), 16), ((session, 1), 12), ((session, 1), 16)):
        seen.append(fetch_in_session(wire, [], at, version=version)[1])
    second, replaced = fetch_in_session(wire, topics, (session, 0))
    seen += [replaced, fetch_in_session(wire, [], (session, 2))[1]]
    seen += [fetch_in_session(wire, topics, (second, -1))[1]]
    seen += [fetch_in_session(wire, [], (second, 1))[1]]
    seen += [fetch_in_session(wire, [], (0, 5))[1], fetch_in_session(wire, [], (0, 0))[1]]
    return seen


def deleted_topic_in_session(wire: Wire) -> object:
    """Errors of an unknown, a deleted and a recreated topic, by id; their order is not defined."""
    name, topic_id = new_partitions(wire, 1)
    topics = [fetched_topic(name, topic_id, 0), fetched_topic("", b"\7" * 16, 0)]
    session, first = fetch_in_session(wire, topics, (0, 0))
    seen = [first, fetch_in_session(wire, [], (session, 1))[1]]
    delete = DeleteTopicsRequest(topic_names=[name], timeout_ms=20_000)
    deleted = wire.ask(delete, 4, DeleteTopicsResponse)
    assert deleted.responses[0].error_code == 0
    wait_until(lambda: wire.metadata(name).topics[0].error_code != 0, "it is deleted", 20)
    seen.append(fetch_in_session(wire, [], (session, 2))[1])
    wire.create_topic(name, 1)
    wait_until(lambda: wire.fetch(name, 0).error_code == 0, f"{name} can be read", 20)
    seen.append(fetch_in_session(wire, [], (session, 3))[1])
    return [(code, in_session, sorted(parts)) for code, in_session, parts in seen]


def produce_zstd(wire: Wire) -> object:
    topic = new_topic(wire)
    records = batch([b"a" * 100], compression=CompressionType.ZSTD)
    return [fields(wire.produce(topic, records, version=version)) for version in range(3, 13)]


def produce_several_batches(wire: Wire) -> object:
    topic = new_topic(wire)
    records = batch([b"a"]) + batch([b"b"])
    return [fields(wire.produce(topic, records, version=version)) for version in (3, 7, 8, 12)]


def refused_batches(wire: Wire) -> object:
    """Wrong sequence, no key in a compacted topic, timestamp out of range, damaged, too large."""
    seen = []
    for configs, records in (
        ({}, batch([b"a"], producer_id=4711, producer_epoch=0, base_sequence=7)),
        ({"cleanup_policy": "compact,delete"}, batch([b"a"])),
        ({"message_timestamp_before_max_ms": "1000"}, batch([b"a"], timestamp=5)),
        ({}, batch([b"a"])[:-1] + b"x"),
        ({"max_message_bytes": "100"}, batch([b"a" * 200])),
    ):
        topic = new_topic(wire)
        cut(wire, topic)
        if configs:
            topic = new_topic(wire, configs)
        response = wire.produce(topic, records)
        seen.append((fields(response), len(response.record_errors)))
    return seen


def sequence_gap(wire: Wire) -> object:
    topic = new_topic(wire)
    cut(wire, topic)
    producer_id = new_producer_id(wire)
    return [
        fields(
            wire.produce(
                topic,
                batch([b"a"], producer_id=producer_id, producer_epoch=0, base_sequence=sequence),
            )
        )
        for sequence in (0, 5, 1, 0, 1)
    ]


def duplicates(wire: Wire) -> object:
    seen = []
    for kind in ("CreateTime", "LogAppendTime"):
        topic = new_topic(wire, {"message_timestamp_type": kind})
        records = batch(
            [b"a", b"b"],
            timestamp=_TIMESTAMP,
            producer_id=new_producer_id(wire),
            producer_epoch=0,
            base_sequence=0,
        )
        first, again = (fields(wire.produce(topic, records)) for _ in range(2))
        if kind == "LogAppendTime":
            assert first.pop("log_append_time") == again.pop("log_append_time")
        seen.append((first, again))
    return seen


# --- groups


def join(
    wire: Wire, group: str, member_id: str = "", metadata: bytes = b"m", version: int = 3
) -> int:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    return wire.send(request, version)


def stable_member(wire: Wire, group: str) -> JoinGroupResponse:
    join(wire, group)
    joined = wire.receive(JoinGroupResponse, 3)[1]
    assert joined.error_code == 0
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"everything")
        ],
    )
    assert wire.ask(request, 3, SyncGroupResponse).error_code == 0
    return joined


def describe(wire: Wire, group: str) -> object:
    request = DescribeGroupsRequest(groups=[group])
    (found,) = wire.ask(request, 5, DescribeGroupsResponse).groups
    return (
        found.error_code,
        found.group_state,
        found.protocol_type,
        found.protocol_data,
        sorted((bytes(m.member_metadata), bytes(m.member_assignment)) for m in found.members),
    )


def describe_while_rebalancing(wire: Wire) -> object:
    group = f"group-{next(_numbers)}"
    stable_member(wire, group)
    seen = [describe(wire, group)]
    host, port = wire.socket.getpeername()[:2]
    with Wire(f"{host}:{port}") as second:
        join(second, group, metadata=b"second")
        wait_until(lambda: describe(wire, group) != seen[0], "the second member has joined", 20)
        seen.append(describe(wire, group))
    return seen


def leave_unknown_group(wire: Wire) -> object:
    seen = []
    for version in range(6):
        request = LeaveGroupRequest(group_id=f"absent-{next(_numbers)}", member_id="m")
        if version >= 3:
            request = LeaveGroupRequest(
                group_id=f"absent-{next(_numbers)}",
                members=[
                    MemberIdentity(member_id="m"),
                    MemberIdentity(member_id="", group_instance_id="i"),
                ],
            )
        response = wire.ask(request, version, LeaveGroupResponse)
        members = [(m.member_id, m.group_instance_id, m.error_code) for m in response.members]
        seen.append((response.error_code, members))
    return seen


def sync_without_protocols(wire: Wire) -> object:
    seen = []
    group = f"group-{next(_numbers)}"
    joined = stable_member(wire, group)
    for protocol_type, protocol_name in (
        (None, None),
        ("consumer", None),
        (None, "range"),
        ("consumer", "other"),
        ("consumer", "range"),
    ):
        for member_id in (joined.member_id, "unknown"):
            for group_id in (group, "absent"):
                request = SyncGroupRequest(
                    group_id=group_id,
                    generation_id=joined.generation_id,
                    member_id=member_id,
                    protocol_type=protocol_type,
                    protocol_name=protocol_name,
                )
                seen.append(wire.ask(request, 5, SyncGroupResponse).error_code)
    return seen


# --- topics


def create_refused_topics(wire: Wire) -> object:
    """Topics with several errors at once: the first that is found is reported."""
    exists = new_topic(wire)
    wire.create_topic(f"{exists}.dotted")
    bad_config = {"no.such.key": "1"}
    bad_value = {"retention.ms": "soon"}
    wanted: list[tuple[str, int, int, dict[str, str]]] = [
        (name, partitions, factor, configs)
        for name in (exists, "", "bad name", "new", f"{exists}_dotted", "__cluster_metadata")
        for partitions in (1, 0, -2, 20_000)
        for factor in (1, 0, -2, 3)
        for configs in ({}, bad_config, bad_value)
    ]
    seen = []
    for name, partitions, factor, configs in wanted:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=factor,
                    configs=[
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in configs.items()
                    ],
                )
            ],
            validate_only=True,
            timeout_ms=10_000,
        )
        response = wire.ask(request, 7, CreateTopicsResponse)
        shown = "exists" if name == exists else name.replace(exists, "exists")
        seen.append((shown, partitions, factor, sorted(configs), response.topics[0].error_code))
    return seen


TOPIC_CONFIGS = [
    ("retention.bytes", "-2"),
    ("retention.bytes", "-1"),
    ("retention.ms", "-2"),
    ("remote.storage.enable", "true"),
    ("remote.storage.enable", "false"),
    ("remote.log.copy.disable", "true"),
    ("remote.log.delete.on.disable", "true"),
    ("local.retention.ms", "5"),
    ("local.retention.ms", "-3"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "delete,delete"),
    ("segment.bytes", "100"),
    ("segment.ms", "0"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("compression.lz4.level", "18"),
    ("max.compaction.lag.ms", "0"),
    ("message.timestamp.type", "logappendtime"),
    ("preallocate", "yes"),
]


def topic_configs(wire: Wire) -> object:
    seen = []
    for name, value in TOPIC_CONFIGS:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="never-made",
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name=name, value=value)],
                )
            ],
            validate_only=True,
            timeout_ms=10_000,
        )
        response = wire.ask(request, 7, CreateTopicsResponse)
        seen.append((name, value, response.topics[0].error_code))
    return seen


def authenticate_without_sasl(wire: Wire) -> object:
    handshakes = [
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), version, SaslHandshakeResponse)
        for version in (0, 1)
    ]
    tokens = [
        wire.ask(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version, SaslAuthenticateResponse)
        for version in range(3)
    ]
    return handshakes, tokens


def scram_credential(
    name: str, mechanism: int = 1, iterations: int = 4096
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"salted",
    )


def scram_credentials(wire: Wire) -> object:
    """Each list has deletions, users with their mechanisms, and upsertions."""
    changes: list[tuple[list[tuple[str, int]], list[ScramCredentialUpsertion]]] = [
        ([], []),
        ([], [scram_credential("a"), scram_credential("b", 2, 16_384)]),
        ([], [scram_credential("a")]),
        ([], [scram_credential("a", 2)]),
        ([], [scram_credential(""), scram_credential("c", 7), scram_credential("é")]),
        ([("", 1), ("c", 0), ("nosuch", 1), ("b", 1)], []),
        ([], [scram_credential("c", 1, 4095), scram_credential("d", 1, 16_385)]),
        ([], [scram_credential("c", 9, 1), scram_credential("d", 1, -1)]),
        ([], [scram_credential("c"), scram_credential("c", 2)]),
        ([], [scram_credential("c"), scram_credential("c", 1, 1)]),
        ([], [scram_credential("c", 1, 1), scram_credential("c")]),
        ([("a", 1), ("a", 1), ("nosuch", 1), ("nosuch", 1)], []),
        ([("a", 1)], [scram_credential("a", 2), scram_credential("d")]),
        ([("b", 2)], [scram_credential("nosuch")]),
    ]
    seen: list[object] = []
    for deletions, upsertions in changes:
        request = AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name=name, mechanism=mechanism)
                for name, mechanism in deletions
            ],
            upsertions=upsertions,
        )
        response = wire.ask(request, 0, AlterUserScramCredentialsResponse)
        seen.append(
            sorted((each.user, each.error_code, each.error_message) for each in response.results)
        )
    wait_until(lambda: len(describe_scram(wire, None)) == 4, "the changes are applied", 20)
    questions: tuple[list[str] | None, ...] = (
        None,
        [],
        ["a"],
        ["nosuch"],
        ["a", "d", "a", "é"],
        ["nosuch", "nosuch"],
        [""],
    )
    return seen, [describe_scram(wire, users) for users in questions]


def describe_scram(wire: Wire, users: list[str] | None) -> list[tuple[object, ...]]:
    names = None if users is None else [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=names)
    response = wire.ask(request, 0, DescribeUserScramCredentialsResponse)
    assert (response.error_code, response.error_message) == (0, "")
    return sorted(
        (
            each.user,
            each.error_code,
            each.error_message or "",
            sorted((info.mechanism, info.iterations) for info in each.credential_infos),
        )
        for each in response.results
    )


def read_by(wire: Wire, topic: str) -> object:
    """Return what readers of both isolation levels get, and the end offsets that are listed."""
    seen: list[object] = []
    for isolation in (0, 1):
        read = wire.fetch(topic, 0, isolation=isolation)
        aborted = [
            (each.producer_id, each.first_offset) for each in read.aborted_transactions or ()
        ]
        part = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=topic, partitions=[part])],
        )
        listed = wire.ask(request, 7, ListOffsetsResponse).topics[0].partitions[0]
        seen.append(
            {
                "error": read.error_code,
                "high_watermark": read.high_watermark,
                "last_stable_offset": read.last_stable_offset,
                "aborted": None if read.aborted_transactions is None else aborted,
                "records": [(each.offset, each.value) for each in data_records(read)],
                "end": (listed.error_code, listed.offset),
            }
        )
    return seen


def data_records(read: PartitionData) -> list[Record]:
    assert isinstance(read.records, bytes | memoryview)
    batches = read_batches(read.records)
    return [each for found in batches if not found.is_control for each in found.records()]


def transaction(
    wire: Wire, topic: str, sequence: int = 0, epoch: int = 0, pid: int = 900_000
) -> object:
    records = transactional_batch([b"t"], pid, sequence, epoch)
    return fields(wire.produce(topic, records, transactional_id="same"))


def committed_and_aborted_transactions(wire: Wire) -> object:
    topic = new_topic(wire)
    seen = [transaction(wire, topic), fields(wire.produce(topic, batch([b"plain"])))]
    seen.append(read_by(wire, topic))
    seen.append(end_transaction(wire, 900_000, topic))
    seen.append(read_by(wire, topic))
    seen += [transaction(wire, topic, 1), transaction(wire, topic, pid=900_001)]
    seen.append(end_transaction(wire, 900_000, topic, commit=False))
    seen.append(read_by(wire, topic))
    seen.append(end_transaction(wire, 900_001, topic, commit=False))
    seen.append(read_by(wire, topic))
    return seen


def coordinated_transactions(wire: Wire) -> object:
    """Return error codes, and epochs in relation to the first."""
    prepare_coordinator(wire)
    topic = new_topic(wire)
    name = f"id-{topic}"
    pid, first = new_producer(wire, name)
    seen: list[object] = []

    def ended(epoch: int, version: int, *, commit: bool = True) -> None:
        code, found, next_epoch = end(
            wire, name, (pid, first + epoch), commit=commit, version=version
        )
        seen.append((code, found == pid, next_epoch - first if next_epoch >= 0 else None))

    def added(epoch: int, version: int, number: int = 0) -> None:
        codes = add(wire, name, (pid, first + epoch), {topic: [number]}, version)
        seen.append(sorted(codes.values()))

    ended(0, 3)
    ended(0, 3, commit=False)
    for version in (0, 3):
        added(0, version)
        added(1, version)
        added(0, version, 99)
        ended(1, version)
        until_done(seen, partial(ended, 0, version))
        until_done(seen, partial(ended, 0, version))
        ended(0, version, commit=False)
    until_done(seen, lambda: added(0, 3))
    ended(0, 5)
    until_done(seen, lambda: ended(0, 5))
    ended(0, 5, commit=False)
    ended(1, 5)
    ended(1, 5, commit=False)
    until_done(seen, lambda: ended(1, 5, commit=False))
    ended(0, 5)
    ended(7, 5)
    response = init(wire, name)
    seen.append((response.error_code, response.producer_id == pid, response.producer_epoch - first))
    for given in ((pid, first + 9), (pid + 1, first), (pid, -1)):
        seen.append(init(wire, name, given).error_code)
        seen.append(init(wire, name, given, 3).error_code)
    return seen


def until_done(seen: list[object], attempt: Callable[[], None]) -> None:
    """Repeat an attempt while the markers of the last transaction are being written."""
    deadline = time.monotonic() + 30
    attempt()
    concurrent = ((51, False, None), [51])
    while seen[-1] in concurrent and time.monotonic() < deadline:
        seen.pop()
        attempt()


def described_transactions(wire: Wire) -> object:
    prepare_coordinator(wire)
    topic = new_topic(wire)
    name = f"id-{topic}"
    producer = new_producer(wire, name)
    add(wire, name, producer, {topic: [0]})
    request = DescribeTransactionsRequest(transactional_ids=[name, "", "unknown", name])
    response = wire.ask(request, 0, DescribeTransactionsResponse)
    described = [
        (
            each.error_code,
            each.transactional_id == name,
            each.transaction_state,
            each.transaction_timeout_ms,
            bool(each.error_code) or each.producer_id == producer[0],
            [(found.topic == topic, found.partitions) for found in each.topics],
        )
        for each in response.transaction_states
    ]
    listed = []
    for states in ([], ["Ongoing", "Odd"], ["Empty"]):
        filters = ListTransactionsRequest(producer_id_filters=[producer[0]], state_filters=states)
        found = wire.ask(filters, 1, ListTransactionsResponse)
        listed.append(
            (
                found.error_code,
                found.unknown_state_filters,
                [each.transaction_state for each in found.transaction_states],
            )
        )
    return described, listed


def refused_in_transactions(wire: Wire) -> object:
    topic = new_topic(wire)
    plain = {"producer_id": 900_000, "producer_epoch": 0}
    seen = [
        fields(wire.produce(topic, transactional_batch([b"t"], 900_000))),
        transaction(wire, topic),
        transaction(wire, topic),
        fields(wire.produce(topic, batch([b"p"], base_sequence=1, **plain))),
        transaction(wire, topic, 5),
        transaction(wire, topic, 3, epoch=1),
        transaction(wire, topic, 0, epoch=1),
        transaction(wire, topic, 1, epoch=0),
    ]
    return seen, read_by(wire, topic)


def markers(wire: Wire) -> object:
    topic, other = sorted(new_topic(wire) for _ in range(2))
    names = {topic: "topic", other: "other"}
    pid = 900_000
    seen: list[object] = [transaction(wire, topic, epoch=4), transaction(wire, other, epoch=4)]
    attempts = [
        marker(pid, topic, "absent", epoch=3, partitions=(0, 1)),
        marker(pid, topic, epoch=4, transaction_version=2),
        marker(pid, topic, epoch=5, coordinator_epoch=7, transaction_version=2),
        marker(pid, topic, epoch=5, coordinator_epoch=7, transaction_version=2),
        marker(pid, topic, epoch=5, coordinator_epoch=6, transaction_version=2),
        marker(pid, topic, epoch=4, coordinator_epoch=8, transaction_version=2),
        marker(pid, other, epoch=4, commit=False),
        marker(pid, other, epoch=4),
        marker(pid + 1, other, epoch=0),
    ]
    for each in attempts:
        written = write_markers(wire, each)
        seen.append(
            sorted((name not in names, index, code) for (_, name, index), code in written.items())
        )
        seen += [read_by(wire, topic), read_by(wire, other)]
        seen += [producers_of(wire, topic), producers_of(wire, other)]
    seen.append(transaction(wire, topic, epoch=5))
    seen.append(write_markers(wire))
    return seen


def producers_of(wire: Wire, topic: str) -> object:
    """Return the producers without the times of their markers, which differ."""
    return [
        tuple(min(value, _TIMESTAMP + 1) for value in each)
        for each in described_producers(wire, topic)
    ]


def offsets_in_transactions(wire: Wire) -> object:
    topic, group, pid = new_topic(wire), f"txn-{next(_numbers)}", 910_000 + next(_numbers)
    seen: list[object] = []

    def step(outcome: object) -> None:
        offsets = [
            fetch_offset(wire, group, topic, require_stable=stable) for stable in (False, True)
        ]
        seen.append((outcome, offsets))

    step(commit_in_transaction(wire, group, topic, 5, pid))
    step(end_group_transaction(wire, group, pid))
    step(commit_in_transaction(wire, group, topic, 6, pid, version=0))
    step(end_group_transaction(wire, group, pid, commit=False))
    step(commit_in_transaction(wire, group, topic, 7, pid, epoch=2))
    step(commit_in_transaction(wire, group, topic, 8, pid, epoch=1))
    step(end_group_transaction(wire, group, pid, epoch=1))
    step(end_group_transaction(wire, group, pid, epoch=2, transaction_version=2))
    step(end_group_transaction(wire, group, pid, epoch=3, transaction_version=2))
    step(end_group_transaction(wire, group, pid, epoch=3, transaction_version=2))
    step(commit_in_transaction(wire, group, "absent", 9, pid, epoch=3))
    step(commit_in_transaction(wire, group, topic, 9, pid, epoch=3, generation=4))
    step(commit_in_transaction(wire, f"{group}-absent", topic, 9, pid, epoch=3, generation=4))
    step(commit_in_transaction(wire, "", topic, 9, pid, epoch=3))
    return seen


def members_offsets_in_transactions(wire: Wire) -> object:
    topic, group, pid = new_topic(wire), f"txn-{next(_numbers)}", 920_000 + next(_numbers)
    member = stable_member(wire, group)
    found = [
        commit_in_transaction(
            wire, group, topic, 9, pid, generation=generation, member_id=name, instance_id=instance
        )
        for generation in (member.generation_id, member.generation_id + 1, -1)
        for name in (member.member_id, "other", "")
        for instance in (None, "absent")
    ]
    return found, fetch_offset(wire, group, topic, require_stable=True)


CASES: list[Callable[[Wire], object]] = [
    fetch_out_of_range,
    incremental_fetches,
    fetch_session_errors,
    deleted_topic_in_session,
    produce_zstd,
    produce_several_batches,
    refused_batches,
    sequence_gap,
    duplicates,
    describe_while_rebalancing,
    leave_unknown_group,
    sync_without_protocols,
    create_refused_topics,
    topic_configs,
    authenticate_without_sasl,
    scram_credentials,
    committed_and_aborted_transactions,
    refused_in_transactions,
    markers,
    offsets_in_transactions,
    members_offsets_in_transactions,
    coordinated_transactions,
    described_transactions,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_responses_equal_those_of_kafka(
    apache: str, companion: str, case: Callable[[Wire], object]
) -> None:
    with Wire(apache) as theirs, Wire(companion) as ours:
        assert case(ours) == case(theirs)


def test_offsets_by_time_after_deleted_records(apache: str, companion: str) -> None:
    """The one known difference: Apache Kafka looks no further than the deleted records' segment."""
    found = []
    for bootstrap in (companion, apache):
        with Wire(bootstrap) as wire:
            topic = new_topic(wire, {"segment_bytes": str(1 << 20)})
            cut(wire, topic, bytes(900_000))
            part = ListOffsetsPartition(partition_index=0, timestamp=_TIMESTAMP)
            topics = [ListOffsetsTopic(name=topic, partitions=[part])]
            request = ListOffsetsRequest(replica_id=-1, topics=topics)
            response = wire.ask(request, 7, ListOffsetsResponse).topics[0].partitions[0]
            found.append((response.error_code, response.offset, response.timestamp))
    assert found == [(0, 1, _TIMESTAMP), (0, -1, -1)]
