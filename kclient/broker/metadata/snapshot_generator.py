"""Decision when a snapshot of the metadata is written."""

import logging
from collections.abc import Callable, Iterable, Iterator

from kclient.broker.metadata.image_records import encoded_records
from kclient.broker.metadata.metadata_batch_loader import Manifest
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.raft_types import LeaderAndEpoch
from kclient.broker.raft.snapshots import SnapshotWriter
from kclient.common.runtime import Clock

_log = logging.getLogger(__name__)

DEFAULT_MAX_BYTES = 20 * 1024 * 1024
"""Default of ``metadata.log.max.record.bytes.between.snapshots``."""
DEFAULT_MAX_INTERVAL_MS = 60 * 60 * 1000
"""Default of ``metadata.log.max.snapshot.interval.ms``."""

_VALUES_PER_APPEND = 1000


class SnapshotGenerator:
    """Publisher that asks for snapshots (Kafka: SnapshotGenerator).

    One is due when enough bytes were replayed since the last, or enough time has passed. Only an
    image at the end of a batch is offered; none is after a record could not be loaded.

    Args:
        clock: Clock.
        write: Writes a snapshot of an image, see `ImageWriter`.
        may_write: Whether the images are complete: `MetadataLoader.load_error_count` is 0.
        max_bytes: Bytes of the log between snapshots.
        max_interval_ms: Milliseconds between snapshots; 0 for no limit.
    """

    def __init__(
        self,
        clock: Clock,
        write: Callable[[MetadataImage], None],
        may_write: Callable[[], bool],
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_interval_ms: int = DEFAULT_MAX_INTERVAL_MS,
    ) -> None:
        self._clock = clock
        self._write = write
        self._may_write = may_write
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._bytes = 0
        self._last_ms = clock.monotonic_ms()

    @property
    def name(self) -> str:
        """Name for errors and logs."""
        return "SnapshotGenerator"

    def on_metadata_update(
        self, _delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        """Ask for a snapshot if one is due."""
        if manifest.is_snapshot:
            self._reset()
            return
        self._bytes += manifest.size_in_bytes
        if not manifest.is_batch_aligned or not self._is_due() or not self._may_write():
            return
        _log.info("metadata: a snapshot is due at offset %d", image.offset)
        self._reset()
        self._write(image)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Ignore the leader: every node makes its own snapshots."""

    def _is_due(self) -> bool:
        if self._bytes >= self._max_bytes:
            return True
        waited_ms = self._clock.monotonic_ms() - self._last_ms
        return (
            bool(self._max_interval_ms)
            and bool(self._bytes)
            and (waited_ms >= self._max_interval_ms)
        )

    def _reset(self) -> None:
        self._bytes = 0
        self._last_ms = self._clock.monotonic_ms()


class ImageWriter:
    """Writes an image as a snapshot, in steps of milliseconds.

    A large image takes seconds, for which the thread of the quorum must not wait. The image does
    not change, and another thread may make the steps.
    """

    def __init__(self, writer: SnapshotWriter, image: MetadataImage) -> None:
        self._writer = writer
        self._slices = _slices(encoded_records(image))

    def step(self) -> bool:
        """Write the next records; return whether the snapshot is complete.

        The snapshot is discarded if that fails.

        Raises:
            KafkaError: The image cannot be stored at its level of metadata.version.
            OSError: The disk fails.
        """
        try:
            values = next(self._slices, None)
            if values is not None:
                self._writer.append(values)
                return False
            self._writer.freeze()
        except BaseException:
            self._writer.close()
            raise
        return True

    def close(self) -> None:
        """Discard the snapshot unless it is complete."""
        self._writer.close()


def _slices(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    waiting: list[bytes] = []
    for value in values:
        waiting.append(value)
        if len(waiting) == _VALUES_PER_APPEND:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
