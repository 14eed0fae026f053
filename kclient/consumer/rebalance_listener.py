"""Rebalance callbacks of the application (Kafka: ConsumerRebalanceListener)."""

from collections.abc import Callable
from typing import Final

from kclient.common.arguments import check_callback, is_coroutine_function
from kclient.common.types import TopicPartition

PartitionsCallback = Callable[[list[TopicPartition]], object]
"""Called with partitions. `kclient.aio.Consumer` awaits it if it is a coroutine function."""


class RebalanceListener:
    """Callbacks that run inside `poll`, in the application's thread or task.

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
        *,
        are_awaited: bool = False,
    ) -> None:
        """Check and keep the callbacks.

        Args:
            on_assigned: See above; None for no callback.
            on_revoked: See above; None for no callback.
            on_lost: See above; None for no callback.
            are_awaited: Whether coroutine functions are awaited; otherwise these are refused.

        Raises:
            InvalidTypeError: A callback is not callable, or a coroutine function that is refused.
        """
        self.on_assigned: Final = on_assigned
        self.on_revoked: Final = on_revoked
        self.on_lost: Final = on_lost
        for name in ("on_assigned", "on_revoked", "on_lost"):
            check_callback(
                name,
                getattr(self, name),
                "a callable that takes a list of TopicPartition",
                may_be_coroutine=are_awaited,
            )

    def must_be_awaited(self) -> bool:
        """Return whether `revoked` or `lost` may call a coroutine function."""
        return is_coroutine_function(self.on_revoked) or is_coroutine_function(self.on_lost)

    def assigned(self, partitions: list[TopicPartition]) -> object:
        """Call `on_assigned`; return its result."""
        return None if self.on_assigned is None else self.on_assigned(partitions)

    def revoked(self, partitions: list[TopicPartition]) -> object:
        """Call `on_revoked`; return its result."""
        return None if self.on_revoked is None else self.on_revoked(partitions)

    def lost(self, partitions: list[TopicPartition]) -> object:
        """Call `on_lost`, or `on_revoked` if there is none; return its result."""
        callback = self.on_lost or self.on_revoked
        return None if callback is None else callback(partitions)
