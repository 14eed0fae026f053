"""Search for hanging transactions: the rule of Kafka's tool, and the brokers that are asked."""

import pytest

from kclient.admin import hanging_transaction_calls
from kclient.admin.admin_types import ProducerState
from kclient.admin.transaction_types import HangingTransaction
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
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
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
LIMIT_MS = 900_000


class Transactions(AdminWorld):
    """Brokers with transactions.

    Attributes:
        producers: Producers by partition.
        listed: Transactional ids by producer id.
        described: Partitions of a transaction by transactional id; other ids are not known.
    """

    def __init__(self, brokers: int = 1) -> None:
        super().__init__(brokers)
        self.producers: dict[TopicPartition, list[DescribeProducersProducerState]] = {}
        self.listed: dict[int, str] = {}
        self.described: dict[str, list[TopicPartition]] = {}
        self.respond(ApiKey.DESCRIBE_PRODUCERS, self._describe_producers, high=0)
        self.respond(ApiKey.LIST_TRANSACTIONS, self._list, high=2)
        self.respond(ApiKey.DESCRIBE_TRANSACTIONS, self._describe, high=0)
        self.lead({"t": [1, 1]})

    def lead(self, topics: dict[str, list[int]]) -> None:
        """Create topics with these leaders of partitions."""
        for broker in self.brokers:
            broker.topics = topics

    def open(
        self, partition: TopicPartition, producer_id: int, silent_ms: int = LIMIT_MS + 1
    ) -> HangingTransaction:
        """Open a transaction in a partition, whose last batch is that old."""
        last_ms = self.clock.wall_ms() - silent_ms
        state = DescribeProducersProducerState(
            producer_id=producer_id,
            producer_epoch=3,
            last_sequence=8,
            last_timestamp=last_ms,
            coordinator_epoch=2,
            current_txn_start_offset=40,
        )
        self.producers.setdefault(partition, []).append(state)
        return HangingTransaction(partition, ProducerState(producer_id, 3, 8, last_ms, 2, 40))

    def known(self, producer_id: int, name: str, *partitions: TopicPartition) -> None:
        """Make a coordinator list and describe the transaction of a producer."""
        self.coordinate(name, len(self.brokers))
        self.listed[producer_id] = name
        self.described[name] = list(partitions)

    def _describe_producers(self, _: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DescribeProducersRequest)
        return DescribeProducersResponse(
            topics=[
                DescribeProducersTopicResponse(
                    name=topic.name,
                    partitions=[
                        DescribeProducersPartitionResponse(
                            partition_index=number,
                            active_producers=self.producers.get(
                                TopicPartition(topic.name, number), []
                            ),
                        )
                        for number in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _list(self, broker: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, ListTransactionsRequest)
        states = [
            ListTransactionsTransactionState(transactional_id=name, producer_id=number)
            for number, name in self.listed.items()
            if broker is self.brokers[-1] and number in request.producer_id_filters
        ]
        return ListTransactionsResponse(transaction_states=states)

    def _describe(self, _: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DescribeTransactionsRequest)
        (name,) = request.transactional_ids
        state = DescribeTransactionsTransactionState(
            transactional_id=name,
            transaction_state="Ongoing",
            error_code=0 if name in self.described else 105,
            topics=[
                TopicData(topic=topic, partitions=[number])
                for topic, number in self.described.get(name, [])
            ],
        )
        return DescribeTransactionsResponse(transaction_states=[state])


def test_transaction_without_a_transactional_id_hangs() -> None:
    world = Transactions(2)
    hanging = world.open(SECOND, 7)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_transaction_of_a_forgotten_transactional_id_hangs() -> None:
    world = Transactions()
    hanging = world.open(FIRST, 7)
    world.known(7, "orders")
    del world.described["orders"]
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_partition_that_the_coordinator_does_not_name_hangs() -> None:
    world = Transactions(2)
    world.open(FIRST, 7)
    hanging = world.open(SECOND, 7)
    world.known(7, "orders", FIRST)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]


def test_transaction_younger_than_the_longest_timeout_does_not_hang() -> None:
    world = Transactions()
    hanging = world.open(FIRST, 7, silent_ms=5_000)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
    found = world.run(
        hanging_transaction_calls.find_hanging_transactions, max_transaction_timeout_ms=4_999
    )
    assert found == [hanging]


def test_producer_without_an_open_transaction_does_not_hang() -> None:
    world = Transactions()
    world.open(FIRST, 7)
    world.producers[FIRST][0].current_txn_start_offset = -1
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
    assert world.requests(ListTransactionsRequest) == []


def test_search_in_topics() -> None:
    world = Transactions()
    world.lead({"t": [1], "u": [1]})
    world.open(FIRST, 7)
    hanging = world.open(TopicPartition("u", 0), 8)
    assert world.run(hanging_transaction_calls.find_hanging_transactions, topics="u") == [hanging]
    with pytest.raises(UnknownTopicOrPartitionError):
        world.run(hanging_transaction_calls.find_hanging_transactions, topics=["missing"])


def test_search_in_partitions_with_a_replica_on_a_broker() -> None:
    world = Transactions(2)
    world.lead({"t": [1, 2]})
    world.open(FIRST, 7)
    hanging = world.open(SECOND, 8)
    assert world.run(hanging_transaction_calls.find_hanging_transactions, broker_ids=2) == [hanging]


def test_producers_are_asked_for_in_bounded_requests() -> None:
    world = Transactions()
    world.lead({"t": [1] * 1200})
    hanging = world.open(TopicPartition("t", 1199), 7)
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == [hanging]
    assert len(world.requests(DescribeProducersRequest)) == 3


def test_cluster_without_topics_has_no_hanging_transactions() -> None:
    world = Transactions()
    world.lead({})
    assert world.run(hanging_transaction_calls.find_hanging_transactions) == []
