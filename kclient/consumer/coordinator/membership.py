"""A consumer's membership in its group (Kafka: AbstractCoordinator.Generation and its state)."""

import logging
from typing import NamedTuple

from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.coordinator.member_state import MemberEvent, MemberState, next_state

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""


class Generation(NamedTuple):
    """Who a member is in which generation of the group."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str | None = None

    def has_member_id(self) -> bool:
        """Return whether the broker has given an id."""
        return self.member_id != NO_MEMBER_ID


NO_GENERATION = Generation()


class Membership:
    """State, generation and the wish to join again.

    Attributes:
        state: Where the member stands.
        generation: Its generation, or NO_GENERATION outside the group.
        rejoin_needed: Whether the member must join again.
        rejoin_reason: Why, in words that the broker may log.
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
            IllegalStateError: The event cannot happen now.
        """
        self.state = next_state(self.state, event)

    def is_stable(self) -> bool:
        """Return whether the member holds its partitions."""
        return self.state is MemberState.STABLE

    def is_rebalancing(self) -> bool:
        """Return whether a join is under way."""
        return self.state in {MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE}

    def heartbeats(self) -> bool:
        """Return whether the broker expects heartbeats."""
        return self.state in {MemberState.COMPLETING_REBALANCE, MemberState.STABLE}

    def commit_generation(self) -> Generation | None:
        """Return the generation to commit under, None while there is none."""
        return self.generation if self.is_stable() else None

    def request_rejoin(self, reason: str, *, level: int = logging.INFO) -> None:
        """Join again as soon as the application polls.

        Args:
            reason: Why, in words that the broker may log.
            level: Level of the log line.
        """
        if not self.rejoin_needed:
            self._log.log(level, "Request joining group due to: %s", reason)
        self.rejoin_needed = True
        self.rejoin_reason = reason

    def lose(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Stand outside the group: the generation is gone, and with it the partitions.

        Args:
            reason: Why, in words.
            keep_member_id: Whether the broker still knows the member by its id.
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
        """Do as `lose` without a line in the log: the member left on its own account."""
        member_id = self.generation.member_id if keep_member_id else NO_MEMBER_ID
        self.apply(MemberEvent.LEFT)
        self.generation = Generation(member_id=member_id)
        self.request_rejoin(reason, level=logging.DEBUG)
