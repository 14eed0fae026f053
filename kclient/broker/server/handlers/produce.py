"""Produce, versions 3-13: appends record batches.

Versions 3 to 12 use topic names, version 13 topic ids. acks=0 has no response; if it fails, the
connection is closed.

Batches of a transaction need a transactional id that the client may write with
(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), and one producer id (INVALID_PRODUCER_ID_MAPPING).
"""

from functools import lru_cache
from struct import Struct as Layout

from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_image import INTERNAL_TOPICS, TopicImage
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.fetch_params import AppendResult
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.broker.server.transaction_verification import (
    Guards,
    Refusals,
    TransactionToVerify,
)
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidPidMappingError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    InvalidTxnStateError,
    NetworkError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice, WirePart
from kclient.common.types import TopicPartition
from kclient.protocol.headers import NO_TAGS
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kclient.record import CompressionType, RecordBatch
from kclient.record.batch_header import COMPRESSION_MASK, TRANSACTIONAL_FLAG

_TOPIC_IDS = 13
_LEADER_HINTS = 10
_ABORTABLE_ERRORS = 11
_ADDS_PARTITIONS = 12
_LOG_START_OFFSETS = 5
_ZSTD_SINCE = 7
_ACKS = (-1, 0, 1)
_ADMIN_CLIENT = "__admin_client"
_NOT_READY = (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NetworkError,
    NotCoordinatorError,
)
"""Errors after which a coordinator can be asked again."""

_UNCHANGED_LEADER = LeaderIdAndEpoch()
"""Shared by all responses without a leader hint, so that none is created for each of them."""

_OFFSETS = Layout(">qqq")  # base offset, append time, log start offset
_PLACEHOLDERS = (-(2**63), -(2**62), -(2**61))


def handle(services: BrokerServices, request: Request, body: ProduceRequest) -> None:
    """Append each partition's batch and respond with the result of each."""
    if body.acks not in _ACKS:
        raise InvalidRequiredAcksError(f"acks: got {body.acks}, expected 0, 1 or -1")
    production = _Production(services, request, body)
    entries = production.take_records()
    _check_distinct(body)
    transaction = production.transaction()
    if transaction is None:
        services.replica_manager.append_records(
            body.acks, entries, body.timeout_ms, production.respond
        )
        return
    started = services.transaction_verification.begin(transaction, _first_sequences(entries))
    if started.unknown:
        # The append rejects corrupt batches, whose producer may be any.
        valid = [key for key in started.unknown if _is_valid(entries[key])]
        started = started._replace(unknown=valid)
        # The memory of the request is released before the coordinator responds.
        entries = {key: records.copy() for key, records in entries.items()}

    def append(guards: Guards, refused: Refusals) -> None:
        failed = {
            key: AppendResult(error=_append_error(error, transaction))
            for key, error in refused.items()
        }
        services.replica_manager.append_records(
            body.acks,
            {key: records for key, records in entries.items() if key not in failed},
            body.timeout_ms,
            lambda results: production.respond({**results, **failed}),
            guards=guards,
        )

    services.transaction_verification.complete(started, append)


def _is_valid(records: MemoryRecords) -> bool:
    return all(batch.is_valid() for batch in records.batches)


def _first_sequences(entries: dict[TopicPartition, MemoryRecords]) -> dict[TopicPartition, int]:
    return {
        key: records.batches[0].base_sequence
        for key, records in entries.items()
        if records.attributes & TRANSACTIONAL_FLAG
    }


def _append_error(error: KafkaError, transaction: TransactionToVerify) -> KafkaError:
    """Return the error of an append whose transaction was not verified.

    Producers handle few errors of a coordinator in a response to Produce, so that they get a
    retriable one that needs no new metadata (Kafka: ReplicaManager.handleProduceAppend).
    """
    is_concurrent = isinstance(error, ConcurrentTransactionsError)
    if isinstance(error, _NOT_READY) or (is_concurrent and not transaction.adds_partitions):
        return NotEnoughReplicasError(f"Unable to verify the partition has been added: {error}")
    if isinstance(error, InvalidTxnStateError):
        return InvalidTxnStateError("Partition was not added to the transaction")
    return error


_Target = tuple[TopicPartition, KafkaError | None]
"""Partition of a request, with its name on this broker, and the error that refuses it."""


class _Production:
    """A produce request in progress."""

    def __init__(self, services: BrokerServices, request: Request, body: ProduceRequest) -> None:
        self._auth = services.auth
        self._request = request
        self._body = body
        self._header = request.header
        self._version = self._header.api_version
        self._image = services.metadata.image
        self._targets: list[list[_Target]] = []  # by topic, in the order of the request
        self._producers: dict[tuple[int, int], list[RecordBatch]] = {}  # of transactional batches
        self._leaders: set[int] = set()  # of partitions that the client must send elsewhere

    def take_records(self) -> dict[TopicPartition, MemoryRecords]:
        """Remove the records from the request; return those that can be appended.

        Raises:
            TransactionalIdAuthorizationError: A batch is transactional, and the client may not
                write with its transactional id.
            InvalidPidMappingError: Transactional batches are of several producers.
        """
        entries: dict[TopicPartition, MemoryRecords] = {}
        for topic in self._body.topic_data:
            self._targets.append(self._take_topic(topic, entries))
        if self._producers:
            self._check_transaction()
        return entries

    def _check_transaction(self) -> None:
        """Check that one producer may write the transactional batches.

        The flag of a corrupt batch is ignored: the append rejects it with an error that is retried.
        """
        is_allowed = self._may_write_transactions()
        if is_allowed and len(self._producers) == 1:
            return
        writers = [
            producer
            for producer, batches in self._producers.items()
            if any(batch.is_valid() for batch in batches)
        ]
        self._producers = {each: self._producers[each] for each in writers}
        if writers and not is_allowed:
            raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
        if len(writers) > 1:
            raise InvalidPidMappingError(
                "Transactional records contained more than one producer ID"
            )

    def transaction(self) -> TransactionToVerify | None:
        """Return the transaction that batches of the request are part of, or None."""
        if not self._producers:
            return None
        producer_id, producer_epoch = next(iter(self._producers))
        return TransactionToVerify(
            self._body.transactional_id or "",
            producer_id,
            producer_epoch,
            adds_partitions=self._version >= _ADDS_PARTITIONS,
            has_abortable_error=self._version >= _ABORTABLE_ERRORS,
        )

    def _may_write_transactions(self) -> bool:
        transactional_id = self._body.transactional_id
        return transactional_id is not None and self._auth.authorize(
            self._request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        )

    def _take_topic(
        self, topic: TopicProduceData, entries: dict[TopicPartition, MemoryRecords]
    ) -> list[_Target]:
        """Add the records that can be appended to `entries`; return the topic's partitions."""
        error: KafkaError | None = None
        name, count = topic.name, 0
        try:
            hosted = self._topic(topic)
            if hosted is not None:
                name, count = hosted.name, len(hosted.partitions)
        except KafkaError as problem:
            error = problem
        targets: list[_Target] = []
        for partition in topic.partition_data:
            data = partition.records
            records = MemoryRecords(data if isinstance(data, memoryview) else _contiguous(data))
            partition.records = None  # freed even if the response is delayed
            if records.attributes & TRANSACTIONAL_FLAG:
                self._add_producers(records)
            key = TopicPartition(name, partition.index)
            refused = error
            if refused is None and not 0 <= partition.index < count:
                refused = UnknownTopicOrPartitionError(
                    "This server does not host this topic-partition."
                )
            if len(records.batches) > 1 or self._version < _ZSTD_SINCE:
                refused = refused or _format_problem(records, self._version)
            if refused is None:
                entries[key] = records
            targets.append((key, refused))
        return targets

    def _add_producers(self, records: MemoryRecords) -> None:
        for batch in records.batches:
            if batch.attributes & TRANSACTIONAL_FLAG:
                producer = (batch.producer_id, batch.producer_epoch)
                self._producers.setdefault(producer, []).append(batch)

    def _topic(self, topic: TopicProduceData) -> TopicImage | None:
        """Return a topic of the request, or None if this broker does not host its name."""
        if self._version >= _TOPIC_IDS:
            found = self._image.topic_by_id(topic.topic_id)
            if found is None:
                raise UnknownTopicIdError("This server does not host this topic ID.")
        else:
            found = self._image.topic(topic.name)
        name = topic.name if found is None else found.name
        if not self._auth.authorize_topic(self._request, AclOperation.WRITE, name):
            raise TopicAuthorizationError(f"Not authorized to access topics: [{name}]")
        if name in INTERNAL_TOPICS and self._header.client_id != _ADMIN_CLIENT:
            raise InvalidTopicError(f"Cannot append to internal topic {name}")
        return found

    def respond(self, results: AppendResults) -> None:
        """Send the response, if the request has one."""
        if self._body.acks == 0:
            self._complete_without_response(results)
        elif self._request.charge() or not self._respond_to_single_append(results):
            self._respond_in_full(results)

    def _respond_to_single_append(self, results: AppendResults) -> bool:
        """Send the usual response, to an append to one partition; return False for any other."""
        body = self._body
        if len(results) != 1 or self._version < _LOG_START_OFFSETS:
            return False
        if len(self._targets) != 1 or len(self._targets[0]) != 1:
            return False
        (result,) = results.values()
        if result.error is not None:
            return False
        topic, ((key, _),) = body.topic_data[0], self._targets[0]
        before, after = _response_template(self._version, topic.name, topic.topic_id, key.partition)
        offsets = _OFFSETS.pack(result.base_offset, result.log_append_time, result.log_start_offset)
        self._request.respond_encoded(before + offsets + after)
        return True

    def _respond_in_full(self, results: AppendResults) -> None:
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[self._partition_response(each, results) for each in named],
                )
                for topic, named in zip(self._body.topic_data, self._targets, strict=True)
            ]
        )
        if self._leaders:
            self._add_endpoints(response)
        self._request.respond(response)

    def _complete_without_response(self, results: AppendResults) -> None:
        is_refused = any(refused for targets in self._targets for _, refused in targets)
        if is_refused or any(result.error is not None for result in results.values()):
            self._request.close_connection()
        else:
            self._request.complete_without_response()

    def _partition_response(
        self, target: _Target, results: AppendResults
    ) -> PartitionProduceResponse:
        key, refused = target
        result = results[key] if refused is None else AppendResult(error=refused)
        response = PartitionProduceResponse(
            index=key.partition,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time,
            log_start_offset=result.log_start_offset,
            current_leader=_UNCHANGED_LEADER,
        )
        if result.error is not None:
            self._add_error(response, key, result, result.error)
        return response

    def _add_error(
        self,
        response: PartitionProduceResponse,
        key: TopicPartition,
        result: AppendResult,
        error: KafkaError,
    ) -> None:
        response.error_code = code_of(error)
        response.error_message = str(error) or None
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in result.record_errors
        ]
        if self._version >= _LEADER_HINTS and isinstance(error, NotLeaderOrFollowerError):
            registration = self._image.partition(key)
            if registration is not None:
                self._leaders.add(registration.leader)
                response.current_leader = LeaderIdAndEpoch(
                    leader_id=registration.leader, leader_epoch=registration.leader_epoch
                )

    def _add_endpoints(self, response: ProduceResponse) -> None:
        response.node_endpoints = [
            NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in self._image.live_nodes(self._request.listener_name)
            if node.id in self._leaders
        ]


@lru_cache(maxsize=4096)
def _response_template(
    version: int, topic: str, topic_id: bytes, partition: int
) -> tuple[bytes, bytes]:
    """Return the response to an append to one partition, before and after its offsets.

    It begins after the correlation id. Encoding a message takes as long as writing the batch.
    """
    base_offset, log_append_time_ms, log_start_offset = _PLACEHOLDERS
    appended = PartitionProduceResponse(
        index=partition,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(name=topic, topic_id=topic_id, partition_responses=[appended])
        ]
    )
    header = NO_TAGS if ProduceResponse.is_flexible(version) else b""
    encoded = header + response.encode_bytes(version)
    before, _, after = encoded.partition(_OFFSETS.pack(*_PLACEHOLDERS))
    return before, after


def _check_distinct(body: ProduceRequest) -> None:
    """Reject a request that contains a partition twice: only one result could be returned."""
    if len(body.topic_data) == 1 and len(body.topic_data[0].partition_data) == 1:
        return
    named = [
        (topic.name, topic.topic_id, partition.index)
        for topic in body.topic_data
        for partition in topic.partition_data
    ]
    if len(set(named)) != len(named):
        raise InvalidRequestError("the request contains a partition twice")


def _format_problem(records: MemoryRecords, version: int) -> KafkaError | None:
    """Return the error of a partition's data in a request of this version, or None.

    Data that is no batch is rejected by the append (Kafka: validateRecords).
    """
    if not records.batches:
        return None
    codec = records.batches[0].attributes & COMPRESSION_MASK
    if version < _ZSTD_SINCE and codec == CompressionType.ZSTD:
        return UnsupportedCompressionTypeError(
            f"Produce requests with version {version} are not allowed to use ZStandard compression"
        )
    if len(records.batches) > 1:
        return InvalidRecordError(
            f"Produce requests with version {version} are only allowed to contain exactly one "
            "record batch per partition"
        )
    return None


def _contiguous(records: WirePart | None) -> memoryview:
    if isinstance(records, memoryview):
        return records
    if isinstance(records, FileSlice):  # not in received requests
        records = records.read()
    return memoryview(records or b"")


def _failed(body: ProduceRequest, code: int) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=partition.index, error_code=code, base_offset=-1)
                    for partition in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )


APIS = (ServedApi(ProduceRequest, handle, _failed),)
