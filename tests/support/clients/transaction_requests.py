"""Requests of transactional producers to their coordinator, over a bare connection."""

from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire


def prepare_coordinator(wire: Wire) -> None:
    """Create ``__transaction_state``, and wait until its coordinators are available."""
    wait_until(lambda: find(wire) == 0, "the coordinator to be available")
    wait_until(lambda: init(wire, "first").error_code == 0, "its partition to be loaded")


def find(wire: Wire) -> int:
    """Return the error code of the look-up of a coordinator."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    response = wire.ask(request, 6, FindCoordinatorResponse)
    return response.coordinators[0].error_code


def init(
    wire: Wire, name: str, producer: tuple[int, int] = (-1, -1), version: int = 4
) -> InitProducerIdResponse:
    """Initialize a producer."""
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=60_000,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    return wire.ask(request, version, InitProducerIdResponse)


def new_producer(wire: Wire, name: str) -> tuple[int, int]:
    """Return the id and epoch of an initialized producer."""
    response = init(wire, name)
    assert response.error_code == 0
    return response.producer_id, response.producer_epoch


def topics(partitions: dict[str, list[int]]) -> list[AddPartitionsToTxnTopic]:
    """Return topics with their partitions."""
    return [
        AddPartitionsToTxnTopic(name=name, partitions=numbers)
        for name, numbers in partitions.items()
    ]


def codes(results: list[AddPartitionsToTxnTopicResult]) -> dict[tuple[str, int], int]:
    """Return the error code of each partition."""
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in results
        for each in topic.results_by_partition
    }


def add(
    wire: Wire,
    name: str,
    producer: tuple[int, int],
    partitions: dict[str, list[int]],
    version: int = 3,
) -> dict[tuple[str, int], int]:
    """Add partitions as a producer; return their error codes."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics(partitions),
    )
    response = wire.ask(request, version, AddPartitionsToTxnResponse)
    return codes(response.results_by_topic_v3_and_below)


def ask_as_broker(
    wire: Wire, *transactions: AddPartitionsToTxnTransaction, version: int = 5
) -> dict[str, dict[tuple[str, int], int]]:
    """Add or verify partitions as a broker; return their error codes by transactional id."""
    request = AddPartitionsToTxnRequest(transactions=list(transactions))
    response = wire.ask(request, version, AddPartitionsToTxnResponse)
    assert response.error_code == 0
    return {
        result.transactional_id: codes(result.topic_results)
        for result in response.results_by_transaction
    }


def of_broker(
    name: str, producer: tuple[int, int], *, verify_only: bool = False, **partitions: list[int]
) -> AddPartitionsToTxnTransaction:
    """Return what a broker asks about a transaction."""
    return AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=topics(partitions),
    )


def end(
    wire: Wire, name: str, producer: tuple[int, int], *, commit: bool = True, version: int = 3
) -> tuple[int, int, int]:
    """End a transaction; return error code, producer id and epoch."""
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    response = wire.ask(request, version, EndTxnResponse)
    return response.error_code, response.producer_id, response.producer_epoch
