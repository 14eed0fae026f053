"""What an assignor is (Kafka: ConsumerPartitionAssignor)."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from kclient.common.types import TopicPartition


class MemberSubscription(NamedTuple):
    """What one member told the group when it joined (Kafka: Subscription).

    Attributes:
        topics: Topics the member wants.
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
    """What one member is given (Kafka: Assignment)."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


@runtime_checkable
class PartitionAssignor(Protocol):
    """Spreads partitions over members; pass an object of this form as an assignment strategy."""

    @property
    def name(self) -> str:
        """The protocol name that every member of the group must offer."""
        ...

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return bytes to send along with this member's subscription, or None."""
        ...

    def assign(
        self,
        partition_counts: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
    ) -> Mapping[str, Assignment]:
        """Return each member's share; called on the leader only.

        Args:
            partition_counts: Partitions of each topic that exists, by name.
            members: Subscription of each member, by member id.
        """
        ...

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Take note of what this member was given."""
        ...
