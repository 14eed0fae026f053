"""Verification of transactions at their coordinators, this broker and others."""

from collections.abc import Callable

import pytest

from kclient.broker.metadata.metadata_image import (
    TRANSACTION_STATE,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.server.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from kclient.broker.server.transaction_verification import Refusals, TransactionToVerify
from kclient.common.broker_errors import code_of
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.protocol.message import Response
from kclient.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.support.virtual.transaction_coordinator_world import A0, A1, TransactionWorld

NETWORK, NOT_AVAILABLE, NOT_COORDINATOR, FENCED = 13, 15, 16, 90
ABORTABLE, MAPPING, CONCURRENT = 120, 49, 51


class Leader:
    """A leader of partitions; the coordinator is its own broker, 1, or another one, 2.

    Attributes:
        sent: Requests to the other broker, with their callbacks.
    """

    def __init__(self, coordinator: int) -> None:
        self.world = TransactionWorld()
        self.sent: list[tuple[AddPartitionsToTxnRequest, Callable[[Response | KafkaError], None]]]
        self.sent = []
        led = PartitionRegistration((1, 2), (1, 2), coordinator, 0, 0)
        topic = TopicImage(TRANSACTION_STATE, bytes(16), (led,) * self.world.log.partition_count)
        self.image = MetadataImage(topics={TRANSACTION_STATE: topic})
        self.manager = AddPartitionsToTxnManager(
            1,
            self.world.coordinator,
            self._send,
            lambda: self.image,
            self.world.clock,
            SystemTasks().lock(),
            20,
            100,
        )

    def _send(
        self,
        node_id: int,
        request: AddPartitionsToTxnRequest,
        on_response: Callable[[Response | KafkaError], None],
    ) -> None:
        assert node_id == 2
        self.sent.append((request, on_response))

    def ask(
        self, producer: tuple[int, int], *partitions: TopicPartition, adds: bool
    ) -> list[dict[TopicPartition, int]]:
        """Verify partitions; the list receives the error codes."""
        found: list[dict[TopicPartition, int]] = []

        def on_response(errors: Refusals) -> None:
            found.append({key: code_of(error) for key, error in errors.items()})

        transaction = TransactionToVerify(
            "x", *producer, adds_partitions=adds, has_abortable_error=True
        )
        self.manager.ask(transaction, partitions, on_response)
        return found

    def respond(self, codes: dict[TopicPartition, int], name: str = "x") -> None:
        """Respond to the oldest request to the other broker."""
        _request, on_response = self.sent.pop(0)
        topic_results = [
            AddPartitionsToTxnTopicResult(
                name=key.topic,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=key.partition, partition_error_code=code
                    )
                ],
            )
            for key, code in codes.items()
        ]
        result = AddPartitionsToTxnResult(transactional_id=name, topic_results=topic_results)
        on_response(AddPartitionsToTxnResponse(results_by_transaction=[result]))


@pytest.fixture
def own() -> Leader:
    return Leader(1)


@pytest.fixture
def other() -> Leader:
    return Leader(2)


def test_own_coordinator_verifies_and_adds(own: Leader) -> None:
    own.world.init()
    assert own.ask((100, 0), A0, adds=False) == [{A0: ABORTABLE}]
    assert own.ask((100, 0), A0, adds=True) == [{}]
    assert own.ask((100, 0), A0, A1, adds=False) == [{A1: ABORTABLE}]
    assert own.world.state() == "Ongoing"


@pytest.mark.parametrize("adds", [True, False])
def test_errors_are_those_of_the_coordinator(own: Leader, adds: bool) -> None:
    assert own.ask((100, 0), A0, adds=adds) == [{A0: MAPPING}]
    own.world.init()
    own.world.init()
    assert own.ask((100, 0), A0, adds=adds) == [{A0: FENCED}]
    own.world.resign(1)
    assert own.ask((100, 0), A0, adds=adds) == [{A0: NOT_COORDINATOR}]


def test_addition_is_repeated_while_the_last_transaction_ends(own: Leader) -> None:
    own.world.init()
    own.world.add((100, 0), A0)
    own.world.leaders.held = []
    own.world.end((100, 0))
    assert own.ask((100, 1), A0, adds=False) == [{A0: CONCURRENT}]
    found = own.ask((100, 1), A0, adds=True)
    assert found == []
    own.world.leaders.respond()
    assert own.manager.step(own.world.clock.now_ms) == own.world.clock.now_ms + 20
    own.world.clock.now_ms += 20
    assert own.manager.step(own.world.clock.now_ms) is None
    assert found == [{}]


def test_addition_is_not_repeated_without_limit(own: Leader) -> None:
    own.world.init()
    own.world.add((100, 0), A0)
    own.world.leaders.held = []
    own.world.end((100, 0))
    found = own.ask((100, 1), A0, adds=True)
    attempts = 0
    while not found:
        own.world.clock.now_ms += 20
        own.manager.step(own.world.clock.now_ms)
        attempts += 1
    assert found == [{A0: CONCURRENT}]
    assert attempts == 5


@pytest.mark.parametrize("adds", [True, False])
def test_other_coordinator_is_asked(other: Leader, adds: bool) -> None:
    found = other.ask((7, 3), A0, A1, adds=adds)
    (transaction,) = other.sent[0][0].transactions
    assert (transaction.transactional_id, transaction.verify_only) == ("x", not adds)
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 3)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("a", [0, 1])]
    other.respond({A0: 0, A1: 90})
    assert found == [{A1: FENCED}]


def test_incomplete_response_is_that_of_a_broken_connection(other: Leader) -> None:
    found = other.ask((7, 3), A0, A1, adds=False)
    other.respond({A0: 0})
    assert found == [{A1: NETWORK}]
    found = other.ask((7, 3), A0, adds=False)
    other.respond({A0: 0}, name="y")
    assert found == [{A0: NETWORK}]
    found = other.ask((7, 3), A0, adds=False)
    other.sent.pop()[1](DisconnectedError("lost"))
    assert found == [{A0: NETWORK}]


def test_rights_of_the_broker_are_no_matter_of_the_producer(other: Leader) -> None:
    found = other.ask((7, 3), A0, adds=False)
    other.sent.pop()[1](AddPartitionsToTxnResponse(error_code=31))
    assert found == [{A0: 48}]


def test_coordinator_without_leader_is_not_available(other: Leader) -> None:
    other.image = MetadataImage()
    assert other.ask((7, 3), A0, adds=True) == [{A0: NOT_AVAILABLE}]
    assert Leader(-1).ask((7, 3), A0, adds=True) == [{A0: NOT_AVAILABLE}]
