"""Formats in the log of a partition and its indexes: transaction markers, aborted transactions."""

from kclient.protocol.fields import int16, int32, int64
from kclient.protocol.message import VersionedRecord


class ControlRecordTypeSchema(VersionedRecord, versions="0"):
    """Key of a control record: 0 aborts, 1 commits a transaction; others in the metadata log."""

    type: int = int16()


class EndTxnMarker(VersionedRecord, versions="0"):
    """Value of the control record that ends a transaction."""

    coordinator_epoch: int = int32()


class AbortedTxn(VersionedRecord, versions="0"):
    """An entry of a segment's ``.txnindex``."""

    producer_id: int = int64()
    first_offset: int = int64()
    last_offset: int = int64()
    last_stable_offset: int = int64()
