"""Descriptions of transactions by their coordinators (KIP-664).

- DescribeTransactions (65): state, partitions and start of transactions, by transactional id.
- ListTransactions (66): the transactions of a coordinator, with filters by state, producer id,
  duration (KIP-994) and transactional id (KIP-1152).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class TopicData(Struct):
    """The partitions of a topic in a transaction."""

    topic: str = string(map_key=True)
    partitions: list[int] = array(int32)


class DescribeTransactionsTransactionState(Struct):
    """State of a transaction, or an error."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


class DescribeTransactionsResponse(Response, versions="0", flexible="0+"):
    """The states."""

    throttle_time_ms: int = int32()
    transaction_states: list[DescribeTransactionsTransactionState] = array(
        DescribeTransactionsTransactionState
    )


class DescribeTransactionsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_TRANSACTIONS,
    response=DescribeTransactionsResponse,
    versions="0",
    flexible="0+",
):
    """Asks the coordinator of transactional ids for their transactions."""

    transactional_ids: list[str] = array(string)


class ListTransactionsTransactionState(Struct):
    """State of a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Response, versions="0-2", flexible="0+"):
    """The transactions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListTransactionsTransactionState] = array(
        ListTransactionsTransactionState
    )


class ListTransactionsRequest(
    Request,
    api_key=ApiKey.LIST_TRANSACTIONS,
    response=ListTransactionsResponse,
    versions="0-2",
    flexible="0+",
):
    """Asks a broker for the transactions that it coordinates; an empty filter selects all."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)
