"""Batches of the metadata log, and publishers that record what they receive."""

from kclient.broker.metadata.metadata_batch_loader import Manifest
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.broker.raft.raft_types import CommittedBatch, LeaderAndEpoch
from kclient.protocol.messages.metadata_records import MetadataRecord

_NEWEST = MetadataVersion.IBP_4_3_IV0


def batch_of(offset: int, *records: MetadataRecord, epoch: int = 1) -> CommittedBatch:
    """Return a batch with a size of 100 bytes, written at time 1000 + offset."""
    values = tuple(map(_NEWEST.encode, records))
    return CommittedBatch(offset, offset + len(values) - 1, epoch, 1000 + offset, 100, values)


def control_batch(offset: int, epoch: int = 1) -> CommittedBatch:
    """Return a batch of one control record."""
    return CommittedBatch(offset, offset, epoch, 1000 + offset, 70, ())


class RecordingPublisher:
    """Publisher that keeps what it received, and can fail."""

    def __init__(self, name: str = "recorder") -> None:
        self.name = name
        self.updates: list[tuple[MetadataDelta, MetadataImage, Manifest]] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.error: Exception | None = None

    @property
    def images(self) -> list[MetadataImage]:
        return [image for _, image, _ in self.updates]

    @property
    def offsets(self) -> list[int]:
        return [image.offset for image in self.images]

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        self.updates.append((delta, image, manifest))
        if self.error is not None:
            raise self.error

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)
