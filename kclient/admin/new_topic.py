"""`NewTopic`: a topic to create."""

from typing import NamedTuple, Never, Self

from kclient.admin.foreign_names import NEW_TOPIC
from kclient.common.foreign_names import refuse_keywords


class _Fields(NamedTuple):
    name: str
    num_partitions: int
    replication_factor: int
    configs: dict[str, str] | None
    replica_assignments: dict[int, list[int]] | None


class NewTopic(_Fields):
    """Topic to create (Kafka: NewTopic).

    Attributes:
        name: Topic name, 1 to 249 of ``[a-zA-Z0-9._-]``.
        num_partitions: Number of partitions; -1 for the broker's ``num.partitions``.
        replication_factor: Replicas of each partition; -1 for ``default.replication.factor``.
        configs: Topic configuration by dotted name.
        replica_assignments: Broker ids per partition, instead of the two counts.

    Raises:
        InvalidTypeError: There is no such argument.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: dict[str, str] | None = None,
        replica_assignments: dict[int, list[int]] | None = None,
        **_unknown: Never,
    ) -> Self:
        """Create the description of a topic."""
        refuse_keywords("NewTopic", _unknown, NEW_TOPIC)
        return super().__new__(
            cls, name, num_partitions, replication_factor, configs, replica_assignments
        )
