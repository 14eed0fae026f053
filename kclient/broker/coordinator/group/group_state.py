"""The life of a classic group as a table of states (Kafka: ClassicGroupState)."""

from enum import Enum

from kclient.common.errors import IllegalStateError


class GroupState(Enum):
    """Where a group stands; the value is the name that DescribeGroups shows."""

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
    """Raise IllegalStateError where the table has no way from `old` to `new`."""
    if old not in PREVIOUS[new]:
        raise IllegalStateError(f"group {group_id!r} cannot go from {old.value} to {new.value}")
