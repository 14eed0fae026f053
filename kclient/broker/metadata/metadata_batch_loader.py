"""Replay of batches of the metadata log, with the transactions in them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.raft_types import CommittedBatch
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)


class Manifest(NamedTuple):
    """Origin of an image (Kafka: LoaderManifest).

    Attributes:
        is_snapshot: Whether it was loaded from a snapshot, or is the first that a publisher sees.
        size_in_bytes: Size of the batches of the log since the previous image.
        is_batch_aligned: Whether it ends with a batch, so that a snapshot can be made of it.
    """

    is_snapshot: bool
    size_in_bytes: int = 0
    is_batch_aligned: bool = True


class Fault(NamedTuple):
    """Error of a record or of a publisher.

    Attributes:
        message: What failed, with the offset.
        error: The error.
        is_fatal: Whether the node has to stop: otherwise only one with the controller role must.
    """

    message: str
    error: Exception
    is_fatal: bool = False


class TransactionStateError(KafkaError):
    """A transaction of the metadata log begins in another one, or ends without one."""


Update = Callable[[MetadataDelta, MetadataImage, Manifest], None]


class MetadataBatchLoader:
    """Makes images of batches (Kafka: MetadataBatchLoader).

    Args:
        on_update: Receives each image: at the end of the batches and before a transaction, never
            within one.
        on_fault: Receives errors of records, which are skipped unless it raises.

    Attributes:
        image: Image of the last update.
        has_seen_record: Whether any record was replayed, or a snapshot was loaded.
        is_in_transaction: Whether a transaction has begun and not ended.
    """

    def __init__(self, on_update: Update, on_fault: Callable[[Fault], None]) -> None:
        self._on_update = on_update
        self._on_fault = on_fault
        self.image = MetadataImage()
        self.has_seen_record = False
        self.is_in_transaction = False
        self._delta = MetadataDelta(self.image)
        self._offset = self._epoch = self._timestamp_ms = -1
        self._size_in_bytes = 0

    def reset(self, image: MetadataImage) -> None:
        """Continue with the image of a snapshot."""
        self.has_seen_record = True
        self.is_in_transaction = False
        self._offset, self._epoch = image.offset, image.epoch
        self._timestamp_ms = image.timestamp_ms
        self._size_in_bytes = 0
        self._begin(image)

    def load(self, batches: Sequence[CommittedBatch]) -> None:
        """Replay batches, and report the image after them unless a transaction is open."""
        for batch in batches:
            for index, value in enumerate(batch.records):
                offset = batch.base_offset + index
                try:
                    self._replay(MetadataRecord.decode_framed(value), is_first=not index)
                except KafkaError as error:
                    is_fatal = isinstance(error, TransactionStateError)
                    message = f"metadata log: the record at offset {offset} could not be loaded"
                    self._on_fault(Fault(message, error, is_fatal))
                self._offset, self._epoch = offset, batch.epoch
                self._timestamp_ms = batch.timestamp_ms
            self._offset, self._epoch = batch.last_offset, batch.epoch
            self._timestamp_ms = batch.timestamp_ms
            self._size_in_bytes += batch.size_in_bytes
        if batches and not self.is_in_transaction:
            self._update(is_batch_aligned=True)

    def _replay(self, record: MetadataRecord, *, is_first: bool) -> None:
        if isinstance(record, BeginTransactionRecord):
            self._check(is_open=False, record=record)
            if self._offset > self.image.offset:
                self._update(is_batch_aligned=is_first)
            self.is_in_transaction = True
        elif isinstance(record, EndTransactionRecord):
            self._check(is_open=True, record=record)
            self.is_in_transaction = False
        elif isinstance(record, AbortTransactionRecord):
            self._check(is_open=True, record=record)
            self.is_in_transaction = False
            self._begin(self.image)
        else:
            self.has_seen_record = True
            self._delta.replay(record)

    def _check(self, *, is_open: bool, record: MetadataRecord) -> None:
        if self.is_in_transaction is not is_open:
            state = "a" if self.is_in_transaction else "no"
            raise TransactionStateError(f"{type(record).__name__}: {state} transaction is open")

    def _update(self, *, is_batch_aligned: bool) -> None:
        delta = self._delta
        image = delta.apply(self._offset, self._epoch, self._timestamp_ms)
        manifest = Manifest(
            is_snapshot=False,
            size_in_bytes=self._size_in_bytes,
            is_batch_aligned=is_batch_aligned,
        )
        self._size_in_bytes = 0
        self._begin(image)
        self._on_update(delta, image, manifest)

    def _begin(self, image: MetadataImage) -> None:
        self.image = image
        self._delta = MetadataDelta(image)
