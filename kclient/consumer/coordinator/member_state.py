"""States of a group member and their transitions (Kafka: MemberState).

::

                 JOIN_SENT                 JOINED                        ASSIGNED
    UNJOINED ----------------> PREPARING -----------> COMPLETING -----------------> STABLE
       ^ ^ ^                      |                       |                          | |
       | | +----- JOIN_FAILED ----+                       |                          | |
       | +---------------------------- SYNC_FAILED -------+     REJOIN_SENT          | |
       |                       PREPARING <-------------------------------------------+ |
       +------------------------------ LEFT, from anywhere ----------------------------+

A STABLE member that learns of a rebalance stays STABLE and continues to send heartbeats until its
partitions are revoked and it sends JoinGroup.
"""

from enum import Enum

from kclient.common.errors import IllegalStateError


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
