"""Descriptions of transactions by their coordinators (KIP-664).

- DescribeTransactions, version 0: state, partitions and start of transactions.
- ListTransactions, versions 0-1: the transactional ids that this broker coordinates.

Differences from Apache Kafka: version 2 of ListTransactions, with a regular expression, is not
served: Python has no engine whose time is bounded by the length of the text.
"""

from itertools import groupby

from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import NONE, TransactionalIdAuthorizationError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsTransactionState,
    TopicData,
)

_WITHOUT_PATTERN = 1


def _describe(
    services: BrokerServices, request: Request, body: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe each transactional id as often as it is named."""
    return DescribeTransactionsResponse(
        transaction_states=[_described(services, request, name) for name in body.transactional_ids]
    )


def _described(
    services: BrokerServices, request: Request, transactional_id: str
) -> DescribeTransactionsTransactionState:
    if not _may_describe(services, request, transactional_id, is_logged=True):
        return DescribeTransactionsTransactionState(
            transactional_id=transactional_id,
            error_code=code_of(TransactionalIdAuthorizationError),
        )
    try:
        found = services.transactions.describe(transactional_id)
    except KafkaError as error:
        return DescribeTransactionsTransactionState(
            transactional_id=transactional_id, error_code=code_of(error)
        )
    return DescribeTransactionsTransactionState(
        error_code=NONE,
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=_topics(services, request, found),
    )


def _topics(
    services: BrokerServices, request: Request, found: TransactionMetadata
) -> list[TopicData]:
    """Return the partitions of a transaction in topics that the client may describe."""
    shown = set(services.auth.shown_topics(request, {each.topic for each in found.partitions}))
    return [
        TopicData(topic=topic, partitions=[each.partition for each in partitions])
        for topic, partitions in groupby(sorted(found.partitions), lambda each: each.topic)
        if topic in shown
    ]


def _list(
    services: BrokerServices, request: Request, body: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Return the transactions that match all filters, of those that the client may describe."""
    known = {state.label for state in TransactionState}
    states, producer_ids = set(body.state_filters), set(body.producer_id_filters)
    now_ms = services.clock.wall_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in body.state_filters if name not in known],
        transaction_states=[
            ListTransactionsTransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in services.transactions.list_transactions()
            if not states or each.state.label in states
            if not producer_ids or each.producer_id in producer_ids
            if body.duration_filter < 0 or now_ms - each.start_ms > body.duration_filter
            if _may_describe(services, request, each.transactional_id, is_logged=False)
        ],
    )


def _may_describe(
    services: BrokerServices, request: Request, transactional_id: str, *, is_logged: bool
) -> bool:
    return services.auth.authorize(
        request,
        AclOperation.DESCRIBE,
        ResourceType.TRANSACTIONAL_ID,
        transactional_id,
        is_logged=is_logged,
    )


def _failed(body: DescribeTransactionsRequest, code: int) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            DescribeTransactionsTransactionState(transactional_id=name, error_code=code)
            for name in body.transactional_ids
        ]
    )


APIS = (
    ServedApi(DescribeTransactionsRequest, _describe, _failed),
    ServedApi(ListTransactionsRequest, _list, max_version=_WITHOUT_PATTERN),
)
