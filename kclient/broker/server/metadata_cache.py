"""Cluster metadata that a broker serves requests from."""

from collections.abc import Callable

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.replication.delayed_operation import (
    DelayedOperation,
    DelayedOperationPurgatory,
    OperationTimer,
)
from kclient.common.runtime import Condition, Tasks

OnImage = Callable[[], None]

Applied = Callable[[MetadataImage], bool]
"""Returns whether an image has a change."""

_IMAGE = "image"
"""Key of the purgatory: all operations wait for the same thing."""


class MetadataCache:
    """The published metadata of a broker (Kafka: KRaftMetadataCache).

    Attributes:
        image: The newest image that every other publisher has applied. It is immutable, and
            replaced; any thread may read it without a lock.
    """

    def __init__(self, tasks: Tasks, timer: OperationTimer) -> None:
        self._condition = tasks.condition
        self._waiting: DelayedOperationPurgatory[DelayedImage] = DelayedOperationPurgatory(
            tasks.condition(), timer
        )
        self.image = MetadataImage()

    def await_image(self, applied: Applied, deadline_ms: float, on_image: OnImage) -> None:
        """Call a function when the image has a change, or at a deadline.

        It is called now, or later by the publisher or by the thread of the deadlines.

        Args:
            applied: Returns whether an image has the change.
            deadline_ms: Monotonic time after which the function is called in any case.
            on_image: The function.
        """
        operation = DelayedImage(self._condition(), deadline_ms, self, applied, on_image)
        self._waiting.try_complete_else_watch(operation, (_IMAGE,))

    def publish(self, image: MetadataImage) -> None:
        """Replace the image. This is the last publisher: what the image has can be used."""
        self.image = image
        self._waiting.check_and_complete(_IMAGE)


class DelayedImage(DelayedOperation):
    """Wait for a change, complete when the image of a cache has it."""

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        cache: MetadataCache,
        applied: Applied,
        on_image: OnImage,
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._cache = cache
        self._applied = applied
        self._on_image = on_image

    def try_complete(self) -> bool:
        """Complete if the image has the change."""
        return self._applied(self._cache.image) and self.force_complete()

    def on_complete(self) -> None:
        """Call the function of the caller."""
        self._on_image()
