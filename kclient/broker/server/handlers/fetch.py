"""Fetch, versions 4-18.

Versions 4 to 12 use topic names, version 13 and later topic ids.

Differences from Apache Kafka: `max_wait_ms` is limited to five minutes, and the partitions of all
fetch sessions together are limited; beyond that a fetch is a full one (as KIP-227 allows).
"""

from collections.abc import Hashable, Iterable, Sequence

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.fetch_params import (
    CONSUMER,
    FetchIsolation,
    FetchParams,
    FetchPosition,
    FetchResult,
    FetchResults,
)
from kclient.broker.server.client_quota_manager import ClientQuotas
from kclient.broker.server.fetch_session import CachedPartition, PartitionResult
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
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
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_ANY_REPLICA = 11
_TOPIC_IDS = 13
_LEADER_HINTS = 16
_LONGEST_WAIT_MS = 300_000
_UNAUTHORIZED = FetchResult(error=TopicAuthorizationError(), aborted=[])
_ELSEWHERE = (NotLeaderOrFollowerError, FencedLeaderEpochError)


def handle(services: BrokerServices, request: Request, body: FetchRequest) -> FetchResponse | None:
    """Read each partition, or wait until `min_bytes` are available."""
    fetch = _Fetch(services, request, body)
    params = fetch.params(services.config.fetch_max_bytes, services.quotas)
    services.replica_manager.fetch_records(params, fetch, fetch.respond)
    return None


class _Fetch:
    """A fetch request in progress, as the source of the partitions to read.

    It leaves out the partitions of absent topics, and those that the client may not read, which
    complete the fetch at once.
    """

    def __init__(self, services: BrokerServices, request: Request, body: FetchRequest) -> None:
        self._request = request
        self._body = body
        self._version = version = request.header.api_version
        self._image = image = services.metadata.image
        self._auth = services.auth
        self._replica_id = _replica_id(services.config.node_id, body)
        if self._replica_id != CONSUMER:
            request.times.from_follower = True
            request.exempt()
        self._context = services.fetch_sessions.context(
            body,
            version,
            lambda topic_id: image.topic_names.get(topic_id, ""),
            is_privileged=self._replica_id != CONSUMER,
            reads_all=services.replica_manager.is_offline,
        )
        self._taken: Sequence[CachedPartition] = ()
        self._refused: dict[CachedPartition, FetchResult] = {}

    def params(self, max_bytes: int, quotas: ClientQuotas) -> FetchParams:
        """Return the parameters; `max_bytes` is the broker's limit of a response."""
        body, replica_id = self._body, self._replica_id
        max_bytes = min(body.max_bytes, max_bytes)
        if self._request.is_metered:
            quota_bytes = quotas.max_fetch_bytes(self._request)
            max_bytes = max_bytes if quota_bytes is None else min(max_bytes, quota_bytes)
        return FetchParams(
            max_wait_ms=min(body.max_wait_ms, _LONGEST_WAIT_MS),
            min_bytes=min(body.min_bytes, max_bytes),
            max_bytes=max_bytes,
            isolation=_isolation(replica_id, body.isolation_level),
            replica_id=replica_id,
            replica_epoch=body.replica_state.replica_epoch,
            only_leader=replica_id != CONSUMER or self._version < _ANY_REPLICA,
            rack_id=body.rack_id,
        )

    def watch_keys(self) -> Sequence[Hashable]:
        """Return the keys under which the fetch is watched while it waits."""
        return () if self._refused else self._context.watch_keys()

    def take(self) -> Sequence[CachedPartition]:
        """Return the partitions to read now."""
        self._taken = taken = self._context.take()
        self._refused = refused = self._refused_of(taken)
        return [each for each in taken if each not in refused] if refused else taken

    def _refused_of(self, taken: Sequence[CachedPartition]) -> dict[CachedPartition, FetchResult]:
        """Return the results of the partitions that are not read."""
        auth, request = self._auth, self._request
        if self._replica_id != CONSUMER and not auth.authorize_node(request):
            return dict.fromkeys(taken, _UNAUTHORIZED)
        refused = _absent(self._image, taken) if self._version >= _TOPIC_IDS else {}
        if auth.has_authorizer and self._replica_id == CONSUMER:
            names = {each.name for each in taken if each not in refused}
            denied = {
                name for name in names if not auth.authorize_topic(request, AclOperation.READ, name)
            }
            refused |= {each: _UNAUTHORIZED for each in taken if each.name in denied}
        return refused

    def waiting(self) -> Sequence[FetchPosition]:
        """Return the partitions that may have got bytes since they were read."""
        return self._context.waiting()

    def respond(self, results: FetchResults) -> None:
        """Send the response."""
        refused = self._refused
        found = [(each, refused.get(each) or results[each.topic_partition]) for each in self._taken]
        if self._request.is_metered and self._request.charge(self._response_bytes(found)):
            selected = self._context.throttled()
        else:
            selected = self._context.select(found)
        response = FetchResponse(
            error_code=selected.error_code,
            session_id=selected.session_id,
            responses=_topic_responses(selected.partitions),
        )
        if self._version >= _LEADER_HINTS:
            _add_leaders(self._image, self._request.listener_name, selected.partitions, response)
        self._request.respond(response)

    def _response_bytes(self, found: Sequence[PartitionResult]) -> int:
        """Return the size of the response with its correlation id, which counts as fetched."""
        response = FetchResponse(responses=_topic_responses(self._context.changed(found)))
        return 4 + sum(len(part) for part in response.encode(self._version))


def _absent(
    image: MetadataImage, partitions: Iterable[CachedPartition]
) -> dict[CachedPartition, FetchResult]:
    """Return the results of the partitions whose topic id is not that of an existing topic.

    A session also has partitions of topics that were deleted, or created again, in the meantime.
    """
    absent = {}
    names = image.topic_names
    for each in partitions:
        if not each.name or names.get(each.topic_id) != each.name:
            absent[each] = FetchResult(error=_absence(image, each.name), aborted=[])
    return absent


def _absence(image: MetadataImage, name: str) -> KafkaError:
    if not name:
        return UnknownTopicIdError()
    if name in image.topics:
        return InconsistentTopicIdError(f"{name}: the topic has another id")
    return UnknownTopicOrPartitionError(f"This server does not host {name}")


def _replica_id(node_id: int, body: FetchRequest) -> int:
    """Return the broker id of a follower, or `CONSUMER`; version 15 moved the field (KIP-903)."""
    replica_id = body.replica_id
    if replica_id == CONSUMER:
        replica_id = body.replica_state.replica_id
    if replica_id == node_id or replica_id < CONSUMER:
        raise InvalidRequestError(f"replica id: got {replica_id}, expected another broker's id")
    return replica_id


def _isolation(replica_id: int, isolation_level: int) -> FetchIsolation:
    if replica_id != CONSUMER:
        return FetchIsolation.LOG_END
    return FetchIsolation.TXN_COMMITTED if isolation_level == 1 else FetchIsolation.HIGH_WATERMARK


def _topic_responses(
    partitions: Iterable[tuple[CachedPartition, FetchResult]],
) -> list[FetchableTopicResponse]:
    """Return the partitions by topic; neighbours of one topic are in one response."""
    topics: list[FetchableTopicResponse] = []
    last: tuple[str, bytes] | None = None
    for partition, result in partitions:
        topic = (partition.name, partition.topic_id)
        if topic != last:
            last = topic
            topics.append(FetchableTopicResponse(topic=topic[0], topic_id=topic[1]))
        topics[-1].partitions.append(_partition_response(partition.index, result))
    return topics


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
        preferred_read_replica=result.preferred_read_replica,
        records=result.records,
    )
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        response.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return response


def _add_leaders(
    image: MetadataImage,
    listener_name: str,
    partitions: Iterable[tuple[CachedPartition, FetchResult]],
    response: FetchResponse,
) -> None:
    """Add the current leader to each NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH (KIP-951)."""
    leaders = set()
    responses = (part for topic in response.responses for part in topic.partitions)
    for (partition, result), part in zip(partitions, responses, strict=True):
        if isinstance(result.error, _ELSEWHERE):
            registration = image.partition(TopicPartition(partition.name, partition.index))
            if registration is not None:
                leaders.add(registration.leader)
                part.current_leader = LeaderIdAndEpoch(
                    leader_id=registration.leader, leader_epoch=registration.leader_epoch
                )
    if not leaders:
        return
    response.node_endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in image.live_nodes(listener_name)
        if node.id in leaders
    ]


APIS = (ServedApi(FetchRequest, handle),)
