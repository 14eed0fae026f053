"""The states of a member and every way from one to another (Kafka: MemberState).

::

                 JOIN_SENT                 JOINED                        ASSIGNED
    UNJOINED ----------------> PREPARING -----------> COMPLETING -----------------> STABLE
       ^ ^ ^                      |                       |                          | |
       | | +----- JOIN_FAILED ----+                       |                          | |
       | +---------------------------- SYNC_FAILED -------+     REJOIN_SENT          | |
       |                       PREPARING <-------------------------------------------+ |
       +------------------------------ LEFT, from anywhere ----------------------------+

A member that is STABLE and has heard of a rebalance stays STABLE, and goes on with its heartbeats,
until its application has given its partitions up and it asks to join again.
"""

from enum import Enum

from kclient.common.errors import IllegalStateError


class MemberState(Enum):
    """Where a member stands."""

    UNJOINED = "not in the group"
    PREPARING_REBALANCE = "asked to join, waits for the other members"
    COMPLETING_REBALANCE = "joined, waits for its partitions"
    STABLE = "joined, with its partitions"


class MemberEvent(Enum):
    """What happens to a member."""

    JOIN_SENT = "asked to join"
    JOINED = "the group has formed"
    JOIN_FAILED = "the request to join failed"
    ASSIGNED = "the partitions came"
    SYNC_FAILED = "the request for the partitions failed"
    LEFT = "left the group, or was put out of it"


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
    """Return the state that an event leads to.

    Raises:
        IllegalStateError: The event cannot happen in this state.
    """
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise IllegalStateError(f"group member: {event.name} cannot happen while {state.name}")
    return following
