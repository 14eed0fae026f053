"""Group metadata for transactional producers (KIP-447)."""

from typing import NamedTuple


class ConsumerGroupMetadata(NamedTuple):
    """Membership of a consumer at one time (Kafka: ConsumerGroupMetadata).

    Attributes:
        group_id: Group.
        generation_id: Generation of the group, -1 outside it.
        member_id: Id within the group, empty outside it.
        group_instance_id: Name of a static member, None for a dynamic one.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
