"""Records of transactions in ``__transaction_state``."""

from kclient.common.files import WireBytes
from kclient.protocol.fields import Struct, array, int8, int16, int32, int64, string
from kclient.protocol.message import INT16, CoordinatorKey, VersionedRecord, read_version


class TransactionLogKey(CoordinatorKey, record_type=0):
    """Key of a transactional id."""

    transactional_id: str = string("0")


def decode_transaction_key(buffer: WireBytes) -> TransactionLogKey | None:
    """Decode a key; return None for an unknown kind of record.

    Raises:
        ProtocolError: The bytes are no key.
    """
    if read_version(buffer, "key in __transaction_state") != TransactionLogKey.record_type:
        return None
    return TransactionLogKey.decode(memoryview(buffer)[INT16.size :], 0)


class PartitionsSchema(Struct):
    """The partitions of a topic."""

    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(VersionedRecord, versions="0-1", flexible="1+"):
    """Transaction of a transactional id; timestamps are milliseconds since the epoch."""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", tag=0, default=-1)
    next_producer_id: int = int64("1+", tag=1, default=-1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", tag=3, default=-1)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2, default=0)
