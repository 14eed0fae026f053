"""Where a partition is read next (Kafka: SubscriptionState.FetchPosition)."""

from typing import NamedTuple

from kclient.client.metadata import LeaderAndEpoch

NO_LEADER = LeaderAndEpoch(None, -1)


class FetchPosition(NamedTuple):
    """A position with what is needed to see whether the log still holds it (KIP-320).

    Attributes:
        offset: Next offset to read.
        offset_epoch: Leader epoch of the record before it, -1 if unknown.
        leader: Leader the position was last held against.
    """

    offset: int
    offset_epoch: int = -1
    leader: LeaderAndEpoch = NO_LEADER
