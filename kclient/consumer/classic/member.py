"""Member of a group in the classic protocol: states, generation, and whether it must rejoin.

A STABLE member that learns of a rebalance stays STABLE and continues to send heartbeats until its
partitions are revoked and it sends JoinGroup.
"""

import logging
from enum import Enum
from typing import NamedTuple

from kclient.common.broker_errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kclient.common.denials import group_denied
from kclient.common.errors import CommitFailedError, IllegalStateError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import ConsumerGroupMetadata
from kclient.consumer.membership import NO_EPOCH, MemberEpoch

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""


class MemberState(Enum):
    """State of a group member."""

    UNJOINED = "not in the group"
    PREPARING_REBALANCE = "JoinGroup sent"
    COMPLETING_REBALANCE = "joined, awaiting the assignment"
    STABLE = "joined, with an assignment"


class MemberEvent(Enum):
    """Event that changes the state of a group member."""

    JOIN_SENT = "JoinGroup was sent"
    JOINED = "JoinGroup succeeded"
    JOIN_FAILED = "JoinGroup failed"
    ASSIGNED = "SyncGroup succeeded"
    SYNC_FAILED = "SyncGroup failed"
    LEFT = "the member left the group, or was removed"


_S = MemberState
_E = MemberEvent

TRANSITIONS: dict[tuple[MemberState, MemberEvent], MemberState] = {
    (_S.UNJOINED, _E.JOIN_SENT): _S.PREPARING_REBALANCE,
    (_S.STABLE, _E.JOIN_SENT): _S.PREPARING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.JOINED): _S.COMPLETING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.JOIN_FAILED): _S.UNJOINED,
    (_S.COMPLETING_REBALANCE, _E.ASSIGNED): _S.STABLE,
    (_S.COMPLETING_REBALANCE, _E.SYNC_FAILED): _S.UNJOINED,
    (_S.UNJOINED, _E.LEFT): _S.UNJOINED,
    (_S.PREPARING_REBALANCE, _E.LEFT): _S.UNJOINED,
    (_S.COMPLETING_REBALANCE, _E.LEFT): _S.UNJOINED,
    (_S.STABLE, _E.LEFT): _S.UNJOINED,
}


def next_state(state: MemberState, event: MemberEvent) -> MemberState:
    """Return the state after an event.

    Raises:
        IllegalStateError: There is no such transition.
    """
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise IllegalStateError(f"group member: no transition for {event.name} in {state.name}")
    return following


class Generation(NamedTuple):
    """Member id, generation and protocol of a member."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str | None = None

    def has_member_id(self) -> bool:
        """Return whether the broker has assigned a member id."""
        return self.member_id != NO_MEMBER_ID


NO_GENERATION = Generation()


class Member:
    """State and generation of a member, and whether it must rejoin.

    Attributes:
        state: State of the member.
        generation: Its generation, NO_GENERATION outside the group.
        rejoin_needed: Whether the member must rejoin.
        rejoin_reason: Reason sent to the broker.
    """

    def __init__(
        self,
        group_id: str,
        group_instance_id: str | None = None,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._group_id = group_id
        self._group_instance_id = group_instance_id
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self._assigned_generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""

    def apply(self, event: MemberEvent) -> None:
        """Move to the next state.

        Raises:
            IllegalStateError: There is no such transition.
        """
        self.state = next_state(self.state, event)
        if event is MemberEvent.ASSIGNED:
            self._assigned_generation = self.generation

    def has_generation(self) -> bool:
        """Return whether the member belongs to a generation of the group."""
        return self.generation.generation_id != NO_GENERATION_ID

    def is_stable(self) -> bool:
        """Return whether the member has joined and has its assignment."""
        return self.state is MemberState.STABLE

    def is_rebalancing(self) -> bool:
        """Return whether a join is in progress."""
        return self.state in {MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE}

    def heartbeats(self) -> bool:
        """Return whether the broker expects heartbeats."""
        return self.state in {MemberState.COMPLETING_REBALANCE, MemberState.STABLE}

    def commit_epoch(self) -> MemberEpoch:
        """Return member id and generation for a commit.

        Raises:
            RebalanceInProgressError: A join is in progress.
            CommitFailedError: The consumer is not a member of the group now.
        """
        if self.is_stable():
            return self._epoch()
        if self.is_rebalancing():
            raise RebalanceInProgressError(
                "the group is rebalancing: call poll() until it has finished, then commit again"
            )
        raise CommitFailedError(
            "this consumer is not a member of the group now, its partitions may be owned by "
            "another; poll() rejoins (polls may have been more than max_poll_interval_ms apart)"
        )

    def commit_failed(self, error: KafkaError, sent: MemberEpoch) -> KafkaError:
        """Update the member after a failed commit; return the error for the caller."""
        same = sent == self._epoch()
        if isinstance(error, RebalanceInProgressError):
            self.request_rejoin("commit failed: the group is rebalancing")
            return RebalanceInProgressError("the group is rebalancing: call poll() to rejoin")
        if isinstance(error, UnknownMemberIdError | IllegalGenerationError):
            if same and sent != NO_EPOCH:
                self.lose(str(error), keep_member_id=isinstance(error, IllegalGenerationError))
            if sent == NO_EPOCH:
                return CommitFailedError(
                    f"{error.error_name}: group {self._group_id!r} has members; a consumer with "
                    "assign() can commit only while it has none; nothing was committed"
                )
            return CommitFailedError(
                f"{error.error_name}: this consumer is not a member of the group any more, its "
                "partitions may be owned by another; nothing was committed"
            )
        if isinstance(error, FencedInstanceIdError):
            if same:
                self.lose("another consumer has the same group.instance.id", keep_member_id=True)
            return self.fenced_error()
        if isinstance(error, GroupAuthorizationError):
            return group_denied(self._group_id)
        return error

    def fenced_error(self) -> FencedInstanceIdError:
        """Return the error of a fenced static member."""
        return FencedInstanceIdError(
            f"group.instance.id {self._group_instance_id!r} of group {self._group_id!r} "
            "is used by another consumer now"
        )

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer.

        It is that of the last assignment, also after the membership has ended (as in Kafka's
        ConsumerCoordinator): the coordinator then refuses the offsets. It accepts those without
        member id and generation, although another member may have committed meanwhile.
        """
        generation = self._assigned_generation
        return ConsumerGroupMetadata(
            self._group_id,
            generation.generation_id,
            generation.member_id,
            self._group_instance_id,
        )

    def request_rejoin(self, reason: str, *, level: int = logging.INFO) -> None:
        """Rejoin at the next poll.

        Args:
            reason: Reason sent to the broker.
            level: Level of the log line.
        """
        if not self.rejoin_needed:
            self._log.log(level, "Request joining group due to: %s", reason)
        self.rejoin_needed = True
        self.rejoin_reason = reason

    def lose(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Reset the generation: the member is not in the group any more.

        Args:
            reason: Reason for the log and the broker.
            keep_member_id: Whether the member id is still valid.
        """
        if self.state is not MemberState.UNJOINED:
            self._log.info(
                "Resetting generation %d%s due to: %s",
                self.generation.generation_id,
                "" if keep_member_id else f" and member id {self.generation.member_id}",
                reason,
            )
        self.left(reason, keep_member_id=keep_member_id)

    def left(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Reset the generation without a log line: the member left by itself."""
        member_id = self.generation.member_id if keep_member_id else NO_MEMBER_ID
        self.apply(MemberEvent.LEFT)
        self.generation = Generation(member_id=member_id)
        self.request_rejoin(reason, level=logging.DEBUG)

    def _epoch(self) -> MemberEpoch:
        return MemberEpoch(self.generation.member_id, self.generation.generation_id)
