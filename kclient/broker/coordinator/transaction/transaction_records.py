"""Records of ``__transaction_state``, in Kafka's format.

Values have version 0 while transaction.version is 0, else version 1 with tagged fields (KIP-890).
"""

from itertools import groupby

from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.errors import ProtocolError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_transaction_key,
)


def transaction_record(
    metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """Return the record of a transaction, a tombstone if the id has expired."""
    key = TransactionLogKey(transactional_id=metadata.transactional_id)
    if metadata.state is TransactionState.DEAD:
        return CoordinatorRecord(key)
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=_partitions(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if not transaction_version:
        return CoordinatorRecord(key, value, value_version=0)
    value.previous_producer_id = metadata.previous_producer_id
    value.next_producer_id = metadata.next_producer_id
    value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(key, value, value_version=1)


def _partitions(metadata: TransactionMetadata) -> list[PartitionsSchema] | None:
    if metadata.state is TransactionState.EMPTY:
        return None
    return [
        PartitionsSchema(topic=topic, partition_ids=[each.partition for each in partitions])
        for topic, partitions in groupby(sorted(metadata.partitions), lambda each: each.topic)
    ]


def decode_record(
    raw_key: bytes, raw_value: bytes | None
) -> tuple[str, TransactionMetadata | None] | None:
    """Return a transactional id with its transaction, None for a tombstone.

    Returns:
        None for a kind of record that is not known.

    Raises:
        ProtocolError: The bytes are malformed, or name a state that is not stored.
    """
    key = decode_transaction_key(raw_key)
    if key is None:
        return None
    if raw_value is None:
        return key.transactional_id, None
    value = TransactionLogValue.decode_versioned(raw_value)
    return key.transactional_id, _restored(key.transactional_id, value)


_STORED = {state.value: state for state in TransactionState if state < TransactionState.DEAD}


def _restored(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    state = _STORED.get(value.transaction_status)
    if state is None:
        raise ProtocolError(
            f"state of transactional id {transactional_id!r}: got {value.transaction_status},"
            f" expected 0 to {max(_STORED)}"
        )
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            TopicPartition(each.topic, number)
            for each in value.transaction_partitions or ()
            for number in each.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
