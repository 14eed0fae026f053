"""DescribeTransactions and ListTransactions requests."""

from collections.abc import Iterator

import pytest

from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TopicData,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.transaction_requests import add, end, new_producer, prepare_coordinator
from tests.support.clients.wire import Wire

ONE_DAY_MS = 24 * 3600 * 1000


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Wire]:
    """A connection to a broker with an empty, an open and an aborted transaction."""
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t", 3)
        prepare_coordinator(wire)
        new_producer(wire, "empty")
        add(wire, "open", new_producer(wire, "open"), {"t": [2, 0]})
        ended = new_producer(wire, "aborted")
        add(wire, "aborted", ended, {"t": [0]})
        assert end(wire, "aborted", ended, commit=False)[0] == 0
        yield wire


def described(wire: Wire, *names: str) -> list[DescribeTransactionsTransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    return wire.ask(request, 0, DescribeTransactionsResponse).transaction_states


def listed(wire: Wire, request: ListTransactionsRequest, version: int = 1) -> list[tuple[str, str]]:
    response = wire.ask(request, version, ListTransactionsResponse)
    assert response.error_code == 0
    return sorted(
        (each.transactional_id, each.transaction_state) for each in response.transaction_states
    )


def test_open_transaction_has_its_partitions_and_start(coordinator: Wire) -> None:
    (found,) = described(coordinator, "open")
    assert (found.error_code, found.transaction_state) == (0, "Ongoing")
    assert (found.transaction_timeout_ms, found.producer_epoch) == (60_000, 0)
    assert found.topics == [TopicData(topic="t", partitions=[0, 2])]
    assert found.transaction_start_time_ms > 1_600_000_000_000


def test_each_id_is_described_in_the_order_of_the_request(coordinator: Wire) -> None:
    found = described(coordinator, "aborted", "empty", "none", "aborted", "")
    assert [(each.transactional_id, each.error_code, each.transaction_state) for each in found] == [
        ("aborted", 0, "CompleteAbort"),
        ("empty", 0, "Empty"),
        ("none", 105, ""),
        ("aborted", 0, "CompleteAbort"),
        ("", 42, ""),
    ]


def test_all_transactions_are_listed(coordinator: Wire) -> None:
    every = [("aborted", "CompleteAbort"), ("empty", "Empty"), ("open", "Ongoing")]
    for version in (0, 1):
        assert set(listed(coordinator, ListTransactionsRequest(), version)) >= set(every)


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (ListTransactionsRequest(state_filters=["Ongoing", "CompleteAbort"]), ["aborted", "open"]),
        (ListTransactionsRequest(state_filters=["Ongoing", "Odd"]), ["open"]),
        (ListTransactionsRequest(state_filters=["Odd"]), []),
        (ListTransactionsRequest(producer_id_filters=[12345]), []),
        (ListTransactionsRequest(state_filters=["Ongoing"], duration_filter=ONE_DAY_MS), []),
    ],
)
def test_filters(coordinator: Wire, request_: ListTransactionsRequest, names: list[str]) -> None:
    assert [name for name, _state in listed(coordinator, request_)] == names


def test_producer_ids_filter(coordinator: Wire) -> None:
    (found,) = described(coordinator, "open")
    request = ListTransactionsRequest(producer_id_filters=[found.producer_id])
    assert listed(coordinator, request) == [("open", "Ongoing")]


def test_unknown_states_are_returned(coordinator: Wire) -> None:
    request = ListTransactionsRequest(state_filters=["Odd", "Ongoing", "PrepareEpochFence"])
    response = coordinator.ask(request, 1, ListTransactionsResponse)
    assert response.unknown_state_filters == ["Odd"]
