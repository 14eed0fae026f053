"""A transactional producer in virtual time, with coordinators that a test responds for."""

from typing import TypeVar

from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.producer.transaction_manager import (
    OffsetsCall,
    TransactionalCall,
    TransactionManager,
)
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.committed_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
)
from tests.support.virtual.producer_world import ProducerWorld, Sent, WorldOptions, tp

TRANSACTIONAL_ID = "payments"
GROUP = ConsumerGroupMetadata("readers", 3, "member")
OFFSETS = {tp(): OffsetAndMetadata(5, "m", 2)}

RequestT = TypeVar("RequestT", bound=Request)


class TransactionWorld(ProducerWorld):
    """Keeps the names of the requests that it has responded to, in their order."""

    def __init__(self, version: int, **options: object) -> None:
        super().__init__(
            WorldOptions(
                transactional_id=TRANSACTIONAL_ID,
                transaction_version=version,
                **options,  # type: ignore[arg-type]  # by name
            )
        )
        self.is_version_2 = version == 2
        self.asked: list[str] = []
        self.epoch = -1

    @property
    def manager(self) -> TransactionManager:
        assert isinstance(self.transactions, TransactionManager)
        return self.transactions

    # -- the coordinators -------------------------------------------------------------------------

    def pending(self, kind: type[RequestT]) -> RequestT:
        """Returns the request of a kind that is on the wire."""
        sent = self._sent(kind)
        assert isinstance(sent.body, kind)
        return sent.body

    def respond(self, kind: type[Request], code: int = 0) -> None:
        """Respond to the request of a kind, and let the producer continue."""
        sent = self._sent(kind)
        self.asked.append(kind.__name__.removesuffix("Request"))
        self.client.end(sent.request.destination, self._response(sent.body, code))
        self.step()  # takes the response
        self.step()  # and does what follows from it

    def lose(self, kind: type[Request]) -> None:
        """Ends the connection of the request of a kind."""
        self.client.disconnect(self._sent(kind).request.destination)
        self.step()

    def run(self, rounds: int = 20) -> None:
        """Respond to everything until nothing is on the wire."""
        for _ in range(rounds):
            self.step(200)
            sent = [each for queue in self.client.wire.values() for each in queue]
            if not sent:
                return
            for each in sent:
                kind = type(each.body)
                if each.body.api_key == 0:
                    self.asked.append("Produce")
                    self.client.end(each.request.destination, self.process(each))
                    self.step()
                else:
                    self.respond(kind)
        raise AssertionError("the producer does not come to rest")

    def _sent(self, kind: type[Request]) -> Sent:
        self.step()
        (sent,) = self.client.requests(kind)
        return sent

    def _response(self, body: Request, code: int) -> Response:
        if isinstance(body, InitProducerIdRequest | EndTxnRequest):
            return self._with_epoch(body, code)
        match body:
            case FindCoordinatorRequest():
                return _coordinator(body, code)
            case AddPartitionsToTxnRequest():
                return _added(body, code)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=code)
            case TxnOffsetCommitRequest():
                return _committed(body, code)
        raise AssertionError(f"unexpected request {body}")

    def _with_epoch(self, body: Request, code: int) -> Response:
        if isinstance(body, InitProducerIdRequest):
            self.epoch += not code
            return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)
        if not self.is_version_2 or code:
            return EndTxnResponse(error_code=code)
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    # -- the application --------------------------------------------------------------------------

    def init(self) -> None:
        call = self.manager.start("init_transactions")
        self.run()
        assert self.manager.take_outcome(call) is None
        self.asked.clear()

    def begin(self) -> None:
        self.manager.begin()

    def start(self, name: str) -> TransactionalCall:
        return self.manager.start(name)

    def send_offsets(self) -> OffsetsCall:
        return self.manager.send_offsets(OFFSETS, GROUP)


def ready(version: int, **options: object) -> TransactionWorld:
    """Returns a producer in the state READY."""
    world = TransactionWorld(version, **options)
    world.init()
    return world


def in_transaction(version: int, **options: object) -> TransactionWorld:
    """Returns a producer with an open transaction."""
    world = ready(version, **options)
    world.begin()
    return world


def _coordinator(body: FindCoordinatorRequest, code: int) -> FindCoordinatorResponse:
    found = Coordinator(
        key=body.coordinator_keys[0],
        node_id=-1 if code else 0,
        host="h",
        port=1,
        error_code=code,
        error_message=None,
    )
    return FindCoordinatorResponse(coordinators=[found])


def _added(body: AddPartitionsToTxnRequest, code: int) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=each, partition_error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.v3_and_below_topics
        ]
    )


def _committed(body: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
