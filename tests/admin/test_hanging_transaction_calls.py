"""Search for hanging transactions: the rule of Kafka's tool, and the brokers that are asked."""

import pytest

from kclient.admin import hanging_transaction_calls
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.describe_producers import DescribeProducersRequest
from kclient.protocol.messages.transaction_descriptions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tests.support.virtual.transactions_world import FIRST, SECOND, TransactionsWorld


def test_transaction_without_a_transactional_id_hangs() -> None:
    world = TransactionsWorld(2)
    hanging = world.open(SECOND, 7)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_transaction_of_a_forgotten_transactional_id_hangs() -> None:
    world = TransactionsWorld()
    hanging = world.open(FIRST, 7)
    world.known(7, "orders")
    del world.described["orders"]
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_partition_that_the_coordinator_does_not_name_hangs() -> None:
    world = TransactionsWorld(2)
    world.open(FIRST, 7)
    hanging = world.open(SECOND, 7)
    world.known(7, "orders", FIRST)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_transaction_younger_than_the_longest_timeout_does_not_hang() -> None:
    world = TransactionsWorld()
    hanging = world.open(FIRST, 7, silent_ms=5_000)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
    found = world.run(
        hanging_transaction_calls.find_hanging_transactions, max_transaction_timeout_ms=4_999
    )
    assert found == [hanging]


def test_producer_without_an_open_transaction_does_not_hang() -> None:
    world = TransactionsWorld()
    world.open(FIRST, 7)
    world.producers[FIRST][0].current_txn_start_offset = -1
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
    assert world.requests(ListTransactionsRequest) == []


def test_transaction_that_ends_during_the_search_does_not_hang() -> None:
    world = TransactionsWorld()
    world.open(FIRST, 7)
    hanging = world.open(SECOND, 8)

    def listed(*_: object) -> Response:
        world.producers[FIRST][0].current_txn_start_offset = -1
        return ListTransactionsResponse()

    world.respond(ApiKey.LIST_TRANSACTIONS, listed, high=2)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_search_in_topics() -> None:
    world = TransactionsWorld()
    world.lead({"t": [1], "u": [1]})
    world.open(FIRST, 7)
    hanging = world.open(TopicPartition("u", 0), 8)
    assert world.run(hanging_transaction_calls.find_hanging_transactions, topics="u") == [hanging]
    with pytest.raises(UnknownTopicOrPartitionError):
        world.run(hanging_transaction_calls.find_hanging_transactions, topics=["missing"])


def test_search_in_partitions_with_a_replica_on_a_broker() -> None:
    world = TransactionsWorld(2)
    world.lead({"t": [1, 2]})
    world.open(FIRST, 7)
    hanging = world.open(SECOND, 8)
    assert world.run(hanging_transaction_calls.find_hanging_transactions, broker_ids=2) == [hanging]


def test_producers_are_asked_for_in_bounded_requests() -> None:
    world = TransactionsWorld()
    world.lead({"t": [1] * 1200})
    hanging = world.open(TopicPartition("t", 1199), 7)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]
    sizes = [
        sum(len(topic.partition_indexes) for topic in request.topics)
        for request in world.requests(DescribeProducersRequest)
        if isinstance(request, DescribeProducersRequest)
    ]
    assert sizes == [500, 500, 200, 1]  # the last one is that of the found partition


def test_cluster_without_topics_has_no_hanging_transactions() -> None:
    world = TransactionsWorld()
    world.lead({})
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
