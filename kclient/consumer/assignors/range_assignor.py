"""Assignor of contiguous partition ranges per topic (Kafka: RangeAssignor)."""

from collections.abc import Mapping

from kclient.common.types import TopicPartition
from kclient.consumer.assignors.partition_assignor import (
    AbstractPartitionAssignor,
    MemberSubscription,
    in_member_order,
)


class RangeAssignor(AbstractPartitionAssignor):
    """Splits each topic separately, so that topics of equal size are co-partitioned.

    If the partitions do not divide evenly, the first members get one partition more.
    """

    @property
    def name(self) -> str:
        """The protocol name."""
        return "range"

    def spread(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = in_member_order(members)
        for topic in sorted(partition_counts):
            takers = [member for member in order if topic in members[member].topics]
            if not takers:
                continue
            each, rest = divmod(partition_counts[topic], len(takers))
            start = 0
            for rank, member in enumerate(takers):
                end = start + each + (1 if rank < rest else 0)
                shares[member] += [TopicPartition(topic, number) for number in range(start, end)]
                start = end
        return shares
