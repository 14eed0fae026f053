"""Produce, versions 3-13: appends record batches.

Versions 3 to 12 use topic names, version 13 topic ids. acks=0 has no response; if it fails, the
connection is closed.

Differences from Apache Kafka: transactions are not served (TRANSACTIONAL_ID_AUTHORIZATION_FAILED).
"""

from kclient.broker.controller.metadata_image import INTERNAL_TOPICS, MetadataImage
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.fetch_params import AppendResult
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import (
    NONE,
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    NotLeaderOrFollowerError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice, WirePart
from kclient.common.types import TopicPartition
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kclient.record import CompressionType
from kclient.record.batch_header import COMPRESSION_MASK

_TOPIC_IDS = 13
_LEADER_HINTS = 10
_ZSTD_SINCE = 7
_ACKS = (-1, 0, 1)
_ADMIN_CLIENT = "__admin_client"


def handle(services: BrokerServices, request: Request, body: ProduceRequest) -> None:
    """Append each partition's batch and respond with the result of each."""
    if body.acks not in _ACKS:
        raise InvalidRequiredAcksError(f"acks: got {body.acks}, expected 0, 1 or -1")
    records = _parse_records(body)
    if body.transactional_id is not None or _has_transactional_batches(records):
        raise TransactionalIdAuthorizationError("transactions are not served by this broker")
    _check_distinct(body)
    _Production(services, request, body).start(records)


def _parse_records(body: ProduceRequest) -> list[list[MemoryRecords]]:
    """Return the records of each topic's partitions; they are removed from the request."""
    parsed = []
    for topic in body.topic_data:
        parsed.append([MemoryRecords(_contiguous(each.records)) for each in topic.partition_data])
        for partition in topic.partition_data:
            partition.records = None  # freed even if the response is delayed
    return parsed


class _Production:
    """A produce request in progress."""

    def __init__(self, services: BrokerServices, request: Request, body: ProduceRequest) -> None:
        self._request = request
        self._body = body
        self._header = request.header
        self._by_id = self._header.api_version >= _TOPIC_IDS
        self._hints = self._header.api_version >= _LEADER_HINTS
        self._replica_manager = services.replica_manager
        self._image = services.controller.image
        self._entries: dict[TopicPartition, MemoryRecords] = {}
        self._refused: dict[tuple[int, int], KafkaError] = {}
        self._names: list[str] = []

    def start(self, records: list[list[MemoryRecords]]) -> None:
        for position, topic in enumerate(self._body.topic_data):
            self._take_topic(position, topic, records[position])
        body = self._body
        self._replica_manager.append_records(
            body.acks, self._entries, body.timeout_ms, self._respond
        )
        self._entries.clear()

    def _take_topic(
        self, position: int, topic: TopicProduceData, records: list[MemoryRecords]
    ) -> None:
        error: KafkaError | None = None
        try:
            name = _topic_name(self._image, topic) if self._by_id else topic.name
            self._check_topic(name)
        except KafkaError as problem:
            name, error = topic.name, problem
        self._names.append(name)
        for partition, given in zip(topic.partition_data, records, strict=True):
            key = TopicPartition(name, partition.index)
            if error is not None:
                self._refused[position, partition.index] = error
            elif self._image.partition(key) is None:
                self._refused[position, partition.index] = UnknownTopicOrPartitionError(
                    "This server does not host this topic-partition."
                )
            else:
                self._take_records(position, key, given)

    def _take_records(self, position: int, key: TopicPartition, records: MemoryRecords) -> None:
        problem = _format_problem(records, self._header.api_version)
        if problem is None:
            self._entries[key] = records
        else:
            self._refused[position, key.partition] = problem

    def _check_topic(self, name: str) -> None:
        if name in INTERNAL_TOPICS and self._header.client_id != _ADMIN_CLIENT:
            raise InvalidTopicError(f"Cannot append to internal topic {name}")

    def _respond(self, results: AppendResults) -> None:
        if self._body.acks == 0:
            failed = self._refused or any(r.error is not None for r in results.values())
            if failed:
                self._request.close_connection()
            else:
                self._request.complete_without_response()
            return
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        self._partition_response(position, partition, results)
                        for partition in topic.partition_data
                    ],
                )
                for position, topic in enumerate(self._body.topic_data)
            ]
        )
        if self._hints:
            self._add_endpoints(response)
        self._request.respond(response)

    def _partition_response(
        self, position: int, partition: PartitionProduceData, results: AppendResults
    ) -> PartitionProduceResponse:
        refused = self._refused.get((position, partition.index))
        key = TopicPartition(self._names[position], partition.index)
        result = results[key] if refused is None else AppendResult(error=refused)
        response = PartitionProduceResponse(
            index=partition.index,
            error_code=NONE if result.error is None else code_of(result.error),
            error_message=None if result.error is None else str(result.error) or None,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time,
            log_start_offset=result.log_start_offset,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in result.record_errors
            ],
        )
        if self._hints and isinstance(result.error, NotLeaderOrFollowerError):
            registration = self._image.partition(key)
            if registration is not None:
                response.current_leader = LeaderIdAndEpoch(
                    leader_id=registration.leader, leader_epoch=registration.leader_epoch
                )
        return response

    def _add_endpoints(self, response: ProduceResponse) -> None:
        leaders = {
            partition.current_leader.leader_id
            for topic in response.responses
            for partition in topic.partition_responses
            if partition.error_code
        }
        if not leaders:
            return
        response.node_endpoints = [
            NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in self._image.live_nodes(self._request.listener_name)
            if node.id in leaders
        ]


def _check_distinct(body: ProduceRequest) -> None:
    """Reject a request that contains a partition twice: only one result could be returned."""
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


def _has_transactional_batches(records: list[list[MemoryRecords]]) -> bool:
    """Return whether a batch would open a transaction, which this broker could not complete.

    The flag of a corrupt batch is ignored: the append rejects it.
    """
    return any(
        batch.is_transactional and batch.is_valid()
        for partitions in records
        for partition in partitions
        for batch in partition.batches
    )


def _topic_name(image: MetadataImage, topic: TopicProduceData) -> str:
    name = image.topic_names.get(topic.topic_id)
    if name is None:
        raise UnknownTopicIdError("This server does not host this topic ID.")
    return name


def _contiguous(records: WirePart | None) -> memoryview:
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
