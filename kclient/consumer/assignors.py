"""Partition assignors, run by the leader of a group: their interface, and the built-in ones."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from kclient.common.types import TopicPartition


class MemberSubscription(NamedTuple):
    """Subscription that a member sent when it joined the group (Kafka: Subscription).

    Attributes:
        topics: Topics the member subscribes to.
        user_data: Bytes of the member's assignor, None where it sent none.
        owned_partitions: Partitions the member held when it joined.
        generation_id: Generation in which it held them, -1 if unknown.
        group_instance_id: Name of a static member, None for a dynamic one.
        rack_id: Rack of the member, None if unknown.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    group_instance_id: str | None = None
    rack_id: str | None = None


class Assignment(NamedTuple):
    """Assignment of one member (Kafka: Assignment)."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


@runtime_checkable
class PartitionAssignor(Protocol):
    """Assigns partitions to members; ``partition_assignment_strategy`` accepts such an object."""

    @property
    def name(self) -> str:
        """The protocol name, which every member of the group must support."""
        ...

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the user data of this member's subscription, or None."""
        ...

    def assign(
        self,
        partition_counts: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
    ) -> Mapping[str, Assignment]:
        """Return the assignment of each member; called on the leader only.

        Args:
            partition_counts: Partitions of each topic that exists, by name.
            members: Subscription of each member, by member id.
        """
        ...

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Receive the assignment of this member."""
        ...


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


def subscribers(members: Mapping[str, MemberSubscription]) -> dict[str, list[int]]:
    """Return the members of each topic, as their positions in `in_member_order`."""
    found: dict[str, list[int]] = {}
    for position, member in enumerate(in_member_order(members)):
        for topic in dict.fromkeys(members[member].topics):
            found.setdefault(topic, []).append(position)
    return found


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
        takers_of = subscribers(members)
        for topic in sorted(partition_counts.keys() & takers_of.keys()):
            takers = takers_of[topic]
            each, rest = divmod(partition_counts[topic], len(takers))
            start = 0
            for rank, position in enumerate(takers):
                end = start + each + (1 if rank < rest else 0)
                shares[order[position]] += [
                    TopicPartition(topic, number) for number in range(start, end)
                ]
                start = end
        return shares


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
        takers_of = subscribers(members)
        turn = 0  # position of the next member, if it subscribes to the topic
        for topic in sorted(partition_counts.keys() & takers_of.keys()):
            takers = takers_of[topic]
            start = bisect_left(takers, turn)
            for number in range(partition_counts[topic]):
                turn = takers[(start + number) % len(takers)]
                shares[order[turn]].append(TopicPartition(topic, number))
                turn += 1
        return shares
