"""Division of a decision into batches of the metadata log.

A decision is atomic: it is one batch or, if it is too large, a metadata transaction of several.
"""

from collections.abc import Iterator, Sequence

from kclient.broker.controller.cluster_view import ControllerResult, ResponseT
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.common.broker_errors import PolicyViolationError
from kclient.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)

MAX_RECORDS = 10_000
"""Records of a batch (Kafka: MAX_RECORDS_PER_BATCH)."""
MAX_BYTES = 4 * 1024 * 1024
"""Estimated bytes of a batch, half of the largest that followers accept."""

_RECORD_BYTES = 120
_REPLICA_BYTES = 24


def estimated_bytes(record: MetadataRecord) -> int:
    """Return about the size of a record in its batch."""
    if isinstance(record, ConfigRecord):
        return _RECORD_BYTES + len(record.name) + len(record.value or "")
    if isinstance(record, PartitionRecord):
        return _RECORD_BYTES + _REPLICA_BYTES * len(record.replicas)
    if isinstance(record, PartitionChangeRecord):
        return _RECORD_BYTES + _REPLICA_BYTES * len(record.replicas or ())
    return _RECORD_BYTES


def batches_of(
    result: ControllerResult[ResponseT], level: MetadataVersion, max_records: int = MAX_RECORDS
) -> list[list[MetadataRecord]]:
    """Return the batches of a decision.

    Raises:
        PolicyViolationError: A decision that must be atomic is too large for one batch, and
            metadata.version has no transactions yet.
    """
    batches = list(_split(result.records, max_records))
    has_transaction = any(isinstance(each, BeginTransactionRecord) for each in result.records[:2])
    if len(batches) <= 1 or not result.is_atomic or has_transaction:
        return batches
    if not level.has_transactions:
        raise PolicyViolationError(
            f"Attempted to atomically commit {len(result.records)} records, but at most "
            f"{max_records} records or {MAX_BYTES} bytes can be committed at once"
        )
    begin: MetadataRecord = BeginTransactionRecord()
    end: MetadataRecord = EndTransactionRecord()
    return [[begin], *batches, [end]]


def _split(records: Sequence[MetadataRecord], max_records: int) -> Iterator[list[MetadataRecord]]:
    batch: list[MetadataRecord] = []
    size = 0
    for record in records:
        added = estimated_bytes(record)
        if batch and (len(batch) == max_records or size + added > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += added
    if batch:
        yield batch
