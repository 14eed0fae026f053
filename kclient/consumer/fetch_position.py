"""Fetch position of a partition (Kafka: SubscriptionState.FetchPosition)."""

from typing import NamedTuple

from kclient.client.cluster import Cluster
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.types import TopicPartition

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


def current_leader(cluster: Cluster, partition: TopicPartition) -> LeaderAndEpoch:
    """Return the leader of a partition in a metadata snapshot."""
    info = cluster.partition(partition)
    return NO_LEADER if info is None else LeaderAndEpoch(info.leader, info.leader_epoch)
