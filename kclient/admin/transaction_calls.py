"""Admin calls for transactions and their coordinators (KIP-664)."""

from collections.abc import Iterable

from kclient.admin.arguments import check_int
from kclient.admin.cluster_arguments import check_text
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.requester import Requester, raise_error, raise_failures, raise_item_error
from kclient.admin.transaction_arguments import (
    MAX_LONG,
    check_producer_ids,
    check_transaction_states,
    check_transactional_ids,
)
from kclient.admin.transaction_types import (
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.client.client_request import SimpleBuilder
from kclient.client.find_coordinator import CoordinatorType
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

Descriptions = dict[str, TransactionDescription]

_DURATION_FILTER = 1
_PATTERN = 2


def describe_transactions(
    requester: Requester, transactional_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[dict[str, TransactionDescription]]:
    """Describe the transactions of transactional ids (DescribeTransactions, KIP-664).

    Raises:
        TransactionalIdNotFoundError: A coordinator does not know an id.
    """
    wanted = check_transactional_ids(transactional_ids)
    requester.limit(timeout)
    return _described(requester, wanted)


def _described(requester: Requester, transactional_ids: Iterable[str]) -> Steps[Descriptions]:
    found, failures = yield from descriptions(requester, transactional_ids)
    raise_failures(failures)
    return found


def descriptions(
    requester: Requester, transactional_ids: Iterable[str]
) -> Steps[tuple[Descriptions, dict[str, KafkaError]]]:
    """Return descriptions and errors by transactional id."""
    found: Descriptions = {}
    failures: dict[str, KafkaError] = {}
    for transactional_id in transactional_ids:
        try:
            found[transactional_id] = yield from _describe(requester, transactional_id)
        except KafkaError as error:
            failures[transactional_id] = error
    return found, failures


def _describe(requester: Requester, transactional_id: str) -> Steps[TransactionDescription]:
    what = f"transactional id {transactional_id!r}"

    def read(node: Node, response: DescribeTransactionsResponse) -> TransactionDescription:
        for state in response.transaction_states:
            if state.transactional_id == transactional_id:
                raise_item_error(what, state.error_code, None)
                return _description(node, state)
        raise ProtocolError(f"{what}: it is missing in the response of {node}")

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return requester.send_to_coordinator(
        transactional_id,
        SimpleBuilder(request),
        DescribeTransactionsResponse,
        read,
        CoordinatorType.TRANSACTION,
    )


def _description(node: Node, state: DescribeTransactionsTransactionState) -> TransactionDescription:
    start_ms = state.transaction_start_time_ms
    return TransactionDescription(
        transactional_id=state.transactional_id,
        coordinator=node,
        state=TransactionState(state.transaction_state),
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        transaction_timeout_ms=state.transaction_timeout_ms,
        transaction_start_time_ms=start_ms if start_ms >= 0 else None,
        topic_partitions=frozenset(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


def list_transactions(
    requester: Requester,
    *,
    states: TransactionState | str | Iterable[TransactionState | str] | None = None,
    producer_ids: int | Iterable[int] | None = None,
    duration_ms: int | None = None,
    transactional_id_pattern: str | None = None,
    timeout: float | None = None,
) -> Steps[list[TransactionListing]]:
    """List the transactions of all coordinators (ListTransactions, KIP-664).

    Without a filter it lists every transactional id, also those without an open transaction.

    Args:
        states: List transactions in these states only, such as `TransactionState.ONGOING`.
        producer_ids: List transactions of these producer ids only.
        duration_ms: List transactions that have been open for longer only (KIP-994), in ms.
        transactional_id_pattern: List transactional ids that match this regular expression of RE2
            as a whole only (KIP-1152).
        timeout: Timeout in seconds.

    Raises:
        InvalidRegularExpressionError: The pattern is invalid.
        UnsupportedVersionError: A broker does not support a filter.
    """
    request = ListTransactionsRequest(
        state_filters=[] if states is None else check_transaction_states(states),
        producer_id_filters=[] if producer_ids is None else check_producer_ids(producer_ids),
    )
    oldest = 0
    if duration_ms is not None:
        check_int("duration_ms", duration_ms, 0, high=MAX_LONG)
        request.duration_filter, oldest = duration_ms, _DURATION_FILTER
    if transactional_id_pattern is not None:
        check_text("transactional_id_pattern", transactional_id_pattern)
        request.transactional_id_pattern, oldest = transactional_id_pattern, _PATTERN
    requester.limit(timeout)
    return listings(requester, SimpleBuilder(request, oldest=oldest))


def listings(requester: Requester, builder: SimpleBuilder) -> Steps[list[TransactionListing]]:
    """Return the transactions that each broker lists for a ListTransactions request."""

    def read(response: ListTransactionsResponse) -> list[TransactionListing]:
        raise_error(response.error_code)
        return [
            TransactionListing(
                state.transactional_id, state.producer_id, TransactionState(state.transaction_state)
            )
            for state in response.transaction_states
        ]

    # A coordinator may move between the responses of two brokers.
    found: dict[str, TransactionListing] = {}
    cluster = yield from describe_cluster(requester)
    for node in cluster.nodes:
        for each in (
            yield from requester.send_to_node(node, builder, ListTransactionsResponse, read)
        ):
            found[each.transactional_id] = each
    return list(found.values())
