"""What the application wants to hear about its partitions (Kafka: ConsumerRebalanceListener)."""

from collections.abc import Callable
from dataclasses import dataclass

from kclient.common.callbacks import check_callback
from kclient.common.types import TopicPartition

PartitionsCallback = Callable[[list[TopicPartition]], object]


@dataclass(frozen=True, slots=True)
class RebalanceListener:
    """Callbacks that run inside `poll`, in the application's thread.

    Attributes:
        on_assigned: Called with the partitions gained, before the first record of them.
        on_revoked: Called before partitions are given up; commit here what was processed.
        on_lost: Called in place of `on_revoked` when the partitions are gone already, so that
            a commit would be refused; without it `on_revoked` is called.
    """

    on_assigned: PartitionsCallback | None = None
    on_revoked: PartitionsCallback | None = None
    on_lost: PartitionsCallback | None = None

    def __post_init__(self) -> None:
        for name in ("on_assigned", "on_revoked", "on_lost"):
            check_callback(
                name, getattr(self, name), "a callable that takes a list of TopicPartition"
            )

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """Report partitions gained."""
        if self.on_assigned is not None:
            self.on_assigned(partitions)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        """Report partitions about to be given up."""
        if self.on_revoked is not None:
            self.on_revoked(partitions)

    def lost(self, partitions: list[TopicPartition]) -> None:
        """Report partitions that are gone."""
        callback = self.on_lost or self.on_revoked
        if callback is not None:
            callback(partitions)
