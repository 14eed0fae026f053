"""Partition leaders, in the form stored in fetch positions."""

from kclient.client.cluster import Cluster
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.types import TopicPartition
from kclient.consumer.fetch_position import NO_LEADER


def current_leader(cluster: Cluster, partition: TopicPartition) -> LeaderAndEpoch:
    """Return the leader of a partition in a metadata snapshot."""
    info = cluster.partition(partition)
    return NO_LEADER if info is None else LeaderAndEpoch(info.leader, info.leader_epoch)
