"""Membership of a consumer in its group (Kafka: AbstractCoordinator.Generation and its state)."""

import logging
from typing import NamedTuple

from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.coordinator.member_state import MemberEvent, MemberState, next_state

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""


class Generation(NamedTuple):
    """Member id, generation and protocol of a member."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str | None = None

    def has_member_id(self) -> bool:
        """Return whether the broker has assigned a member id."""
        return self.member_id != NO_MEMBER_ID


NO_GENERATION = Generation()


class Membership:
    """State and generation of a member, and whether it must rejoin.

    Attributes:
        state: State of the member.
        generation: Its generation, NO_GENERATION outside the group.
        rejoin_needed: Whether the member must rejoin.
        rejoin_reason: Reason sent to the broker.
    """

    def __init__(self, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""

    def apply(self, event: MemberEvent) -> None:
        """Move to the next state.

        Raises:
            IllegalStateError: There is no such transition.
        """
        self.state = next_state(self.state, event)

    def is_stable(self) -> bool:
        """Return whether the member has joined and has its assignment."""
        return self.state is MemberState.STABLE

    def is_rebalancing(self) -> bool:
        """Return whether a join is in progress."""
        return self.state in {MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE}

    def heartbeats(self) -> bool:
        """Return whether the broker expects heartbeats."""
        return self.state in {MemberState.COMPLETING_REBALANCE, MemberState.STABLE}

    def commit_generation(self) -> Generation | None:
        """Return the generation for commits, None if the member is not stable."""
        return self.generation if self.is_stable() else None

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
