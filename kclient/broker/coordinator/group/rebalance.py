"""Rebalance of classic groups: preparing, completing, expiring.

All methods run under the shard's lock, including the actions of timers.
"""

import logging
from collections.abc import Mapping
from functools import partial

from kclient.broker.coordinator.group.classic_group import ClassicGroup, GroupMember, GroupState
from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_records import group_record
from kclient.broker.coordinator.runtime.partition_log import operation_error
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.common.broker_errors import (
    NONE,
    RebalanceInProgressError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock
from kclient.protocol.messages.group_membership import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

_log = logging.getLogger(__name__)

# Session timeout of a new member until its first JoinGroup completes: the rebalance of a large
# group may take longer than the member's own session timeout.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000

# Minimum time that a rebalance waits for static members that have not rejoined.
_MIN_STATIC_MEMBER_WAIT_MS = 1_000


class Rebalancer:
    """Rebalances of groups (Kafka: the classic groups of GroupMetadataManager)."""

    def __init__(self, config: GroupConfig, clock: Clock, context: ShardContext) -> None:
        self._config = config
        self._clock = clock
        self._context = context
        self._timers = context.timers

    def prepare(self, group: ClassicGroup) -> None:
        """Start a rebalance; members waiting for a SyncGroup response have to rejoin."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)
            return
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._timers.cancel(("sync", group.group_id))
            for member in group.members.values():
                member.assignment = b""
            self.fail_waiting_syncs(group, code_of(RebalanceInProgressError))
        was_empty = group.state is GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, self._clock.wall_ms())
        if was_empty:
            self._delay_first_generation(group, group.rebalance_timeout_ms())
        else:
            self._wait_for_joins(group)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """Complete the rebalance if all members have joined and no initial delay is running."""
        waiting_for_more = self._timers.has(("first", group.group_id))
        preparing = group.state is GroupState.PREPARING_REBALANCE
        if preparing and not waiting_for_more and group.all_joined():
            self._complete(group)

    def _delay_first_generation(self, group: ClassicGroup, remaining_ms: float) -> None:
        """Complete the first rebalance of an empty group after the initial delay.

        Pending members are not waited for, since their clients may have terminated (Kafka:
        tryCompleteInitialRebalanceElseSchedule).
        """
        delay_ms = min(self._config.initial_rebalance_delay_ms, remaining_ms)
        if delay_ms <= 0:
            self._complete(group)
            return
        group.has_new_member = False

        def after_delay() -> None:
            left_ms = remaining_ms - delay_ms
            if group.has_new_member and left_ms > 0:
                self._delay_first_generation(group, left_ms)
            else:
                self._complete(group)

        self._timers.schedule(
            ("first", group.group_id), self._clock.monotonic_ms() + delay_ms, after_delay
        )

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        if group.all_joined():
            self._complete(group)
            return
        deadline_ms = self._clock.monotonic_ms() + group.rebalance_timeout_ms()
        self._timers.schedule(("join", group.group_id), deadline_ms, lambda: self._complete(group))

    def _complete(self, group: ClassicGroup) -> None:
        """Complete the rebalance; remove members that have not joined, except static ones."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        self._timers.cancel(("join", group.group_id))
        self._timers.cancel(("first", group.group_id))
        for member in list(group.members.values()):
            if member.join_reply is None and member.group_instance_id is None:
                self._forget(group, member.member_id)
        if group.members and all(m.join_reply is None for m in group.members.values()):
            # Only static members remain; they may rejoin until their sessions expire.
            self._timers.schedule(
                ("join", group.group_id),
                self._clock.monotonic_ms()
                + max(group.rebalance_timeout_ms(), _MIN_STATIC_MEMBER_WAIT_MS),
                lambda: self._complete(group),
            )
            return
        self._elect_present_leader(group)
        group.begin_generation(self._clock.wall_ms())
        if not group.members:
            self._save_empty(group)
            return
        self._complete_joins(group)
        self._timers.schedule(
            ("sync", group.group_id),
            self._clock.monotonic_ms() + group.rebalance_timeout_ms(),
            lambda: self._expire_syncs(group),
        )

    def _save_empty(self, group: ClassicGroup) -> None:
        def on_done(error: KafkaError | None) -> None:
            if error is not None:
                # After a restart the last members are restored until their sessions expire.
                _log.warning("group %s: cannot store its empty state: %s", group.group_id, error)

        self._context.write([group_record(group)], on_done, replay=False)

    def _elect_present_leader(self, group: ClassicGroup) -> None:
        leader = group.members.get(group.leader or "")
        if leader is None or leader.join_reply is None:
            present = (m.member_id for m in group.members.values() if m.join_reply is not None)
            group.leader = next(present, None)

    def _complete_joins(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            if member.join_reply is not None:
                reply, member.join_reply = member.join_reply, None
                self._context.reply(reply, self.join_response(group, member))
            self.reset_session(group, member)

    def _expire_syncs(self, group: ClassicGroup) -> None:
        """Remove members that have not sent SyncGroup, and rebalance again."""
        if group.state is not GroupState.COMPLETING_REBALANCE:
            return
        for member in list(group.members.values()):
            if member.sync_reply is None:
                self._forget(group, member.member_id)
        self.prepare(group)

    def join_response(
        self, group: ClassicGroup, member: GroupMember, *, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """Return the JoinGroup response of the current generation; the leader's has all members."""
        leads = member.member_id == group.leader
        everyone = [
            JoinGroupResponseMember(
                member_id=other.member_id,
                group_instance_id=other.group_instance_id,
                metadata=other.metadata(group.protocol),
            )
            for other in (group.members.values() if leads else ())
        ]
        return JoinGroupResponse(
            error_code=NONE,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=everyone,
        )

    def fail_waiting_syncs(self, group: ClassicGroup, error_code: int) -> None:
        """Complete every pending SyncGroup with an error."""
        for member in group.members.values():
            if member.sync_reply is not None:
                reply, member.sync_reply = member.sync_reply, None
                self._context.reply(reply, SyncGroupResponse(error_code=error_code))

    def store_assignment(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignment; the group is stable when it is committed.

        Of one generation only the first is written: members may have received it, and the last
        record in the log is what another coordinator loads.
        """
        if group.stored_generation == group.generation:
            return
        group.stored_generation = group.generation
        on_done = partial(self._complete_sync, group, group.generation, assignments)
        self._context.write([group_record(group, assignments)], on_done, replay=False)

    def _complete_sync(
        self,
        group: ClassicGroup,
        generation: int,
        assignments: Mapping[str, bytes],
        error: KafkaError | None,
    ) -> None:
        """Complete the pending SyncGroups, unless another rebalance has started meanwhile."""
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return
        if error is not None:
            _log.warning(
                "group %s: cannot store generation %d with %d members: %s",
                group.group_id,
                generation,
                len(group.members),
                error,
            )
            self.fail_waiting_syncs(group, code_of(operation_error(error)))
            self.prepare(group)
            return
        self._timers.cancel(("sync", group.group_id))
        group.transition_to(GroupState.STABLE, self._clock.wall_ms())
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync_reply is not None:
                reply, member.sync_reply = member.sync_reply, None
                self._context.reply(reply, sync_response(group, member))
                self.reset_session(group, member)

    def reset_session(self, group: ClassicGroup, member: GroupMember) -> None:
        """Restart a member's session timeout."""
        self._timers.schedule(
            ("session", group.group_id, member.member_id),
            self._clock.monotonic_ms() + member.session_timeout_ms,
            lambda: self._expire(group, member.member_id),
        )

    def await_first_join(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Add a pending member, which has to join with its id (KIP-394)."""
        group.pending_members.add(member_id)
        self._timers.schedule(
            ("session", group.group_id, member_id),
            self._clock.monotonic_ms() + timeout_ms,
            lambda: self._expire(group, member_id),
        )

    def _expire(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None and member.is_waiting:
            self.reset_session(group, member)
            return
        self.remove(group, member_id)

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member and rebalance if it was part of the generation."""
        member = self._forget(group, member_id)
        if member is None:
            self.complete_if_all_joined(group)
        elif group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            self.prepare(group)
        elif group.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)

    def _forget(self, group: ClassicGroup, member_id: str) -> GroupMember | None:
        self._timers.cancel(("session", group.group_id, member_id))
        member = group.remove(member_id)
        if member is None:
            return None
        code = code_of(UnknownMemberIdError)
        if member.join_reply is not None:
            self._context.reply(
                member.join_reply, JoinGroupResponse(error_code=code, member_id=member_id)
            )
            member.join_reply = None
        if member.sync_reply is not None:
            self._context.reply(member.sync_reply, SyncGroupResponse(error_code=code))
            member.sync_reply = None
        return member

    def drop_session(self, group: ClassicGroup, member_id: str) -> None:
        """Cancel the session timeout of a member id."""
        self._timers.cancel(("session", group.group_id, member_id))

    def fail_pending(self, group: ClassicGroup, error: KafkaError) -> None:
        """Complete every pending JoinGroup and SyncGroup with an error."""
        code = code_of(error)
        for member in group.members.values():
            if member.join_reply is not None:
                response = JoinGroupResponse(error_code=code, member_id=member.member_id)
                self._context.reply(member.join_reply, response)
                member.join_reply = None
        self.fail_waiting_syncs(group, code)


def sync_response(group: ClassicGroup, member: GroupMember) -> SyncGroupResponse:
    """Return a member's assignment in the current generation."""
    return SyncGroupResponse(
        error_code=NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )
