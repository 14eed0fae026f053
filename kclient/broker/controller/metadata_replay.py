"""Committed records of the metadata log, applied to an image at the controller.

A metadata transaction takes effect at its end: until then the image is that before its start.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)

BOUNDARIES = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
"""Records of metadata transactions."""


class CommittedBatch(NamedTuple):
    """Committed batch of the metadata log.

    Attributes:
        last_offset: Offset of its last record.
        epoch: Leader epoch of the batch.
        timestamp_ms: Its time, in ms since 1970.
        records: Records; none in a control batch.
    """

    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[MetadataRecord]


class Published(NamedTuple):
    """Image with what changed since the one before."""

    changes: MetadataChanges
    image: MetadataImage


class MetadataReplay:
    """Committed image.

    Attributes:
        image: The image; records of an open transaction are not in it.
        offset: Offset of the last record passed, -1 for none.
        is_empty: Whether there has been no record yet, but for control records.
    """

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.offset = -1
        self.is_empty = True
        self._open: MetadataDelta | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has started and not ended."""
        return self._open is not None

    def load(self, image: MetadataImage) -> Published:
        """Replace the image by that of a snapshot."""
        changes = MetadataDelta.between(self.image, image)
        self.image, self.offset, self._open = image, image.offset, None
        self.is_empty = False
        return Published(changes, image)

    def accept(self, published: Published) -> None:
        """Replace the image by its successor, which the caller has computed."""
        self.image = published.image
        self.offset = max(self.offset, published.image.offset)
        self.is_empty = False

    def skip_to(self, offset: int) -> None:
        """Pass control records."""
        self.offset = max(self.offset, offset)

    def replay(self, batch: CommittedBatch) -> list[Published]:
        """Apply a batch; return the images that result, none within a transaction.

        Raises:
            KafkaError: A record contradicts the image, or a transaction starts within another or
                ends without a start.
        """
        published: list[Published] = []
        single: MetadataDelta | None = None
        for record in batch.records:
            self.is_empty = False
            if isinstance(record, BOUNDARIES):
                self._publish(single, batch, published)
                single = None
                self._pass_boundary(record, batch, published)
            elif self._open is not None:
                self._open.replay(record)
            else:
                single = single or MetadataDelta(self.image)
                single.replay(record)
        self._publish(single, batch, published)
        self.offset = max(self.offset, batch.last_offset)
        return published

    def _pass_boundary(
        self, record: MetadataRecord, batch: CommittedBatch, published: list[Published]
    ) -> None:
        starts = isinstance(record, BeginTransactionRecord)
        if starts == self.in_transaction:
            raise KafkaError(
                f"metadata log: got {type(record).__name__} "
                f"{'within' if starts else 'without'} a transaction"
            )
        if starts:
            self._open = MetadataDelta(self.image)
            return
        ended, self._open = self._open, None
        if isinstance(record, EndTransactionRecord):
            self._publish(ended, batch, published)

    def _publish(
        self, delta: MetadataDelta | None, batch: CommittedBatch, published: list[Published]
    ) -> None:
        if delta is not None:
            self.image = delta.apply(batch.last_offset, batch.epoch, batch.timestamp_ms)
            published.append(Published(delta, self.image))
