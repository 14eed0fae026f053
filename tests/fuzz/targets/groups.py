"""Subscriptions and assignments of group members, and the records of ``__consumer_offsets``.

The first byte of an input selects its kind: a subscription, an assignment, metadata of members as
the leader receives it, or keys and values of records that the coordinator loads.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.group.membership import RequestContext
from kclient.broker.coordinator.runtime.partition_log import (
    AppendCallback,
    KeyAndValue,
    LogBatch,
    LogChunk,
    ReadBounds,
    TransactionEnd,
    TransactionOwner,
)
from kclient.client.client_metadata import ConsumerMetadata
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.consumer.assignors import (
    Assignment,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
)
from kclient.consumer.auto_offset_reset import AutoOffsetReset
from kclient.consumer.classic.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.message import VersionedRecord
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.record import Record
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.pieces import mutate_pieces, packed, unpacked
from tests.fuzz.target import MEBIBYTE, Target
from tests.support.virtual.virtual_home import VirtualHome

GROUP = "g"
TOPIC = "fuzzed"
_PARTITION = TopicPartition(TOPIC, 0)
_SUBSCRIPTION, _ASSIGNMENT, _MEMBERS, _RECORDS = range(4)
_STEP_MS = 60_000
_TURNS = 4


def run(data: bytes) -> None:
    """Read the input as the kind that its first byte selects."""
    if not data:
        return
    kinds = (_read_subscription, _read_assignment, _lead, _load)
    with refusals():
        kinds[data[0] % len(kinds)](data[1:])


def _read_subscription(data: bytes) -> None:
    found = decode_subscription(data, None)
    # Partitions are encoded in order, grouped by topic.
    again = decode_subscription(encode_subscription(found), None)
    assert sorted(again.topics) == sorted(found.topics)
    assert sorted(again.owned_partitions) == sorted(found.owned_partitions)
    assert again.user_data == found.user_data


def _read_assignment(data: bytes) -> None:
    found = decode_assignment(data)
    again = decode_assignment(encode_assignment(found))
    assert sorted(again.partitions) == sorted(found.partitions)


# --- the leader


def _lead(data: bytes) -> None:
    runtime = VirtualHome().runtime
    metadata = ConsumerMetadata(runtime)
    subscriptions = SubscriptionState(AutoOffsetReset("earliest"))
    subscriptions.subscribe([TOPIC], RebalanceListener())
    metadata.set_topics([TOPIC])
    metadata.update(metadata.next_request(0.0), _cluster(), 0.0)
    lock = ConsumerLock(runtime.tasks)
    leader = GroupLeader(
        [RangeAssignor(), RoundRobinAssignor()], subscriptions, metadata, lock.run_user_code
    )
    members = [
        JoinGroupResponseMember(
            member_id=f"m{number}",
            metadata=piece or b"",
            group_instance_id=None if number % 3 else f"i{number}",
        )
        for number, piece in enumerate(unpacked(data))
    ]
    for name in ("range", "roundrobin"):
        with refusals():
            shares = leader.lead(name, members)
            given = [p for share in shares.values() for p in decode_assignment(share).partitions]
            assert len(given) == len(set(given))


def _cluster() -> MetadataResponse:
    partitions = [MetadataResponsePartition(partition_index=number) for number in range(7)]
    return MetadataResponse(topics=[MetadataResponseTopic(name=TOPIC, partitions=partitions)])


# --- the coordinator


class _OffsetsLog:
    """``__consumer_offsets`` as a list."""

    partition_count = 1

    def __init__(self, records: list[tuple[bytes | None, bytes | None]]) -> None:
        self.records = records

    def bounds(self, partition: int, leader_epoch: int) -> ReadBounds:
        return ReadBounds(0, len(self.records), len(self.records))

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[KeyAndValue],
        on_done: AppendCallback,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        self.records.extend(records)
        on_done(None, len(self.records))

    def append_marker(
        self, partition: int, leader_epoch: int, end: TransactionEnd, on_done: AppendCallback
    ) -> None:
        raise AssertionError  # no transaction is ended here

    def read(self, partition: int, offset: int) -> LogChunk:
        """Return each record in a batch; every third is of a transaction."""
        batches = [
            LogBatch([Record(at, -1, *record, [])], at // 3 % 2 if at % 3 == 2 else -1)
            for at, record in enumerate(self.records)
            if at >= offset
        ]
        return LogChunk(batches, len(self.records))


def _loaded(log: _OffsetsLog, home: VirtualHome) -> GroupCoordinator:
    coordinator = GroupCoordinator(GroupConfig(), log, home.runtime)
    coordinator.startup()
    coordinator.on_leadership(0, 0)
    coordinator.load_now()
    return coordinator


def _load(data: bytes) -> None:
    pieces = unpacked(data)
    log = _OffsetsLog(list(zip(pieces[::2], pieces[1::2], strict=False)))
    home = VirtualHome()
    coordinator = _loaded(log, home)
    names = {GROUP, *(group.group_id for group in coordinator.list_groups())}
    for name in sorted(names)[:5]:
        _use(coordinator, name)
    for _ in range(_TURNS):
        home.clock.now_ms += _STEP_MS
        coordinator.step(home.clock.now_ms)
    coordinator.on_topics_deleted({TOPIC})
    described = [_without_time(coordinator, name) for name in sorted(names)]
    # It must be able to load its own records.
    _loaded(log, home).list_groups()
    assert len(described) == len(names)


def _without_time(coordinator: GroupCoordinator, name: str) -> bytes:
    with refusals():
        coordinator.fetch_offsets(name)
    return coordinator.describe_group(name).group_state.encode()


def _use(coordinator: GroupCoordinator, name: str) -> None:
    """Send requests of loaded members and of a new one."""
    described = coordinator.describe_group(name)
    assert repr(described)
    responses: list[Any] = []
    for member in [*described.members[:3], None]:
        member_id = "" if member is None else member.member_id
        generation = 1
        beat = HeartbeatRequest(group_id=name, generation_id=generation, member_id=member_id)
        coordinator.heartbeat(beat)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        join = JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=None if member is None else member.group_instance_id,
            protocol_type=described.protocol_type or "consumer",
            protocols=protocols,
        )
        coordinator.join_group(join, RequestContext("c", "/127.0.0.1", 9), responses.append)
        sync = SyncGroupRequest(group_id=name, generation_id=generation, member_id=member_id)
        coordinator.sync_group(sync, responses.append)
    if described.members:
        leaving = MemberIdentity(member_id=described.members[0].member_id)
        request = LeaveGroupRequest(group_id=name, members=[leaving])
        coordinator.leave_group(request, 5, responses.append)
    coordinator.delete_group(name, responses.append)


# --- inputs


def seeds() -> Iterator[bytes]:
    """Yield subscriptions, assignments, groups of members and logs."""
    subscription = MemberSubscription((TOPIC,), b"u", (_PARTITION,), 3, None, "rack")
    assignment = Assignment((_PARTITION, TopicPartition(TOPIC, 2)), b"u")
    first, second = encode_subscription(subscription), encode_assignment(assignment)
    plain = ConsumerProtocolSubscription(topics=[TOPIC, "other"]).encode_versioned(0)
    yield bytes([_SUBSCRIPTION]) + first
    yield bytes([_SUBSCRIPTION]) + plain
    yield bytes([_ASSIGNMENT]) + second
    yield bytes([_ASSIGNMENT]) + ConsumerProtocolAssignment().encode_versioned(0)
    yield bytes([_MEMBERS]) + packed([first, first, plain])
    yield bytes([_MEMBERS]) + packed([plain, b"", plain])
    for version in range(5):
        yield bytes([_RECORDS]) + packed(_log_of(version, first, second))
        yield bytes([_RECORDS]) + packed(
            [
                *_log_of(version, first, second),
                GroupMetadataKey(group=GROUP).encode_versioned(),
                None,
            ]
        )


def _log_of(version: int, subscription: bytes, assignment: bytes) -> list[bytes | None]:
    kept = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="a",
        current_state_timestamp=1_700_000_000_000 if version >= 2 else -1,
        members=[
            MemberMetadata(
                member_id=name,
                group_instance_id="i" if version >= 3 and name == "a" else None,
                client_id="c",
                client_host="/h",
                session_timeout=10_000,
                rebalance_timeout=30_000 if version >= 1 else -1,
                subscription=subscription,
                assignment=assignment,
            )
            for name in ("a", "b")
        ],
    )
    position = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=1_700_000_000_000)
    return [
        GroupMetadataKey(group=GROUP).encode_versioned(),
        kept.encode_versioned(version),
        OffsetCommitKey(
            group=GROUP, topic=_PARTITION.topic, partition=_PARTITION.partition
        ).encode_versioned(),
        position.encode_versioned(version),
    ]


_MUTATOR = MessageMutator(("m0", "i"), contents=(b"\0\1\0\0\0\1\0\6fuzzed\0\0\0\0\0\0\0\0",))
_VALUES: tuple[type[VersionedRecord], ...] = (
    GroupMetadataValue,
    OffsetCommitValue,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
)


def mutate(data: bytes, random: Random) -> bytes:
    """Change a piece as a message, or random bytes."""
    if not data or random.random() < 0.1:
        return spoil(data, random)
    if data[0] % 4 in {_SUBSCRIPTION, _ASSIGNMENT}:
        return data[:1] + _mutate_piece(data[1:], random)
    return data[:1] + mutate_pieces(data[1:], random, _mutate_piece)


def _mutate_piece(piece: bytes, random: Random) -> bytes:
    """Change a stored message after its version."""
    if random.random() < 0.2:
        return spoil(piece, random)
    try:
        key = decode_group_key(piece)
    except KafkaError:
        key = None
    if key is not None and random.random() < 0.5:
        return piece[:2] + _MUTATOR.mutated(type(key), 0, piece[2:], random)
    fitting = [kind for kind in _VALUES if _reads(kind, piece)]
    kind = random.choice(fitting or _VALUES)
    version = int.from_bytes(piece[:2]) if fitting else random.randint(0, kind.max_version)
    return version.to_bytes(2) + _MUTATOR.mutated(kind, version, piece[2:], random)


def _reads(kind: type[VersionedRecord], piece: bytes) -> bool:
    try:
        kind.decode_versioned(piece)
    except KafkaError:
        return False
    return True


TARGET = Target(run, seeds, mutate, lambda size: 8 * MEBIBYTE + 200 * size)
