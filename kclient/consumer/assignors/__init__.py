"""Partition assignors, run by the leader of a group."""

from kclient.consumer.assignors.partition_assignor import (
    AbstractPartitionAssignor,
    Assignment,
    MemberSubscription,
    PartitionAssignor,
)
from kclient.consumer.assignors.range_assignor import RangeAssignor
from kclient.consumer.assignors.round_robin_assignor import RoundRobinAssignor

__all__ = [
    "AbstractPartitionAssignor",
    "Assignment",
    "MemberSubscription",
    "PartitionAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
]
