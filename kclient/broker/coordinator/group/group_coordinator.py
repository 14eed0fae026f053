"""The group coordinator (Kafka: GroupCoordinatorService with classic groups)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TypeVar

from kclient.broker.coordinator.group.classic_group import ClassicGroup
from kclient.broker.coordinator.group.group_config import GroupConfig
from kclient.broker.coordinator.group.group_member import JoinReply, SyncReply
from kclient.broker.coordinator.group.group_offsets import GroupOffsets
from kclient.broker.coordinator.group.group_records import (
    OffsetsLog,
    committed_offset,
    group_key,
    group_value,
    partition_for,
    restored_group,
)
from kclient.broker.coordinator.group.group_state import GroupState
from kclient.broker.coordinator.group.membership import Caller, Membership, join_failure
from kclient.broker.coordinator.group.offset_store import CommittedOffset, OffsetStore
from kclient.broker.coordinator.group.rebalance import Rebalancer
from kclient.broker.coordinator.group.replies import Replies
from kclient.broker.coordinator.group.timers import Timers
from kclient.common.broker_errors import (
    NONE,
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    InvalidGroupIdError,
    PolicyViolationError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.join_group import JoinGroupRequest
from kclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kclient.protocol.messages.list_groups import ListedGroup
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

T = TypeVar("T")


class GroupCoordinator:
    """Coordinator of the groups of this broker.

    One lock guards all groups, timers and offsets. It is held while records are appended to the
    offsets log, so that the log has the order of the state changes, and released before responses
    are sent. Lock order: this lock, then the log's.
    """

    def __init__(self, config: GroupConfig, log: OffsetsLog, runtime: Runtime) -> None:
        self._config = config
        self._log = log
        self._clock = runtime.clock
        self._lock = runtime.tasks.condition()  # guards: everything below
        self._groups: dict[str, ClassicGroup] = {}
        self._store = OffsetStore()
        self._timers = Timers()
        self._replies = Replies()
        self._rebalancer = Rebalancer(
            config, runtime.clock, self._timers, self._replies, self._save
        )
        self._membership = Membership(
            config,
            self._rebalancer,
            self._replies,
            lambda prefix: f"{prefix}-{uuid_to_text(random_uuid(runtime.random))}",
        )
        self._offsets = GroupOffsets(config, self._store, log, self._membership)
        self._next_expiry_ms = runtime.clock.monotonic_ms() + config.offsets_retention_check_ms
        self._loaded = False

    # -- loading and timers ----------------------------------------------------------------

    def load(self) -> None:
        """Rebuild groups and offsets from the log.

        Until then requests fail with COORDINATOR_LOAD_IN_PROGRESS.
        """
        with self._lock:
            for partition in range(self._log.partition_count):
                for key, value in _latest(self._log.read(partition)).items():
                    self._replay(key, value)
            for group in self._groups.values():
                for member in group.members.values():
                    self._rebalancer.reset_session(group, member)
            self._loaded = True

    def step(self, now_ms: float) -> float | None:
        """Run due timers; return the time of the next call, or None if none is needed."""
        with self._lock:
            self._timers.run_due(now_ms)
            if now_ms >= self._next_expiry_ms:
                self._next_expiry_ms = now_ms + self._config.offsets_retention_check_ms
                self._offsets.expire(self._clock.wall_ms(), self._groups.get)
                self._forget_empty_groups()
            next_ms = self._timers.next_deadline_ms()
            replies = self._replies.take()
        for reply, response in replies:
            reply(response)
        return self._next_expiry_ms if next_ms is None else min(next_ms, self._next_expiry_ms)

    def _forget_empty_groups(self) -> None:
        """Remove groups without members, pending members and committed offsets."""
        for group in list(self._groups.values()):
            unused = group.state is GroupState.EMPTY and not group.pending_members
            if unused and not self._store.of_group(group.group_id):
                self._drop(group)

    def _drop(self, group: ClassicGroup) -> None:
        if group.generation > 0:  # written to the log
            partition = partition_for(group.group_id, self._log.partition_count)
            self._log.append(partition, [(group_key(group.group_id), None)])
        group.transition_to(GroupState.DEAD, self._clock.wall_ms())
        del self._groups[group.group_id]

    def _replay(self, raw_key: bytes, raw_value: bytes | None) -> None:
        key = decode_group_key(raw_key)
        if isinstance(key, OffsetCommitKey):
            partition = TopicPartition(key.topic, key.partition)
            if raw_value is None:
                self._store.remove(key.group, partition)
            else:
                value = OffsetCommitValue.decode_versioned(raw_value)
                self._store.put(key.group, partition, committed_offset(value))
        elif isinstance(key, GroupMetadataKey):
            if raw_value is None:
                self._groups.pop(key.group, None)
            else:
                kept = GroupMetadataValue.decode_versioned(raw_value)
                self._groups[key.group] = restored_group(key.group, kept)

    def _save(self, group: ClassicGroup) -> None:
        partition = partition_for(group.group_id, self._log.partition_count)
        self._log.append(partition, [(group_key(group.group_id), group_value(group))])

    # -- membership ------------------------------------------------------------------------

    def join_group(self, request: JoinGroupRequest, caller: Caller, reply: JoinReply) -> None:
        """Handle a JoinGroup; `reply` is called when the rebalance has completed."""

        def decide() -> None:
            try:
                group = self._group_to_join(request)
            except KafkaError as problem:
                self._replies.add(reply, join_failure(problem, request.member_id))
                return
            self._membership.join(group, request, caller, reply)
            if group.is_unused:  # the member was rejected
                del self._groups[group.group_id]

        self._decide(decide)

    def _group_to_join(self, request: JoinGroupRequest) -> ClassicGroup:
        self._check(request.group_id)
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_id:
                raise UnknownMemberIdError
            self._check_group_limit(request.group_id)
            group = ClassicGroup(request.group_id, self._clock.wall_ms())
            self._groups[request.group_id] = group
        return group

    def _check_group_limit(self, group_id: str) -> None:
        """Check that a new group does not exceed max.groups."""
        if group_id in self._groups or self._store.of_group(group_id):
            return
        limit = self._config.max_groups
        if len(self._groups.keys() | set(self._store.group_ids())) >= limit:
            raise PolicyViolationError(f"there are {limit} groups (max.groups)")

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup; `reply` is called when the leader has sent the assignments."""

        def decide() -> None:
            try:
                group = self._known_group(request.group_id)
            except KafkaError as problem:
                self._replies.add(reply, SyncGroupResponse(error_code=code_of(problem)))
                return
            self._membership.sync(group, request, reply)

        self._decide(decide)

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Reset a session timeout; return an error code."""

        def decide() -> int:
            try:
                self._membership.heartbeat(self._known_group(request.group_id), request)
            except KafkaError as problem:
                return code_of(problem)
            return NONE

        return self._decide(decide)

    def leave_group(self, request: LeaveGroupRequest, api_version: int) -> LeaveGroupResponse:
        """Remove members from a group; versions below 3 contain one, newer ones a list."""
        identities = request.members
        if api_version < 3:
            identities = [MemberIdentity(member_id=request.member_id)]

        def decide() -> LeaveGroupResponse:
            try:
                self._check(request.group_id)
            except KafkaError as problem:
                return LeaveGroupResponse(error_code=code_of(problem))
            group = self._groups.get(request.group_id)
            results = [self._leave(group, identity) for identity in identities]
            if api_version < 3:
                return LeaveGroupResponse(error_code=results[0].error_code)
            return LeaveGroupResponse(members=results)

        return self._decide(decide)

    def _leave(self, group: ClassicGroup | None, identity: MemberIdentity) -> MemberResponse:
        code = NONE
        try:
            if group is None:
                raise UnknownMemberIdError
            self._membership.leave(group, identity)
        except KafkaError as problem:
            code = code_of(problem)
        return MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=code,
        )

    # -- offsets ---------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        member: tuple[str, str | None, int],
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, int]:
        """Store offsets; return an error code for each.

        Args:
            group_id: The group.
            member: Member id, group instance id and generation; ("", None, -1) for none.
            offsets: Offsets to commit.
        """

        def decide() -> dict[TopicPartition, int]:
            try:
                self._check(group_id)
                self._offsets.check_commit(self._groups.get(group_id), *member)
                self._check_group_limit(group_id)
            except KafkaError as problem:
                return dict.fromkeys(offsets, code_of(problem))
            return self._offsets.commit(group_id, offsets)

        return self._decide(decide)

    def fetch_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group.

        Raises:
            CoordinatorLoadInProgressError: The log is not loaded yet.
            InvalidGroupIdError: The group id is empty.
        """

        def decide() -> dict[TopicPartition, CommittedOffset]:
            self._check(group_id)
            return self._store.of_group(group_id)

        return self._decide(decide)

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Remove every group's offsets of topics that were deleted, one group at a time."""
        for group_id, partitions in self._decide(lambda: self._store.of_topics(topics)).items():
            self._decide(partial(self._offsets.forget, group_id, partitions))

    # -- administration --------------------------------------------------------------------

    def describe_group(self, group_id: str) -> DescribedGroup:
        """Return a group's state and members; an unknown group is Dead with GROUP_ID_NOT_FOUND."""

        def decide() -> DescribedGroup:
            try:
                self._check(group_id)
            except KafkaError as problem:
                return DescribedGroup(group_id=group_id, error_code=code_of(problem))
            group = self._groups.get(group_id)
            if group is None and self._store.of_group(group_id):
                group = ClassicGroup(group_id, self._clock.wall_ms())
            if group is None:
                return DescribedGroup(
                    group_id=group_id,
                    group_state=GroupState.DEAD.value,
                    error_code=code_of(GroupIdNotFoundError),
                    error_message=f"Group {group_id} not found.",
                )
            return _described(group)

        return self._decide(decide)

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """Return the groups in the given states and of the given types; empty filters match all.

        Raises:
            CoordinatorLoadInProgressError: The log is not loaded yet.
        """
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}

        def decide() -> list[ListedGroup]:
            self._check_loaded()
            groups = dict(self._groups)
            for group_id in self._store.group_ids():
                groups.setdefault(group_id, ClassicGroup(group_id, 0))
            return [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state.value,
                    group_type="classic",
                )
                for group in groups.values()
                if not wanted_states or group.state.value.lower() in wanted_states
            ]

        if wanted_types and "classic" not in wanted_types:
            return []
        return self._decide(decide)

    def delete_group(self, group_id: str) -> None:
        """Delete a group without members, with its committed offsets.

        Raises:
            GroupIdNotFoundError: The group does not exist.
            GroupNotEmptyError: The group has members.
        """

        def decide() -> None:
            self._check(group_id)
            group = self._groups.get(group_id)
            positions = list(self._store.of_group(group_id))
            if group is None and not positions:
                raise GroupIdNotFoundError
            if group is not None and group.state is not GroupState.EMPTY:
                raise GroupNotEmptyError
            self._offsets.forget(group_id, positions)
            if group is not None:
                self._drop(group)

        self._decide(decide)

    # -- common ----------------------------------------------------------------------------

    def _decide(self, decide: Callable[[], T]) -> T:
        """Run a decision under the lock; send the responses it caused after its release."""
        with self._lock:
            result = decide()
            replies = self._replies.take()
        for reply, response in replies:
            reply(response)
        return result

    def _check_loaded(self) -> None:
        if not self._loaded:
            raise CoordinatorLoadInProgressError

    def _check(self, group_id: str) -> None:
        self._check_loaded()
        if not group_id:
            raise InvalidGroupIdError("the group id is empty")

    def _known_group(self, group_id: str) -> ClassicGroup:
        self._check(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberIdError
        return group


def _latest(
    records: Iterable[tuple[WireBytes | None, WireBytes | None]],
) -> dict[bytes, bytes | None]:
    """Return the last value of each key, in the order of the log.

    A log contains many versions of an offset; decoding costs more than reading.
    """
    latest: dict[bytes, bytes | None] = {}
    for raw_key, value in records:
        if raw_key is not None:
            key = bytes(raw_key)
            latest.pop(key, None)
            latest[key] = None if value is None else bytes(value)
    return latest


def _described(group: ClassicGroup) -> DescribedGroup:
    settled = group.state is GroupState.STABLE
    return DescribedGroup(
        error_code=NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if settled else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if settled else b"",
                member_assignment=member.assignment,  # previous one during a rebalance
            )
            for member in group.members.values()
        ],
    )
