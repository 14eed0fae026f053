"""Fetch position of a partition (Kafka: SubscriptionState.FetchPosition)."""

from typing import NamedTuple

from kclient.client.metadata import LeaderAndEpoch

NO_LEADER = LeaderAndEpoch(None, -1)


class FetchPosition(NamedTuple):
    """Offset with the epochs needed to detect truncation (KIP-320).

    Attributes:
        offset: Next offset to read.
        offset_epoch: Leader epoch of the record before it, -1 if unknown.
        leader: Leader with which the position was last validated.
    """

    offset: int
    offset_epoch: int = -1
    leader: LeaderAndEpoch = NO_LEADER
