"""Who leads what, in the form the consumer's positions hold."""

from collections.abc import Iterable

from kclient.client.cluster import Cluster
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.types import Node, TopicPartition
from kclient.consumer.fetch_position import NO_LEADER
from kclient.consumer.topic_partition_state import TopicPartitionState


def current_leader(cluster: Cluster, partition: TopicPartition) -> LeaderAndEpoch:
    """Return the leader of a partition in a picture of the cluster."""
    info = cluster.partition(partition)
    return NO_LEADER if info is None else LeaderAndEpoch(info.leader, info.leader_epoch)


def by_leader(
    cluster: Cluster, states: Iterable[TopicPartitionState]
) -> tuple[dict[Node, list[TopicPartitionState]], bool]:
    """Group partitions by leader; say whether some have none."""
    groups: dict[Node, list[TopicPartitionState]] = {}
    leaderless = False
    for state in states:
        leader = current_leader(cluster, state.partition).leader
        if leader is None:
            leaderless = True
        else:
            groups.setdefault(leader, []).append(state)
    return groups, leaderless
