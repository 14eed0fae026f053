"""Admin calls for transactions and their coordinators (KIP-664)."""

from collections.abc import Iterable, Sequence

from kclient.admin.arguments import check_int, check_partition
from kclient.admin.cluster_arguments import check_text
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.coordinator_requests import ask_coordinators, read_each
from kclient.admin.leader_requests import partition_leaders
from kclient.admin.requester import Requester, raise_error, raise_item_error
from kclient.admin.results import Outcomes, Results, one_by_one, raising_if_single
from kclient.admin.transaction_arguments import (
    MAX_LONG,
    check_producer_ids,
    check_transaction_states,
    check_transactional_ids,
)
from kclient.admin.transaction_types import (
    FencedProducer,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.client.client_request import SimpleBuilder
from kclient.client.find_coordinator import CoordinatorType
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_WHAT = "transactional id"
_DURATION_FILTER = 1
_PATTERN = 2
_LONGEST_TRANSACTION_MS = 60_000  # default of transaction.timeout.ms
_MAX_SHORT = 2**15 - 1


def describe_transactions(
    requester: Requester, transactional_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, TransactionDescription]]:
    """Describe the transactions of transactional ids (DescribeTransactions, KIP-664).

    Returns:
        Description or error by transactional id.

    Raises:
        TransactionalIdNotFoundError: The coordinator does not know an id; the error of this id.
    """
    wanted = check_transactional_ids(transactional_ids)
    requester.limit(timeout)
    return raising_if_single(_described(requester, wanted), transactional_ids, str)


def _described(
    requester: Requester, transactional_ids: Sequence[str]
) -> Steps[Results[str, TransactionDescription]]:
    def ask(node: Node, served: list[str]) -> Steps[Outcomes[str, TransactionDescription]]:
        request = DescribeTransactionsRequest(transactional_ids=served)
        response = yield from requester.send_once(
            node, SimpleBuilder(request), DescribeTransactionsResponse
        )
        states = {state.transactional_id: state for state in response.transaction_states}
        return read_each(_WHAT, served, states, lambda state: _description(node, state))

    outcomes = yield from ask_coordinators(
        requester, transactional_ids, ask, CoordinatorType.TRANSACTION
    )
    return Results("describe_transactions", outcomes, transactional_ids)


def _description(node: Node, state: DescribeTransactionsTransactionState) -> TransactionDescription:
    raise_item_error(f"{_WHAT} {state.transactional_id!r}", state.error_code, None)
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


def fence_producers(
    requester: Requester, transactional_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, FencedProducer]]:
    """Fence the producers of transactional ids (InitProducerId, KIP-618).

    Their open transactions are aborted. The call waits until that is done. A transactional id that
    does not exist is created.

    Returns:
        Producer id and new epoch, or error, by transactional id.

    Raises:
        TransactionalIdAuthorizationError: Not authorized to write with an id; the error of this id.
    """
    wanted = check_transactional_ids(transactional_ids)
    requester.limit(timeout)
    return raising_if_single(_fence_all(requester, wanted), transactional_ids, str)


def _fence_all(
    requester: Requester, transactional_ids: Sequence[str]
) -> Steps[Results[str, FencedProducer]]:
    def ask(node: Node, served: list[str]) -> Steps[Outcomes[str, FencedProducer]]:
        return one_by_one(served, lambda each: _fence(requester, node, each))

    outcomes = yield from ask_coordinators(
        requester, transactional_ids, ask, CoordinatorType.TRANSACTION
    )
    return Results("fence_producers", outcomes, transactional_ids)


def _fence(requester: Requester, node: Node, transactional_id: str) -> Steps[FencedProducer]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        # Replaced by that of the next producer; brokers refuse one over their maximum.
        transaction_timeout_ms=min(requester.remaining_ms(), _LONGEST_TRANSACTION_MS),
    )
    response = yield from requester.send_once(node, SimpleBuilder(request), InitProducerIdResponse)
    # While the open transaction is aborted, the response is CONCURRENT_TRANSACTIONS.
    raise_item_error(f"{_WHAT} {transactional_id!r}", response.error_code, None)
    return FencedProducer(response.producer_id, response.producer_epoch)


def force_terminate_transaction(
    requester: Requester, transactional_id: str, *, timeout: float | None = None
) -> Steps[None]:
    """Abort the open transaction of a transactional id and fence its producers (KIP-939).

    The call waits until the coordinator has aborted the transaction.

    Raises:
        TransactionalIdNotFoundError: The coordinator does not know the id.
        TransactionalIdAuthorizationError: Not authorized to write with the id.
    """
    check_text("transactional_id", transactional_id)
    requester.limit(timeout)
    return _terminate(requester, transactional_id)


def _terminate(requester: Requester, transactional_id: str) -> Steps[None]:
    described = yield from _described(requester, [transactional_id])
    described.raise_for_errors()  # otherwise a wrong id would be created
    fenced = yield from _fence_all(requester, [transactional_id])
    fenced.raise_for_errors()


def abort_transaction(
    requester: Requester,
    partition: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int | None,
    *,
    timeout: float | None = None,
) -> Steps[None]:
    """Abort a hanging transaction in a partition (WriteTxnMarkers, KIP-664).

    The leader writes a marker, of which the coordinator of the transaction is not informed. Use it
    for transactions of `find_hanging_transactions` only, and `force_terminate_transaction` for
    those that a coordinator knows.

    Args:
        partition: Partition with the open transaction.
        producer_id: Producer id, as that of `describe_producers`.
        producer_epoch: Its epoch, as that of `describe_producers`.
        coordinator_epoch: Coordinator epoch, as that of `describe_producers`; None if no
            transaction of the producer has ended in the partition.
        timeout: Timeout in seconds.

    Raises:
        InvalidProducerEpochError: A newer epoch of the producer has written to the partition.
        TransactionCoordinatorFencedError: A newer coordinator has written a marker.
        ClusterAuthorizationError: Not authorized to alter the cluster.
    """
    check_partition(partition)
    target = TopicPartition(*partition)
    check_int("producer_id", producer_id, 0, high=MAX_LONG)
    check_int("producer_epoch", producer_epoch, 0, high=_MAX_SHORT)
    if coordinator_epoch is not None:
        check_int("coordinator_epoch", coordinator_epoch, 0)
    requester.limit(timeout)
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=target.topic, partition_indexes=[target.partition])],
        coordinator_epoch=coordinator_epoch or 0,
    )
    return requester.retried(lambda: _write_marker(requester, target, marker))


def _write_marker(
    requester: Requester, partition: TopicPartition, marker: WritableTxnMarker
) -> Steps[None]:
    leader = (yield from partition_leaders(requester, [partition]))[partition]
    if isinstance(leader, KafkaError):
        raise leader
    response = yield from requester.send_once(
        leader,
        SimpleBuilder(WriteTxnMarkersRequest(markers=[marker])),
        WriteTxnMarkersResponse,
    )
    codes = [
        part.error_code
        for result in response.markers
        for topic in result.topics
        for part in topic.partitions
        if (topic.name, part.partition_index) == partition
    ]
    what = f"producer {marker.producer_id} in partition {partition}"
    if not codes:
        raise ProtocolError(f"{what}: it is missing in the response of {leader}")
    raise_item_error(what, codes[0], None)
