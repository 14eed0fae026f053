"""Assignor that distributes all partitions in turn (Kafka: RoundRobinAssignor)."""

from collections.abc import Mapping

from kclient.common.types import TopicPartition
from kclient.consumer.assignors.partition_assignor import (
    AbstractPartitionAssignor,
    MemberSubscription,
    in_member_order,
)


class RoundRobinAssignor(AbstractPartitionAssignor):
    """Assigns the partitions of all topics to the subscribed members in turn.

    The assignments of members with equal subscriptions differ by at most one partition.
    """

    @property
    def name(self) -> str:
        """The protocol name."""
        return "roundrobin"

    def spread(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = in_member_order(members)
        wanted = {topic for member in members.values() for topic in member.topics}
        turn = 0
        for topic in sorted(wanted & partition_counts.keys()):
            for number in range(partition_counts[topic]):
                while topic not in members[order[turn]].topics:
                    turn = (turn + 1) % len(order)
                shares[order[turn]].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(order)
        return shares
