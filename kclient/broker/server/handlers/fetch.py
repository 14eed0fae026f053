"""Fetch, versions 4-18.

Versions 4 to 12 use topic names, version 13 and later topic ids.

Differences from Apache Kafka: there are no fetch sessions. The response has session id 0, so every
fetch is a full one (as KIP-227 allows). `max_wait_ms` is limited to five minutes.
"""

from kclient.broker.controller.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.fetch_params import (
    CONSUMER,
    FetchIsolation,
    FetchParams,
    FetchPartition,
    FetchResult,
)
from kclient.broker.replication.replica_manager import FetchResults
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import (
    NONE,
    FencedLeaderEpochError,
    FetchSessionIdNotFoundError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_TOPIC_IDS = 13
_LEADER_HINTS = 16
_FINAL_EPOCH = -1
_LONGEST_WAIT_MS = 300_000
_ELSEWHERE = {code_of(NotLeaderOrFollowerError()), code_of(FencedLeaderEpochError())}


def handle(services: BrokerServices, request: Request, body: FetchRequest) -> FetchResponse | None:
    """Read each partition, or wait until `min_bytes` are available."""
    if body.session_id != 0 and body.session_epoch != _FINAL_EPOCH:
        return FetchResponse(error_code=code_of(FetchSessionIdNotFoundError()))
    image = services.controller.image
    replica_id = _replica_id(services.config.node_id, image, body)
    by_id = request.header.api_version >= _TOPIC_IDS
    topics = [_resolved(image, topic, by_id=by_id) for topic in body.topics]
    wanted = {
        TopicPartition(name, part.partition): FetchPartition(
            topic.topic_id,
            part.fetch_offset,
            part.partition_max_bytes,
            part.current_leader_epoch,
            part.last_fetched_epoch,
        )
        for name, topic in topics
        for part in topic.partitions
        if name
    }
    params = FetchParams(
        # An unknown topic completes the fetch at once.
        max_wait_ms=min(body.max_wait_ms, _LONGEST_WAIT_MS) if all(n for n, _ in topics) else 0,
        min_bytes=body.min_bytes,
        max_bytes=min(body.max_bytes, services.config.fetch_max_bytes),
        isolation=_isolation(replica_id, body.isolation_level),
        replica_id=replica_id,
    )

    absence = UnknownTopicIdError() if by_id else UnknownTopicOrPartitionError()

    def on_done(results: FetchResults) -> None:
        response = FetchResponse(
            responses=[_topic_response(name, topic, results, absence) for name, topic in topics]
        )
        if request.header.api_version >= _LEADER_HINTS:
            names = [name for name, _ in topics]
            _add_leaders(image, request.listener_name, names, response)
        request.respond(response)

    services.replica_manager.fetch_records(params, wanted, on_done)
    return None


def _replica_id(node_id: int, image: MetadataImage, body: FetchRequest) -> int:
    """Return the broker id of a follower, or `CONSUMER`; version 15 moved the field (KIP-903)."""
    replica_id = body.replica_id
    if replica_id == CONSUMER:
        replica_id = body.replica_state.replica_id
    if replica_id != CONSUMER and (replica_id == node_id or replica_id not in image.brokers):
        raise InvalidRequestError(f"replica id: got {replica_id}, expected another broker's id")
    return replica_id


def _isolation(replica_id: int, isolation_level: int) -> FetchIsolation:
    if replica_id != CONSUMER:
        return FetchIsolation.LOG_END
    return FetchIsolation.TXN_COMMITTED if isolation_level == 1 else FetchIsolation.HIGH_WATERMARK


def _resolved(image: MetadataImage, topic: FetchTopic, *, by_id: bool) -> tuple[str, FetchTopic]:
    return (image.topic_names.get(topic.topic_id, "") if by_id else topic.topic), topic


def _topic_response(
    name: str, topic: FetchTopic, results: FetchResults, absence: KafkaError
) -> FetchableTopicResponse:
    unknown = FetchResult(error=absence)
    return FetchableTopicResponse(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partitions=[
            _partition_response(
                part.partition, results.get(TopicPartition(name, part.partition), unknown)
            )
            for part in topic.partitions
        ],
    )


def _partition_response(index: int, result: FetchResult) -> PartitionData:
    response = PartitionData(
        partition_index=index,
        error_code=NONE if result.error is None else code_of(result.error),
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=(
            None
            if result.aborted is None
            else [
                AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset in result.aborted
            ]
        ),
        records=result.records,
    )
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        response.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return response


def _add_leaders(
    image: MetadataImage, listener_name: str, names: list[str], response: FetchResponse
) -> None:
    """Add the current leader to each NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH (KIP-951)."""
    leaders = set()
    for name, topic in zip(names, response.responses, strict=True):
        for part in topic.partitions:
            registration = image.partition(TopicPartition(name, part.partition_index))
            if part.error_code in _ELSEWHERE and registration is not None:
                leaders.add(registration.leader)
                part.current_leader = LeaderIdAndEpoch(
                    leader_id=registration.leader, leader_epoch=registration.leader_epoch
                )
    response.node_endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in (image.live_nodes(listener_name) if leaders else ())
        if node.id in leaders
    ]


APIS = (ServedApi(FetchRequest, handle),)
