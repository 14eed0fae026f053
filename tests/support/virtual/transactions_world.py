"""Scripted brokers with transactions, open and hanging."""

from kclient.admin.admin_types import ProducerState
from kclient.admin.transaction_types import HangingTransaction
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
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
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
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
START_MS = 1_700_000_000_123
LIMIT_MS = 900_000
"""Default of the longest transaction timeout."""


class TransactionsWorld(AdminWorld):
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
        self.respond(ApiKey.INIT_PRODUCER_ID, lambda *_: InitProducerIdResponse(), high=5)
        self.respond(ApiKey.WRITE_TXN_MARKERS, _mark, low=1, high=1)
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
            ListTransactionsTransactionState(
                transactional_id=name, producer_id=number, transaction_state="Ongoing"
            )
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
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=START_MS,
            producer_id=7,
            producer_epoch=3,
            error_code=0 if name in self.described else 105,
            topics=[
                TopicData(topic=topic, partitions=[number])
                for topic, number in self.described.get(name, [])
            ],
        )
        return DescribeTransactionsResponse(transaction_states=[state])


def _mark(_: ScriptedBroker, request: Request) -> Response:
    assert isinstance(request, WriteTxnMarkersRequest)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=number)
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
