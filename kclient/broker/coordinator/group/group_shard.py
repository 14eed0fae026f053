"""Shard of the group coordinator: the groups of one partition of ``__consumer_offsets``."""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kclient.broker.coordinator.group.classic_group import (
    ClassicGroup,
    GroupState,
    JoinReply,
    SyncReply,
)
from kclient.broker.coordinator.group.group import Group, GroupConfig
from kclient.broker.coordinator.group.group_records import (
    CommittedOffset,
    decode_record,
    group_tombstone,
    restored_group,
)
from kclient.broker.coordinator.group.membership import (
    Membership,
    RequestContext,
    join_failure,
)
from kclient.broker.coordinator.group.offsets import OffsetMetadataManager
from kclient.broker.coordinator.group.rebalance import Rebalancer
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.coordinator.runtime.partition_log import (
    TransactionEnd,
    TransactionOwner,
    operation_error,
)
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.common.broker_errors import (
    NONE,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    PolicyViolationError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from kclient.protocol.messages.groups import DescribedGroup, ListedGroup

_log = logging.getLogger(__name__)

T = TypeVar("T")

MemberEpoch = tuple[str, str | None, int]
"""Member id, group instance id and generation; ("", None, -1) for none."""


class GroupShard:
    """Groups and committed offsets of one partition (Kafka: GroupCoordinatorShard).

    Every method runs under the lock of its context. A group exists as long as it has members or
    offsets. Offsets change when their records are replayed, hence when they are committed.

    Args:
        config: Configuration of groups.
        context: Lock, timers, writes and replies.
        clock: Clock of the broker.
        new_member_id: Returns a new member id with a prefix.
        count_groups: Returns the number of groups of this broker.
    """

    def __init__(
        self,
        config: GroupConfig,
        context: ShardContext,
        clock: Clock,
        new_member_id: Callable[[str], str],
        count_groups: Callable[[], int],
    ) -> None:
        self._config = config
        self._reported_limit = False
        self._context = context
        self._clock = clock
        self._count_groups = count_groups
        self._groups: dict[str, Group] = {}
        self._offsets = OffsetMetadataManager(config, context)
        self._rebalancer = Rebalancer(config, clock, context)
        self._membership = Membership(config, self._rebalancer, context, new_member_id)

    @property
    def group_count(self) -> int:
        """Number of groups; may be read without the lock."""
        return len(self._groups)

    # -- loading and replay ----------------------------------------------------------------

    def load(self, raw_key: bytes, raw_value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record of the log."""
        record = decode_record(raw_key, raw_value)
        if record is not None:
            self.replay(record, offset, producer_id)

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply a replicated record; the offsets of a transaction wait for its end."""
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            self._offsets.replay(key, value, offset, producer_id)
            if value is not None:
                # A consumer with manual assignment has a group without members. Without offsets
                # it stays until the next check (`remove_unused_groups`).
                self._groups.setdefault(key.group, ClassicGroup(key.group, 0))
        elif isinstance(key, GroupMetadataKey):
            if isinstance(value, GroupMetadataValue):
                self._groups[key.group] = restored_group(key.group, value)
            else:
                self._remove_if_empty(key.group)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or discard the offsets of a transaction."""
        for group_id in self._offsets.end_transaction(producer_id, committed=committed):
            self._remove_if_unused(group_id)

    def _remove_if_unused(self, group_id: str) -> None:
        """Remove a group that has neither had a generation nor has members or offsets."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup) and group.is_unused:
            self._remove_if_empty(group_id)

    def _remove_if_empty(self, group_id: str) -> None:
        group = self._groups.get(group_id)
        if (
            isinstance(group, ClassicGroup)
            and group.is_empty
            and not self._offsets.has_offsets(group_id)
        ):
            group.transition_to(GroupState.DEAD, self._clock.wall_ms())
            del self._groups[group_id]

    def on_loaded(self) -> None:
        """Start the session timeouts of the restored members; remove groups of deleted offsets."""
        for group in list(self._groups.values()):
            self._remove_if_unused(group.group_id)
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    self._rebalancer.reset_session(group, member)

    def on_unloaded(self, error: KafkaError) -> None:
        """Fail the pending JoinGroup and SyncGroup requests."""
        for group in self._groups.values():
            if isinstance(group, ClassicGroup):
                self._rebalancer.fail_pending(group, error)

    # -- membership ------------------------------------------------------------------------

    def join_group(
        self, request: JoinGroupRequest, client: RequestContext, reply: JoinReply
    ) -> None:
        """Handle a JoinGroup; `reply` is called when the rebalance has completed."""
        try:
            group = self._group_to_join(request)
        except KafkaError as error:
            self._context.reply(reply, join_failure(error, request.member_id))
            return
        self._membership.join(group, request, client, reply)
        self._remove_if_unused(group.group_id)  # the member may have been rejected

    def _group_to_join(self, request: JoinGroupRequest) -> ClassicGroup:
        group_id = request.group_id
        if group_id in self._groups:
            return self._classic_group(group_id)
        if request.member_id:
            raise UnknownMemberIdError
        self._check_group_limit(group_id)
        group = self._groups[group_id] = ClassicGroup(group_id, self._clock.wall_ms())
        return group

    def _check_group_limit(self, group_id: str) -> None:
        limit = self._config.max_groups
        if group_id in self._groups or self._count_groups() < limit:
            return
        # The response has no text. A warning once: clients repeat the request.
        level = logging.DEBUG if self._reported_limit else logging.WARNING
        self._reported_limit = True
        _log.log(level, "group %s: refused, there are %d groups (max.groups)", group_id, limit)
        raise PolicyViolationError(f"there are {limit} groups (max.groups)")

    def _classic_group(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise UnknownMemberIdError
        return group

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup; `reply` is called when the assignments are committed."""
        try:
            group = self._classic_group(request.group_id)
        except KafkaError as error:
            self._context.reply(reply, SyncGroupResponse(error_code=code_of(error)))
        else:
            self._membership.sync(group, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Reset a session timeout; return an error code."""
        try:
            self._membership.heartbeat(self._classic_group(request.group_id), request)
        except KafkaError as error:
            return code_of(error)
        return NONE

    def leave_group(
        self,
        group_id: str,
        identities: Collection[MemberIdentity],
        reply: Callable[[LeaveGroupResponse], None],
    ) -> None:
        """Remove members; reply with an error code for each when that is committed."""
        response = LeaveGroupResponse(members=[self._leave(group_id, each) for each in identities])

        def on_done(error: KafkaError | None) -> None:
            failure = None if error is None else LeaveGroupResponse(error_code=code_of(error))
            self._context.reply(reply, failure or response)

        self._context.write([], on_done)

    def _leave(self, group_id: str, identity: MemberIdentity) -> MemberResponse:
        code = NONE
        try:
            self._membership.leave(self._classic_group(group_id), identity)
        except KafkaError as error:
            code = code_of(error)
        return MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=code,
        )

    # -- offsets ---------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        member: MemberEpoch,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Write offsets; reply with an error code for each when they are committed."""
        try:
            group = self._group_of_commit(group_id, member)
            if group is not None:
                self._membership.check_commit(group, *member)
        except KafkaError as error:
            self._context.reply(reply, dict.fromkeys(offsets, code_of(error)))
        else:
            self._offsets.commit(group_id, offsets, reply)

    def commit_transactional_offsets(
        self,
        group_id: str,
        member: MemberEpoch,
        offsets: Mapping[TopicPartition, CommittedOffset],
        producer: TransactionOwner,
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Write offsets of a transaction, as `commit_offsets`; its end applies them."""
        try:
            group = self._group_of_commit(group_id, member)
            if group is not None:
                self._membership.check_transactional_commit(group, *member)
        except KafkaError as error:
            self._context.reply(reply, dict.fromkeys(offsets, code_of(error)))
        else:
            self._offsets.commit(group_id, offsets, reply, producer)

    def write_end_of_transaction(
        self, end: TransactionEnd, reply: Callable[[KafkaError | None], None]
    ) -> None:
        """Write the marker that ends a transaction; reply when it is applied."""

        def on_done(error: KafkaError | None) -> None:
            self._context.reply(reply, error)

        self._context.write_end(end, on_done)

    def _group_of_commit(self, group_id: str, member: MemberEpoch) -> ClassicGroup | None:
        """Return the group of a commit, or None if the commit creates it."""
        group = self._groups.get(group_id)
        if group is None:
            _, _, generation = member
            if generation >= 0:
                raise IllegalGenerationError("the group has no members")
            self._check_group_limit(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def fetch_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group."""
        return self._offsets.of_group(group_id)

    def unstable_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions of a group with offsets in open transactions."""
        return self._offsets.unstable_partitions(group_id)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        reply: Callable[[dict[TopicPartition, int] | KafkaError], None],
    ) -> None:
        """Delete offsets of topics that no member consumes; reply when that is committed."""
        group = self._groups.get(group_id)
        if group is None:
            self._context.reply(reply, GroupIdNotFoundError())
            return
        try:
            subscribed = {
                topic
                for topic in {partition.topic for partition in partitions}
                if group.subscribes_to(topic)
            }
        except GroupNotEmptyError as error:
            self._context.reply(reply, error)
            return
        codes = {
            partition: code_of(GroupSubscribedToTopicError)
            if partition.topic in subscribed
            else NONE
            for partition in partitions
        }

        def on_done(error: KafkaError | None) -> None:
            self._context.reply(reply, codes if error is None else operation_error(error))

        deleted = [partition for partition, code in codes.items() if code == NONE]
        self._offsets.delete_partitions(group_id, deleted, on_done)

    def delete_offsets_of_topics(self, topics: Collection[str]) -> None:
        """Delete all offsets in topics that were deleted."""
        self._offsets.delete_topics(topics)

    def expire_offsets(self) -> None:
        """Delete the offsets of groups that have had no members for the retention time."""
        now_ms = self._clock.wall_ms()
        for group in self._groups.values():
            if group.is_empty:
                self._offsets.expire(group, now_ms)

    def remove_unused_groups(self) -> None:
        """Remove groups without members, pending members and committed offsets."""
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup) and group.is_empty and not group.pending_members:
                if self._offsets.has_offsets(group.group_id):
                    continue
                if group.generation > 0:  # written to the log
                    self._offsets.delete(group.group_id, [group_tombstone(group.group_id)])
                else:
                    self._remove_if_empty(group.group_id)

    # -- administration --------------------------------------------------------------------

    def describe_group(self, group_id: str) -> DescribedGroup:
        """Return a group's state and members; an unknown group is Dead with GROUP_ID_NOT_FOUND."""
        group = self._groups.get(group_id)
        if group is not None:
            return group.describe()
        return DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=code_of(GroupIdNotFoundError),
            error_message=f"Group {group_id} not found.",
        )

    def list_groups(self) -> list[ListedGroup]:
        """Return all groups."""
        return [group.listed() for group in self._groups.values()]

    def delete_group(self, group_id: str, reply: Callable[[KafkaError | None], None]) -> None:
        """Delete a group without members, with its offsets; reply when that is committed."""
        group = self._groups.get(group_id)
        if group is None:
            self._context.reply(reply, GroupIdNotFoundError())
            return
        if not group.is_empty:
            self._context.reply(reply, GroupNotEmptyError())
            return

        def on_done(error: KafkaError | None) -> None:
            if error is None:
                self._remove_if_empty(group_id)
            self._context.reply(reply, error and operation_error(error))

        records = self._offsets.tombstones(group_id)
        if isinstance(group, ClassicGroup) and group.generation > 0:
            records.append(group_tombstone(group_id))
        self._context.write(records, on_done)
