"""WriteTxnMarkers, versions 1-2: ends transactions in the logs of partitions (KIP-98).

A transaction coordinator sends it to the leaders of the partitions of a transaction.
"""

from collections.abc import Callable, Iterator
from functools import partial

from kclient.broker.coordinator.runtime.partition_log import TransactionEnd
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.partition import ACKS_ALL
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidRequestError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kclient.record import ProducerIdAndEpoch

_TIMEOUT_MS = 30_000
"""Time in which a marker must be replicated, the default of ``request.timeout.ms``."""

_NOT_READY = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
"""Errors of the group coordinator that a transaction coordinator repeats the marker for."""


def handle(services: BrokerServices, request: Request, body: WriteTxnMarkersRequest) -> None:
    """Append the markers; respond when each is committed or has failed."""
    if not services.auth.authorize_cluster(request, AclOperation.ALTER, is_logged=False):
        services.auth.require_node(request)
    for marker in body.markers:
        if marker.producer_id < 0:
            raise InvalidRequestError(f"producer id: got {marker.producer_id}, expected >= 0")
    write_markers(services, body, request.respond)


def write_markers(
    services: BrokerServices,
    body: WriteTxnMarkersRequest,
    reply: Callable[[WriteTxnMarkersResponse], None],
) -> None:
    """Append the markers to the logs of this broker; reply when each is committed or has failed."""
    _Writing(services, body, reply).start()


class _Writing:
    """A WriteTxnMarkers request in progress; the lock guards the results."""

    def __init__(
        self,
        services: BrokerServices,
        body: WriteTxnMarkersRequest,
        reply: Callable[[WriteTxnMarkersResponse], None],
    ) -> None:
        self._replicas = services.replica_manager
        self._groups = services.groups
        self._now_ms = services.clock.wall_ms()
        self._reply = reply
        self._markers = body.markers
        self._lock = services.tasks.lock()
        self._codes: dict[int, dict[TopicPartition, int]] = {}
        self._pending = 0

    def start(self) -> None:
        steps = [step for marker in self._markers for step in self._steps(marker)]
        self._pending = len(steps)
        if not steps:
            self._respond()
        for step in steps:
            step()

    def _steps(self, marker: WritableTxnMarker) -> Iterator[Callable[[], None]]:
        """Yield the actions that write a marker; each calls `_on_done` once."""
        codes = self._codes.setdefault(marker.producer_id, {})
        end = _end_of(marker)
        records: dict[TopicPartition, MemoryRecords] = {}
        for topic in marker.topics:
            for index in topic.partition_indexes:
                key = TopicPartition(topic.name, index)
                if not self._is_hosted(key):
                    codes[key] = code_of(UnknownTopicOrPartitionError)
                elif topic.name == CONSUMER_OFFSETS:
                    yield partial(self._end_in_group_coordinator, key, end)
                else:
                    records[key] = MemoryRecords(end.batch(self._now_ms))
        if records:
            yield partial(self._append, end, records)

    def _is_hosted(self, key: TopicPartition) -> bool:
        try:
            self._replicas.partition(key)
        except KafkaError:
            return False
        return True

    def _end_in_group_coordinator(self, key: TopicPartition, end: TransactionEnd) -> None:
        """Let the writer of the offsets append the marker, and wait until it is applied."""

        def on_ended(error: KafkaError | None) -> None:
            if isinstance(error, _NOT_READY):
                error = NotLeaderOrFollowerError(str(error))
            code = NONE if error is None else code_of(error)
            self._on_done(end.producer.producer_id, {key: code})

        self._groups.end_transaction(key.partition, end, on_ended)

    def _append(self, end: TransactionEnd, records: dict[TopicPartition, MemoryRecords]) -> None:
        def on_appended(results: AppendResults) -> None:
            self._on_done(
                end.producer.producer_id,
                {
                    key: NONE if result.error is None else code_of(result.error)
                    for key, result in results.items()
                },
            )

        self._replicas.append_records(
            ACKS_ALL, records, _TIMEOUT_MS, on_appended, "coordinator", end.transaction_version
        )

    def _on_done(self, producer_id: int, codes: dict[TopicPartition, int]) -> None:
        with self._lock:
            self._codes[producer_id].update(codes)
            self._pending -= 1
            is_last = not self._pending
        if is_last:
            self._respond()

    def _respond(self) -> None:
        self._reply(
            WriteTxnMarkersResponse(
                markers=[_result(producer_id, codes) for producer_id, codes in self._codes.items()]
            )
        )


def _end_of(marker: WritableTxnMarker) -> TransactionEnd:
    return TransactionEnd(
        ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def _result(producer_id: int, codes: dict[TopicPartition, int]) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for key, code in codes.items():
        topic = topics.setdefault(key.topic, WritableTxnMarkerTopicResult(name=key.topic))
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=key.partition, error_code=code)
        )
    return WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))


def _failed(body: WriteTxnMarkersRequest, code: int) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            _result(
                marker.producer_id,
                {
                    TopicPartition(topic.name, index): code
                    for topic in marker.topics
                    for index in topic.partition_indexes
                },
            )
            for marker in body.markers
        ]
    )


APIS = (ServedApi(WriteTxnMarkersRequest, handle, _failed),)
