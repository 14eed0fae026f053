"""Base class of the built-in assignors (Kafka: AbstractPartitionAssignor)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from kclient.common.types import TopicPartition
from kclient.consumer.assignors.partition_assignor import Assignment, MemberSubscription


class AbstractPartitionAssignor(ABC):
    """An assignor without user data; a subclass implements `spread`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The protocol name."""

    @abstractmethod
    def spread(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member, by member id."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return None: no user data."""
        return None

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        """Return the assignment of each member."""
        shares = self.spread(partition_counts, members)
        return {member: Assignment(tuple(shares.get(member, ()))) for member in members}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: B027 (optional)
        """Ignore the assignment; a subclass may keep it."""


def in_member_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Return member ids in an order that a restart of a static member does not change.

    Static members come first, by instance id; dynamic ones follow, by member id (Kafka:
    AbstractPartitionAssignor.MemberInfo).
    """

    def rank(member: str) -> tuple[bool, str, str]:
        instance = members[member].group_instance_id
        return (instance is None, instance or "", member)

    return sorted(members, key=rank)
