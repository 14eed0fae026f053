"""States of a classic group and the table of their transitions (Kafka: ClassicGroupState)."""

from enum import Enum

from kclient.common.errors import IllegalStateError


class GroupState(Enum):
    """State of a group; the value is the name in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# state -> states that may come before it
PREVIOUS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


def check_transition(group_id: str, old: GroupState, new: GroupState) -> None:
    """Raise IllegalStateError if the table has no transition from `old` to `new`."""
    if old not in PREVIOUS[new]:
        raise IllegalStateError(f"group {group_id!r} cannot go from {old.value} to {new.value}")
