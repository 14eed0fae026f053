"""Listener of the metadata log that gives images to publishers."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from kclient.broker.metadata.metadata_batch_loader import (
    Fault,
    Manifest,
    MetadataBatchLoader,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.raft_types import (
    NO_LEADER,
    CommittedBatch,
    LeaderAndEpoch,
    OffsetAndEpoch,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import MetadataRecord

_log = logging.getLogger(__name__)


class MetadataSnapshot(Protocol):
    """Snapshot to load."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """Id of the snapshot."""
        ...

    @property
    def last_contained_log_timestamp(self) -> int:
        """Wall time of the last record that it contains."""
        ...

    def batches(self) -> Iterable[CommittedBatch]:
        """Return its batches of metadata records."""
        ...


class MetadataPublisher(Protocol):
    """Component that follows the metadata (Kafka: MetadataPublisher)."""

    @property
    def name(self) -> str:
        """Name for errors and logs."""
        ...

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        """Apply a change; the first one is from the empty image."""
        ...

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Apply a change of the active controller, after the first image."""
        ...


def load_image(reader: MetadataSnapshot, on_fault: Callable[[Fault], None]) -> MetadataImage:
    """Return the image of a snapshot.

    Args:
        reader: The snapshot.
        on_fault: Receives errors of records, which are skipped unless it raises.

    Raises:
        CorruptRecordError: A batch is damaged.
    """
    snapshot_id, delta = reader.snapshot_id, MetadataDelta(MetadataImage())
    for batch in reader.batches():
        for value in batch.records:
            try:
                delta.replay(MetadataRecord.decode_framed(value))
            except KafkaError as error:
                message = f"snapshot {snapshot_id}: a record could not be loaded"
                on_fault(Fault(message, error))
    return delta.apply(
        snapshot_id.offset - 1, snapshot_id.epoch, reader.last_contained_log_timestamp
    )


class MetadataLoader:
    """Replays the metadata log and publishes the images (Kafka: MetadataLoader).

    Publishers see nothing until the image has reached the high watermark: they would act on what
    is outdated. All calls are made by the thread of the quorum.

    Args:
        high_watermark: Returns the high watermark of the metadata log, None while it is unknown.
        on_fault: Receives errors, after they were counted and logged. It may raise to stop the
            node; otherwise a record is skipped, and publishers after a failed one continue.

    Attributes:
        leader: Leader of the quorum.
        load_error_count: Records that could not be loaded (metadata-load-error-count). The image
            may lack something from the first on, hence no snapshot must be made of it.
        apply_error_count: Failures of publishers (metadata-apply-error-count).
        is_caught_up: Whether the image has reached the high watermark once.
        removed_topics: Ids of the topics that the replayed log deletes before the first
            publication: a crash may have left their partitions on the disk.
    """

    def __init__(
        self, high_watermark: Callable[[], int | None], on_fault: Callable[[Fault], None]
    ) -> None:
        self._high_watermark = high_watermark
        self._on_fault = on_fault
        self._batches = MetadataBatchLoader(self._publish, self._load_failed)
        self._publishers: list[MetadataPublisher] = []
        self._new_publishers: list[MetadataPublisher] = []
        self.leader = NO_LEADER
        self.load_error_count = 0
        self.apply_error_count = 0
        self.is_caught_up = False
        self.removed_topics: set[bytes] = set()

    @property
    def image(self) -> MetadataImage:
        """Newest image outside of transactions, published or not."""
        return self._batches.image

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Add a publisher; it receives the image now, or as soon as it has caught up."""
        self._new_publishers.append(publisher)
        self.poll()

    def remove_publisher(self, publisher: MetadataPublisher) -> None:
        """Remove a publisher."""
        for known in (self._publishers, self._new_publishers):
            if publisher in known:
                known.remove(publisher)

    def poll(self) -> bool:
        """Give the image to new publishers; return whether any still waits.

        It has to be called again after 100 ms then: the high watermark may become known, or pass
        the image, without another commit.
        """
        if self._new_publishers and not self._batches.is_in_transaction and self._catch_up():
            new, self._new_publishers = self._new_publishers, []
            for publisher in new:
                self._initialize(publisher)
        return bool(self._new_publishers)

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Replay committed batches, and publish the image after them."""
        self._batches.load(batches)
        self.poll()

    def handle_load_snapshot(self, reader: MetadataSnapshot) -> None:
        """Replace the image by that of a snapshot, and publish the difference."""
        old, image = self.image, load_image(reader, self._load_failed)
        self._batches.reset(image)
        _log.info("metadata: loaded the snapshot up to offset %d", image.offset)
        if self._publishers:
            difference = MetadataDelta.between(old, image)
            self._publish(difference, image, Manifest(is_snapshot=True))
        self.poll()

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Report the leader of an epoch to the publishers."""
        self.leader = leader
        for publisher in self._publishers:
            self._call(publisher, lambda each: each.on_controller_change(leader))
        self.poll()

    def begin_shutdown(self) -> None:
        """Forget the publishers: what is committed from now on is of no interest to them."""
        self._publishers.clear()
        self._new_publishers.clear()

    def _catch_up(self) -> bool:
        if not self.is_caught_up:
            high_watermark = self._high_watermark()
            self.is_caught_up = (
                high_watermark is not None
                and self._batches.has_seen_record
                and self.image.offset >= high_watermark - 1
            )
        return self.is_caught_up

    def _initialize(self, publisher: MetadataPublisher) -> None:
        image, manifest = self.image, Manifest(is_snapshot=True)
        delta = MetadataDelta.between(MetadataImage(), image)
        self._publishers.append(publisher)
        self._call(
            publisher, lambda each: each.on_metadata_update(delta, image, manifest), is_first=True
        )
        leader = self.leader
        self._call(publisher, lambda each: each.on_controller_change(leader))

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if not self._publishers:
            self.removed_topics.update(topic.topic_id for topic in delta.deleted_topics)
        for publisher in tuple(self._publishers):
            self._call(publisher, lambda each: each.on_metadata_update(delta, image, manifest))

    def _call(
        self,
        publisher: MetadataPublisher,
        call: Callable[[MetadataPublisher], None],
        *,
        is_first: bool = False,
    ) -> None:
        """Call a publisher; the others must not miss the change if it fails."""
        try:
            call(publisher)
        except Exception as error:  # noqa: BLE001 (a publisher may fail in any way; it is reported)
            self.apply_error_count += 1
            message = f"metadata: {publisher.name} could not apply offset {self.image.offset}"
            _log.error("%s: %s", message, error)
            self._on_fault(Fault(message, error, is_fatal=is_first))

    def _load_failed(self, fault: Fault) -> None:
        self.load_error_count += 1
        _log.error("%s: %s", fault.message, fault.error)
        self._on_fault(fault)
