"""Group coordinator: the entry point of the group requests (Kafka: GroupCoordinatorService)."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from kclient.broker.coordinator.group.classic_group import JoinReply, SyncReply
from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.coordinator.group.group_shard import GroupShard, MemberEpoch
from kclient.broker.coordinator.group.membership import RequestContext, join_failure
from kclient.broker.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from kclient.broker.coordinator.runtime.partition_log import (
    PartitionLog,
    TransactionEnd,
    TransactionOwner,
    partition_for,
)
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.common.broker_errors import (
    NONE,
    CoordinatorLoadInProgressError,
    InvalidGroupIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kclient.protocol.messages.groups import DescribedGroup, ListedGroup

T = TypeVar("T")

_MEMBER_LISTS = 3
"""First version of LeaveGroup with a list of members."""


class GroupCoordinator:
    """Coordinator of the groups of this broker: finds the shard of each group.

    It has no lock of its own; each shard has one (`ShardContext`).
    """

    def __init__(self, config: GroupConfig, log: PartitionLog, runtime: Runtime) -> None:
        self._config = config
        self._log = log
        self._clock = runtime.clock
        self._random = runtime.random
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            runtime, log, self._make_shard, config.offsets_commit_timeout_ms
        )
        self._next_expiry_ms = runtime.clock.monotonic_ms() + config.offsets_retention_check_ms

    def _make_shard(self, context: ShardContext) -> GroupShard:
        return GroupShard(
            self._config, context, self._clock, self._new_member_id, self._count_groups
        )

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{uuid_to_text(random_uuid(self._random))}"

    def _count_groups(self) -> int:
        return sum(shard.group_count for shard in self._runtime.shards())

    # -- leadership and timers -------------------------------------------------------------

    def startup(self) -> None:
        """Begin to serve; until then requests fail with COORDINATOR_NOT_AVAILABLE."""
        self._runtime.startup()

    def shutdown(self) -> None:
        """Fail all pending requests with NOT_COORDINATOR, later ones too."""
        self._runtime.shutdown()

    def on_leadership(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker leads now; an epoch that is not newer is ignored.

        Until it is loaded by `step`, requests fail with COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._runtime.on_leadership(partition, leader_epoch)

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """Unload a partition that another broker leads; its pending requests fail.

        Args:
            partition: The partition.
            leader_epoch: Epoch of the other leader, ignored if it is not newer; None if the
                partition was deleted.
        """
        self._runtime.on_resignation(partition, leader_epoch)

    def load_now(self, budget_ms: float | None = None) -> None:
        """Load the partitions of this broker now, as far as the time allows.

        Args:
            budget_ms: Time after which the rest is left to `step`, None for no limit.
        """
        self._runtime.load_now(budget_ms)

    def load_step(self, now_ms: float) -> float | None:
        """Run a step of loading, which reads at most 5 MiB; return the time of the next, or None.

        `step` includes it; a task of its own that calls it keeps loading out of the way of timers.
        """
        return self._runtime.load_step(now_ms)

    @property
    def wakeup(self) -> Callable[[], None]:
        """Called when `step` has work before the time that it returned last."""
        return self._runtime.wakeup

    @wakeup.setter
    def wakeup(self, wakeup: Callable[[], None]) -> None:
        self._runtime.wakeup = wakeup

    def step(self, now_ms: float) -> float:
        """Run due timers and a step of loading; return the time of the next call."""
        next_ms = self._runtime.step(now_ms)
        if now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + self._config.offsets_retention_check_ms
            self._runtime.run_active(GroupShard.expire_offsets)
            self._runtime.run_active(GroupShard.remove_unused_groups)
        return self._next_expiry_ms if next_ms is None else min(next_ms, self._next_expiry_ms)

    # -- membership ------------------------------------------------------------------------

    def join_group(
        self, request: JoinGroupRequest, client: RequestContext, reply: JoinReply
    ) -> None:
        """Handle a JoinGroup; `reply` is called when the rebalance has completed."""
        try:
            self._run(request.group_id, lambda shard: shard.join_group(request, client, reply))
        except KafkaError as error:
            reply(join_failure(error, request.member_id))

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup; `reply` is called when the assignments are committed."""
        try:
            self._run(request.group_id, lambda shard: shard.sync_group(request, reply))
        except KafkaError as error:
            reply(SyncGroupResponse(error_code=code_of(error)))

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Reset a session timeout; return an error code.

        While the partition is loaded it succeeds: each member gets a full session after that.
        """
        try:
            return self._run(request.group_id, lambda shard: shard.heartbeat(request))
        except CoordinatorLoadInProgressError:
            return NONE
        except KafkaError as error:
            return code_of(error)

    def leave_group(
        self,
        request: LeaveGroupRequest,
        api_version: int,
        reply: Callable[[LeaveGroupResponse], None],
    ) -> None:
        """Remove members from a group; versions below 3 contain one, newer ones a list."""
        members, on_left = request.members, reply
        if api_version < _MEMBER_LISTS:
            members = [MemberIdentity(member_id=request.member_id)]
            on_left = partial(_reply_single, reply)
        group_id = request.group_id
        try:
            self._run(group_id, lambda shard: shard.leave_group(group_id, members, on_left))
        except KafkaError as error:
            reply(LeaveGroupResponse(error_code=code_of(error)))

    # -- offsets ---------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        member: MemberEpoch,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Write offsets; `reply` receives an error code for each when they are committed.

        Args:
            group_id: The group.
            member: Member id, group instance id and generation; ("", None, -1) for none.
            offsets: Offsets to commit.
            reply: Receives the error codes.
        """
        try:
            self._run(
                group_id, lambda shard: shard.commit_offsets(group_id, member, offsets, reply)
            )
        except KafkaError as error:
            reply(dict.fromkeys(offsets, code_of(error)))

    def commit_transactional_offsets(
        self,
        group_id: str,
        member: MemberEpoch,
        offsets: Mapping[TopicPartition, CommittedOffset],
        producer: TransactionOwner,
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Write offsets of a transaction, which take effect when it is committed.

        Args:
            group_id: The group.
            member: As `commit_offsets`.
            offsets: Offsets to commit.
            producer: Producer of the transaction.
            reply: Receives an error code for each offset when they are replicated.
        """

        def commit(shard: GroupShard) -> None:
            shard.commit_transactional_offsets(group_id, member, offsets, producer, reply)

        try:
            self._run(group_id, commit)
        except KafkaError as error:
            reply(dict.fromkeys(offsets, code_of(error)))

    def end_transaction(
        self, partition: int, end: TransactionEnd, reply: Callable[[KafkaError | None], None]
    ) -> None:
        """Write the marker that ends a transaction in a partition of ``__consumer_offsets``.

        Args:
            partition: The partition.
            end: End of the transaction.
            reply: Receives None when the offsets are committed or discarded, or the error.
        """
        try:
            self._runtime.run(partition, lambda shard: shard.write_end_of_transaction(end, reply))
        except KafkaError as error:
            reply(error)

    def unstable_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions of a group with offsets in open transactions.

        Raises:
            KafkaError: As `fetch_offsets`.
        """
        return self._run(group_id, lambda shard: shard.unstable_partitions(group_id))

    def partition_of(self, group_id: str) -> TopicPartition:
        """Return the partition of ``__consumer_offsets`` with the offsets of a group."""
        number = partition_for(group_id, self._log.partition_count)
        return TopicPartition(CONSUMER_OFFSETS, number)

    def fetch_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group.

        Raises:
            KafkaError: As `CoordinatorRuntime.run`, or the group id is empty.
        """
        return self._run(group_id, lambda shard: shard.fetch_offsets(group_id))

    def delete_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        reply: Callable[[dict[TopicPartition, int] | KafkaError], None],
    ) -> None:
        """Delete committed offsets of a group.

        Args:
            group_id: The group.
            partitions: Their partitions.
            reply: Receives an error code for each when that is committed, or the error:
                GroupIdNotFoundError or GroupNotEmptyError among others.
        """
        try:
            self._run(group_id, lambda shard: shard.delete_offsets(group_id, partitions, reply))
        except KafkaError as error:
            reply(error)

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Delete every group's offsets in topics that were deleted, where this broker is active."""
        self._runtime.run_active(lambda shard: shard.delete_offsets_of_topics(topics))

    # -- administration --------------------------------------------------------------------

    def describe_group(self, group_id: str) -> DescribedGroup:
        """Return a group's state and members; an unknown group is Dead with GROUP_ID_NOT_FOUND."""
        try:
            return self._run(group_id, lambda shard: shard.describe_group(group_id))
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=code_of(error))

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """Return the groups in the given states and of the given types; empty filters match all.

        Raises:
            KafkaError: As `CoordinatorRuntime.run_all`.
        """
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            group
            for groups in self._runtime.run_all(GroupShard.list_groups)
            for group in groups
            if not wanted_states or group.group_state.lower() in wanted_states
            if not wanted_types or group.group_type in wanted_types
        ]

    def delete_group(self, group_id: str, reply: Callable[[KafkaError | None], None]) -> None:
        """Delete a group without members, with its offsets.

        Args:
            group_id: The group.
            reply: Receives None when that is committed, or the error: GroupIdNotFoundError or
                GroupNotEmptyError among others.
        """
        try:
            self._run(group_id, lambda shard: shard.delete_group(group_id, reply))
        except KafkaError as error:
            reply(error)

    def _run(self, group_id: str, operation: Callable[[GroupShard], T]) -> T:
        """Run an operation of the group's shard.

        Raises:
            KafkaError: As `CoordinatorRuntime.run`, or the group id is empty.
        """
        partition = self.partition_of(group_id).partition
        return self._runtime.run(partition, partial(_checked, group_id, operation))


def _checked(group_id: str, operation: Callable[[GroupShard], T], shard: GroupShard) -> T:
    if not group_id:
        raise InvalidGroupIdError("the group id is empty")
    return operation(shard)


def _reply_single(
    reply: Callable[[LeaveGroupResponse], None], response: LeaveGroupResponse
) -> None:
    code = response.error_code or response.members[0].error_code
    reply(LeaveGroupResponse(error_code=code))
