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

    def await_offset(self, offset: int, deadline_ms: float, on_image: OnImage) -> None:
        """Call a function when the image has the record at an offset, or at a deadline.

        It is called now, or later by the publisher or by the thread of the deadlines.

        Args:
            offset: Offset of the record.
            deadline_ms: Monotonic time after which the function is called in any case.
            on_image: The function.
        """
        operation = DelayedImage(self._condition(), deadline_ms, self, offset, on_image)
        self._waiting.try_complete_else_watch(operation, (_IMAGE,))

    def publish(self, image: MetadataImage) -> None:
        """Replace the image. This is the last publisher: what the image has can be used."""
        self.image = image
        self._waiting.check_and_complete(_IMAGE)


class DelayedImage(DelayedOperation):
    """Wait for a record, complete when the image of a cache has it."""

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        cache: MetadataCache,
        offset: int,
        on_image: OnImage,
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._cache = cache
        self._offset = offset
        self._on_image = on_image

    def try_complete(self) -> bool:
        """Complete if the image has the record."""
        return self._cache.image.offset >= self._offset and self.force_complete()

    def on_complete(self) -> None:
        """Call the function of the caller."""
        self._on_image()
