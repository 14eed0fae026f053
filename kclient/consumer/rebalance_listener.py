"""Rebalance callbacks of the application (Kafka: ConsumerRebalanceListener)."""

from collections.abc import Callable
from typing import Final

from kclient.common.arguments import check_callback
from kclient.common.types import TopicPartition

PartitionsCallback = Callable[[list[TopicPartition]], object]


class RebalanceListener:
    """Callbacks that run inside `poll`, in the application's thread.

    Attributes:
        on_assigned: Called with the new partitions, before their first record is returned.
        on_revoked: Called before partitions are revoked; commit processed offsets here.
        on_lost: Called instead of `on_revoked` if the partitions are lost already, so that a
            commit would fail; without it `on_revoked` is called.
    """

    __slots__ = ("on_assigned", "on_lost", "on_revoked")

    def __init__(
        self,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
    ) -> None:
        self.on_assigned: Final = on_assigned
        self.on_revoked: Final = on_revoked
        self.on_lost: Final = on_lost
        for name in ("on_assigned", "on_revoked", "on_lost"):
            check_callback(
                name, getattr(self, name), "a callable that takes a list of TopicPartition"
            )

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """Call `on_assigned`."""
        if self.on_assigned is not None:
            self.on_assigned(partitions)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        """Call `on_revoked`."""
        if self.on_revoked is not None:
            self.on_revoked(partitions)

    def lost(self, partitions: list[TopicPartition]) -> None:
        """Call `on_lost`, or `on_revoked` if there is none."""
        callback = self.on_lost or self.on_revoked
        if callback is not None:
            callback(partitions)
