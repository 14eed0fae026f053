"""Transactions of producers (KIP-98, KIP-890).

- AddPartitionsToTxn, versions 0-5: adds partitions to a transaction. Up to version 3 a producer
  sends it; from version 4 on a broker, for the transactions of several producers, and it may ask
  only whether the partitions are part of them.
- AddOffsetsToTxn, versions 0-4: adds the partition with the offsets of a group.
- EndTxn, versions 0-5: commits or aborts. From version 5 on it raises the epoch.
"""

from collections.abc import Callable, Iterable

from kclient.broker.coordinator.transaction.transaction_shard import Reply
from kclient.broker.log.producer_state_entry import TRANSACTION_V2
from kclient.broker.metadata.metadata_image import INTERNAL_TOPICS, MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    NONE,
    GroupAuthorizationError,
    InvalidProducerEpochError,
    OperationNotAttemptedError,
    ProducerFencedError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)
from kclient.record import NO_PRODUCER, ProducerIdAndEpoch

_OF_BROKERS = 4
"""First version of AddPartitionsToTxn that brokers send."""

_KNOWS_FENCED = 2
"""First version of these APIs whose clients know PRODUCER_FENCED."""

_RAISES_EPOCH = 5
"""First version of EndTxn that raises the epoch."""

_Codes = dict[TopicPartition, int]


def _add_partitions(
    services: BrokerServices, request: Request, body: AddPartitionsToTxnRequest
) -> None:
    """Add partitions to transactions, or verify them; respond when all are done."""
    if request.header.api_version >= _OF_BROKERS:
        services.auth.require_node(request)
        _Adding(services, request, body.transactions).start()
        return
    transactional_id = body.v3_and_below_transactional_id
    partitions = _partitions(body.v3_and_below_topics)

    def respond(codes: _Codes) -> None:
        request.respond(
            AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topic_results(codes))
        )

    if not _may_write(services, request, transactional_id):
        respond(dict.fromkeys(partitions, code_of(TransactionalIdAuthorizationError)))
        return
    refused = _refused(services, request, partitions)
    if refused:
        respond(refused)
        return
    services.transactions.add_partitions(
        transactional_id,
        ProducerIdAndEpoch(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch),
        partitions,
        0,
        lambda result: respond(dict.fromkeys(partitions, _code(request, result))),
    )


def _refused(
    services: BrokerServices, request: Request, partitions: list[TopicPartition]
) -> _Codes:
    """Return a code for each partition if one of them cannot be added."""
    names = {each.topic for each in partitions} - INTERNAL_TOPICS
    write, auth = AclOperation.WRITE, services.auth
    allowed = {name for name in names if auth.authorize_topic(request, write, name)}
    unauthorized = code_of(TopicAuthorizationError)
    codes = {each: unauthorized for each in partitions if each.topic not in allowed}
    return _with_siblings(partitions, codes | _unknown(services, partitions, codes))


def _unknown(
    services: BrokerServices, partitions: Iterable[TopicPartition], refused: _Codes
) -> _Codes:
    image, unknown = services.metadata.image, code_of(UnknownTopicOrPartitionError)
    return {
        each: unknown for each in partitions if each not in refused and not _exists(image, each)
    }


def _with_siblings(partitions: Iterable[TopicPartition], codes: _Codes) -> _Codes:
    """Return the codes, with one for the partitions that are not added because of them."""
    if not codes:
        return codes
    return dict.fromkeys(partitions, code_of(OperationNotAttemptedError)) | codes


def _exists(image: MetadataImage, partition: TopicPartition) -> bool:
    topic = image.topics.get(partition.topic)
    return topic is not None and 0 <= partition.partition < len(topic.partitions)


class _Adding:
    """AddPartitionsToTxn of a broker in progress; the lock guards the results."""

    def __init__(
        self,
        services: BrokerServices,
        request: Request,
        transactions: list[AddPartitionsToTxnTransaction],
    ) -> None:
        self._services = services
        self._request = request
        self._transactions = {each.transactional_id: each for each in transactions}
        self._lock = services.tasks.lock()
        self._results: list[AddPartitionsToTxnResult] = []

    def start(self) -> None:
        if not self._transactions:
            self._request.respond(AddPartitionsToTxnResponse())
        for transactional_id, transaction in self._transactions.items():
            self._process(transactional_id, transaction)

    def _process(self, transactional_id: str, transaction: AddPartitionsToTxnTransaction) -> None:
        partitions = _partitions(transaction.topics)
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        unknown = _with_siblings(partitions, _unknown(self._services, partitions, {}))
        if unknown:
            self._on_done(transactional_id, unknown)
        elif transaction.verify_only:
            codes = self._verified(transactional_id, producer, partitions)
            self._on_done(transactional_id, codes)
        else:
            self._services.transactions.add_partitions(
                transactional_id,
                producer,
                partitions,
                TRANSACTION_V2,
                lambda result: self._on_done(
                    transactional_id, dict.fromkeys(partitions, _code(self._request, result))
                ),
            )

    def _verified(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> _Codes:
        try:
            present = self._services.transactions.partitions_of(transactional_id, producer)
        except KafkaError as error:
            return dict.fromkeys(partitions, code_of(error))
        absent = code_of(TransactionAbortableError)
        return {each: NONE if each in present else absent for each in partitions}

    def _on_done(self, transactional_id: str, codes: _Codes) -> None:
        result = AddPartitionsToTxnResult(
            transactional_id=transactional_id, topic_results=_topic_results(codes)
        )
        with self._lock:
            self._results.append(result)
            is_last = len(self._results) == len(self._transactions)
        if is_last:
            self._request.respond(AddPartitionsToTxnResponse(results_by_transaction=self._results))


def _add_offsets(services: BrokerServices, request: Request, body: AddOffsetsToTxnRequest) -> None:
    """Add the partition of ``__consumer_offsets`` that has the offsets of a group."""
    if not _may_write(services, request, body.transactional_id):
        raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
    if not services.auth.authorize_group(request, AclOperation.READ, body.group_id):
        raise GroupAuthorizationError("Group authorization failed.")
    services.transactions.add_partitions(
        body.transactional_id,
        ProducerIdAndEpoch(body.producer_id, body.producer_epoch),
        [services.groups.partition_of(body.group_id)],
        0,
        _responder(request, lambda code, _: AddOffsetsToTxnResponse(error_code=code)),
    )


def _end_txn(services: BrokerServices, request: Request, body: EndTxnRequest) -> None:
    """Commit or abort a transaction; respond when that is decided."""
    if not _may_write(services, request, body.transactional_id):
        raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
    raises_epoch = request.header.api_version >= _RAISES_EPOCH
    services.transactions.end_txn(
        body.transactional_id,
        ProducerIdAndEpoch(body.producer_id, body.producer_epoch),
        TRANSACTION_V2 if raises_epoch else 0,
        _responder(request, _ended),
        commits=body.committed,
    )


def _ended(code: int, producer: ProducerIdAndEpoch) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=code, producer_id=producer.producer_id, producer_epoch=producer.epoch
    )


_Make = Callable[[int, ProducerIdAndEpoch], AddOffsetsToTxnResponse | EndTxnResponse]


def _responder(request: Request, make: _Make) -> Reply:
    def reply(result: ProducerIdAndEpoch | KafkaError) -> None:
        producer = NO_PRODUCER if isinstance(result, KafkaError) else result
        request.respond(make(_code(request, result), producer))

    return reply


def _code(request: Request, result: ProducerIdAndEpoch | KafkaError) -> int:
    """Return the code of a result, in terms of the version of the request."""
    if not isinstance(result, KafkaError):
        return NONE
    if isinstance(result, ProducerFencedError) and request.header.api_version < _KNOWS_FENCED:
        return code_of(InvalidProducerEpochError)
    return code_of(result)


def _may_write(services: BrokerServices, request: Request, transactional_id: str) -> bool:
    kind = ResourceType.TRANSACTIONAL_ID
    return services.auth.authorize(request, AclOperation.WRITE, kind, transactional_id)


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]


def _topic_results(codes: _Codes) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, number), code in codes.items():
        found = topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name))
        found.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        )
    return list(topics.values())


def _failed_adding(body: AddPartitionsToTxnRequest, code: int) -> AddPartitionsToTxnResponse:
    if body.transactions:
        return AddPartitionsToTxnResponse(error_code=code)
    partitions = _partitions(body.v3_and_below_topics)
    results = _topic_results(dict.fromkeys(partitions, code))
    return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=results)


APIS = (
    ServedApi(AddPartitionsToTxnRequest, _add_partitions, _failed_adding),
    ServedApi(AddOffsetsToTxnRequest, _add_offsets),
    ServedApi(EndTxnRequest, _end_txn),
)
