"""Admin calls for transactions: brokers that are asked, versions, and errors by id."""

import pytest

from kclient.admin import transaction_calls
from kclient.admin.transaction_types import (
    FencedProducer,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidRegularExpressionError,
    TransactionalIdAuthorizationError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)
from kclient.common.errors import KafkaTimeoutError
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
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
    ListTransactionsTransactionState,
    TopicData,
)
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
ONGOING = DescribeTransactionsTransactionState(
    transactional_id="orders",
    transaction_state="Ongoing",
    transaction_timeout_ms=60_000,
    transaction_start_time_ms=1_700_000_000_000,
    producer_id=7,
    producer_epoch=3,
    topics=[TopicData(topic="t", partitions=[0, 1])],
)


def describing(world: AdminWorld, *states: DescribeTransactionsTransactionState) -> None:
    """Describe these transactions at the last broker, and no others."""
    known = {state.transactional_id: state for state in states}

    def described(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DescribeTransactionsRequest)
        return DescribeTransactionsResponse(
            transaction_states=[
                known.get(name)
                or DescribeTransactionsTransactionState(transactional_id=name, error_code=105)
                for name in request.transactional_ids
            ]
        )

    world.respond(ApiKey.DESCRIBE_TRANSACTIONS, described, high=0)


def test_coordinator_describes_a_transaction() -> None:
    world = AdminWorld(2)
    world.coordinate("orders", 2)
    describing(world, ONGOING)
    found = world.run(transaction_calls.describe_transactions, "orders")
    assert found == {
        "orders": TransactionDescription(
            transactional_id="orders",
            coordinator=world.brokers[1].node,
            state=TransactionState.ONGOING,
            producer_id=7,
            producer_epoch=3,
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=1_700_000_000_000,
            topic_partitions=frozenset({FIRST, SECOND}),
        )
    }
    asked = [
        each
        for broker in world.brokers
        for each in broker.requests
        if isinstance(each, FindCoordinatorRequest)
    ]
    assert [each.key_type for each in asked] == [1]


def test_transaction_without_start_has_none() -> None:
    world = AdminWorld()
    world.coordinate("idle", 1)
    describing(
        world,
        DescribeTransactionsTransactionState(
            transactional_id="idle", transaction_state="Empty", transaction_start_time_ms=-1
        ),
    )
    found = world.run(transaction_calls.describe_transactions, ["idle"])["idle"]
    assert (found.state, found.transaction_start_time_ms) == (TransactionState.EMPTY, None)


def test_error_names_each_transactional_id() -> None:
    world = AdminWorld()
    for name in ("no", "orders", "nor"):
        world.coordinate(name, 1)
    describing(world, ONGOING)
    with pytest.raises(TransactionalIdNotFoundError, match="transactional id 'no'") as caught:
        world.run(
            transaction_calls.describe_transactions, ["no", "orders", "nor"]
        ).raise_for_errors()
    (note,) = caught.value.__notes__
    assert note.startswith("also failed: transactional id 'nor'")


def test_description_is_retried_at_the_new_coordinator() -> None:
    world = AdminWorld(2)
    world.coordinate("orders", 1)

    def moved(broker: ScriptedBroker, _: Request) -> Response:
        if broker.node.id == 2:
            return DescribeTransactionsResponse(transaction_states=[ONGOING])
        world.coordinate("orders", 2)
        lost = DescribeTransactionsTransactionState(transactional_id="orders", error_code=16)
        return DescribeTransactionsResponse(transaction_states=[lost])

    world.respond(ApiKey.DESCRIBE_TRANSACTIONS, moved, high=0)
    found = world.run(transaction_calls.describe_transactions, "orders")
    assert found["orders"].coordinator == world.brokers[1].node


def test_id_whose_coordinator_is_denied_is_named() -> None:
    world = AdminWorld()
    denied = Coordinator(key="orders", error_code=53, error_message="")
    world.respond(
        ApiKey.FIND_COORDINATOR, lambda *_: FindCoordinatorResponse(coordinators=[denied]), high=6
    )
    with pytest.raises(TransactionalIdAuthorizationError, match="transactional id 'orders': "):
        world.run(transaction_calls.describe_transactions, "orders").raise_for_errors()


def test_unknown_name_of_a_state_is_tolerated() -> None:
    assert TransactionState("PrepareEpochFence") is TransactionState.PREPARE_EPOCH_FENCE
    assert TransactionState("Prepared") is TransactionState.UNKNOWN


def listed(broker: ScriptedBroker, _: Request) -> Response:
    """List one transaction, which has the name of the broker."""
    state = ListTransactionsTransactionState(
        transactional_id=f"id-{broker.node.id}",
        producer_id=broker.node.id,
        transaction_state="Ongoing",
    )
    return ListTransactionsResponse(transaction_states=[state])


def test_every_broker_lists_its_transactions() -> None:
    world = AdminWorld(2)
    world.respond(ApiKey.LIST_TRANSACTIONS, listed, high=2)
    found = world.run(transaction_calls.list_transactions)
    assert sorted(found) == [
        TransactionListing("id-1", 1, TransactionState.ONGOING),
        TransactionListing("id-2", 2, TransactionState.ONGOING),
    ]


def test_brokers_filter_the_transactions() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_TRANSACTIONS, listed, high=2)
    world.run(
        transaction_calls.list_transactions,
        states=[TransactionState.ONGOING, "PrepareAbort"],
        producer_ids=7,
        duration_ms=60_000,
        transactional_id_pattern="orders-.*",
    )
    assert world.requests(ListTransactionsRequest) == [
        ListTransactionsRequest(
            state_filters=["Ongoing", "PrepareAbort"],
            producer_id_filters=[7],
            duration_filter=60_000,
            transactional_id_pattern="orders-.*",
        )
    ]


@pytest.mark.parametrize(
    ("filters", "high"), [({"duration_ms": 1}, 0), ({"transactional_id_pattern": "a"}, 1)]
)
def test_filters_need_newer_versions(filters: dict[str, object], high: int) -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_TRANSACTIONS, listed, high=high)
    with pytest.raises(UnsupportedVersionError):
        world.run(transaction_calls.list_transactions, **filters)  # type: ignore[arg-type]  # of the parameters
    assert world.requests(ListTransactionsRequest) == []


def test_listing_waits_for_a_coordinator_that_loads() -> None:
    world = AdminWorld()
    codes = [14, 0]

    def loading(broker: ScriptedBroker, request: Request) -> Response:
        code = codes.pop(0)
        return ListTransactionsResponse(error_code=code) if code else listed(broker, request)

    world.respond(ApiKey.LIST_TRANSACTIONS, loading, high=2)
    assert len(world.run(transaction_calls.list_transactions)) == 1


def test_invalid_pattern_is_not_retried() -> None:
    world = AdminWorld()
    world.respond(
        ApiKey.LIST_TRANSACTIONS, lambda *_: ListTransactionsResponse(error_code=128), high=2
    )
    with pytest.raises(InvalidRegularExpressionError):
        world.run(transaction_calls.list_transactions, transactional_id_pattern="(")
    assert len(world.requests(ListTransactionsRequest)) == 1


def initializing(world: AdminWorld, *codes: int) -> None:
    """Return these codes for one InitProducerId after the other, then a new epoch."""
    left = list(codes)

    def initialized(_: ScriptedBroker, __: Request) -> Response:
        code = left.pop(0) if left else 0
        return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=4)

    world.respond(ApiKey.INIT_PRODUCER_ID, initialized, high=6)


def test_fencing_requests_a_new_epoch_until_the_transaction_has_ended() -> None:
    world = AdminWorld(2)
    world.coordinate("orders", 2)
    initializing(world, 51, 51)
    assert world.run(transaction_calls.fence_producers, "orders") == {
        "orders": FencedProducer(producer_id=7, producer_epoch=4)
    }
    *_, request = world.requests(InitProducerIdRequest, 2)
    assert isinstance(request, InitProducerIdRequest)
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == (
        "orders",
        -1,
        -1,
    )
    assert world.versions(ApiKey.INIT_PRODUCER_ID, 2) == [5, 5, 5]  # 6 is not stable


@pytest.mark.parametrize(("timeout", "expected_ms"), [(5.0, 5_000), (600.0, 60_000)])
def test_transaction_timeout_of_a_fenced_id_is_bounded(timeout: float, expected_ms: int) -> None:
    world = AdminWorld()
    world.coordinate("orders", 1)
    initializing(world)
    world.run(transaction_calls.fence_producers, "orders", timeout=timeout)
    (request,) = world.requests(InitProducerIdRequest)
    assert isinstance(request, InitProducerIdRequest)
    assert 0 < request.transaction_timeout_ms <= expected_ms


def test_ids_after_one_that_is_not_fenced_are_fenced() -> None:
    world = AdminWorld()
    world.coordinate("denied", 1)
    world.coordinate("orders", 1)
    initializing(world, 53)
    with pytest.raises(TransactionalIdAuthorizationError, match="transactional id 'denied'"):
        world.run(transaction_calls.fence_producers, ["denied", "orders"]).raise_for_errors()
    assert len(world.requests(InitProducerIdRequest)) == 2


def test_forced_termination_waits_for_the_end_of_the_transaction() -> None:
    world = AdminWorld()
    world.coordinate("orders", 1)
    describing(world, ONGOING)
    initializing(world, 51)
    world.run(transaction_calls.force_terminate_transaction, "orders")
    assert len(world.requests(InitProducerIdRequest)) == 2


def test_forced_termination_fails_at_its_deadline() -> None:
    world = AdminWorld()
    world.coordinate("orders", 1)
    describing(world, ONGOING)
    initializing(world, *[51] * 1000)
    with pytest.raises(KafkaTimeoutError, match="CONCURRENT_TRANSACTIONS"):
        world.run(transaction_calls.force_terminate_transaction, "orders", timeout=1.0)


def test_forced_termination_does_not_create_an_unknown_id() -> None:
    world = AdminWorld()
    world.coordinate("order", 1)
    describing(world, ONGOING)
    initializing(world)
    with pytest.raises(TransactionalIdNotFoundError, match="transactional id 'order'"):
        world.run(transaction_calls.force_terminate_transaction, "order")
    assert world.requests(InitProducerIdRequest) == []


def marking(world: AdminWorld, *codes: int) -> None:
    """Return these codes for one marker after the other, and move the partition after each."""
    left = list(codes)
    for broker in world.brokers:
        broker.topics = {"t": [1, 1]}

    def marked(broker: ScriptedBroker, _: Request) -> Response:
        for each in world.brokers:
            each.topics = {"t": [2, 2]}
        part = WritableTxnMarkerPartitionResult(partition_index=1, error_code=left.pop(0))
        topic = WritableTxnMarkerTopicResult(name="t", partitions=[part])
        return WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=7, topics=[topic])]
        )

    world.respond(ApiKey.WRITE_TXN_MARKERS, marked, low=1, high=2)


@pytest.mark.parametrize(("given", "sent"), [(5, 5), (None, 0)])
def test_abort_writes_a_marker_at_the_leader(given: int | None, sent: int) -> None:
    world = AdminWorld(2)
    marking(world, 0)
    world.run(transaction_calls.abort_transaction, SECOND, 7, 3, given)
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[1])
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=3, topics=[topic], coordinator_epoch=sent
    )
    assert world.requests(WriteTxnMarkersRequest) == [WriteTxnMarkersRequest(markers=[marker])]


def test_abort_is_repeated_at_the_new_leader() -> None:
    world = AdminWorld(2)
    marking(world, 6, 0)
    world.run(transaction_calls.abort_transaction, SECOND, 7, 3, 5)
    assert len(world.requests(WriteTxnMarkersRequest, 2)) == 1


def test_abort_of_a_former_epoch_is_refused() -> None:
    world = AdminWorld(2)
    marking(world, 47)
    with pytest.raises(InvalidProducerEpochError, match="producer 7 in partition t-1"):
        world.run(transaction_calls.abort_transaction, SECOND, 7, 3, 5)
    assert len(world.requests(WriteTxnMarkersRequest)) == 1
