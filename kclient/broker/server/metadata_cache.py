"""Cluster metadata that a broker serves requests from."""

from collections.abc import Callable

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.common.runtime import Condition

OnImage = Callable[[], None]


class MetadataCache:
    """The published metadata of a broker (Kafka: KRaftMetadataCache).

    The lock guards the callbacks that wait for an image.

    Attributes:
        image: The newest image that every other publisher has applied. It is immutable, and
            replaced; any thread may read it without a lock.
    """

    def __init__(self, lock: Condition) -> None:
        self._lock = lock
        self._waiting: list[tuple[int, OnImage]] = []
        self.image = MetadataImage()

    def await_offset(self, offset: int, on_image: OnImage) -> None:
        """Call a function when the image has the record at an offset: now, or by the publisher."""
        with self._lock:
            if self.image.offset < offset:
                self._waiting.append((offset, on_image))
                return
        on_image()

    def publish(self, image: MetadataImage) -> None:
        """Replace the image. This is the last publisher: what the image has can be used."""
        with self._lock:
            self.image = image
            due = [call for offset, call in self._waiting if offset <= image.offset]
            self._waiting = [each for each in self._waiting if each[0] > image.offset]
        for on_image in due:
            on_image()
