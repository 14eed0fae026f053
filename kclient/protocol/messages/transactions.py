"""Transactions (KIP-98, KIP-890).

- AddPartitionsToTxn (24): adds partitions to a transaction. Up to version 3 a producer sends it for
  its own transaction; from version 4 on a broker adds or verifies partitions of many.
- AddOffsetsToTxn (25): adds the partition with the offsets of a group to a transaction.
- EndTxn (26): commits or aborts a transaction. From version 5 on each end raises the epoch.
- WriteTxnMarkers (27): writes the markers that end a transaction, from its coordinator to leaders.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class AddPartitionsToTxnPartitionResult(Struct):
    """The outcome for a partition."""

    partition_index: int = int32(map_key=True)
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Struct):
    """The partitions of a topic."""

    name: str = string(map_key=True)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResult(Struct):
    """The outcome for a transaction."""

    transactional_id: str = string("4+", map_key=True)
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


class AddPartitionsToTxnResponse(Response, versions="0-5", flexible="3+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )


class AddPartitionsToTxnTopic(Struct):
    """The partitions of a topic."""

    name: str = string(map_key=True)
    partitions: list[int] = array(int32)


class AddPartitionsToTxnTransaction(Struct):
    """Partitions of one transaction (between brokers)."""

    transactional_id: str = string("4+", map_key=True)
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


class AddPartitionsToTxnRequest(
    Request,
    api_key=ApiKey.ADD_PARTITIONS_TO_TXN,
    response=AddPartitionsToTxnResponse,
    versions="0-5",
    flexible="3+",
):
    """Adds partitions to transactions, or verifies that they are part of them."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


class AddOffsetsToTxnResponse(Response, versions="0-4", flexible="3+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()


class AddOffsetsToTxnRequest(
    Request,
    api_key=ApiKey.ADD_OFFSETS_TO_TXN,
    response=AddOffsetsToTxnResponse,
    versions="0-4",
    flexible="3+",
):
    """Adds the partition of ``__consumer_offsets`` with a group's offsets to a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class EndTxnResponse(Response, versions="0-5", flexible="3+"):
    """The outcome; id and epoch are those of the next transaction (KIP-890), -1 to keep them."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)


class EndTxnRequest(
    Request, api_key=ApiKey.END_TXN, response=EndTxnResponse, versions="0-5", flexible="3+"
):
    """Commits or aborts a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class WritableTxnMarkerPartitionResult(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    """The partitions of a topic."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    """The outcome for a producer."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Response, versions="1-2", flexible="1+"):
    """The outcome for each marker."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)


class WritableTxnMarkerTopic(Struct):
    """The partitions of a topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Struct):
    """Marker of a producer, for several partitions; a true result commits."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


class WriteTxnMarkersRequest(
    Request,
    api_key=ApiKey.WRITE_TXN_MARKERS,
    response=WriteTxnMarkersResponse,
    versions="1-2",
    flexible="1+",
):
    """Ends transactions in the logs of partitions."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)
