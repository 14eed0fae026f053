"""Validation of positions after a leader change, to detect truncation (KIP-320)."""

from collections.abc import Sequence
from functools import partial

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.common.broker_errors import (
    TopicAuthorizationError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.denials import DESCRIBE, topics_denied
from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.auto_offset_reset import NONE
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.errors import LogTruncationError
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
    current_leader,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.log_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER_REPLICA_ID = -1
# Older versions require the ClusterAction permission.
_OLDEST_FOR_CONSUMERS = 3

_Asked = dict[TopicPartition, tuple[TopicPartitionState, FetchPosition]]


class OffsetValidator:
    """Compares positions with the end offset of their leader epoch."""

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._network = network
        self._metadata = network.metadata
        self._subscriptions = subscriptions
        self._clock = runtime.clock
        self._request_timeout_ms = config.request_timeout_ms
        self._backoff = network.backoff
        self._error: KafkaError | None = None

    def can_validate(self, node: Node) -> bool:
        """Return whether a broker supports validation; True if its versions are not known yet."""
        versions = self._network.api_versions(node)
        if versions is None:
            return True
        offered = versions.offers(ApiKey.OFFSET_FOR_LEADER_EPOCH)
        return offered is not None and offered.highest >= _OLDEST_FOR_CONSUMERS

    def validate_positions(self, now_ms: float) -> None:
        """Send OffsetForLeaderEpoch for positions that await validation and have none in flight.

        Raises:
            LogTruncationError: Records that were read were truncated, and there is no reset policy.
            KafkaError: An earlier request failed with a fatal error.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        groups: dict[Node, _Asked] = {}
        for state in self._subscriptions.in_state(FetchState.AWAIT_VALIDATION, now_ms):
            position = state.position
            node = current_leader(self._metadata.cluster(), state.partition).leader
            if position is None or node is None:
                self._metadata.request_update()
            elif not self.can_validate(node):
                state.complete_validation()
            elif not self._network.is_unavailable(node):
                groups.setdefault(node, {})[state.partition] = (state, position)
        for node, asked in groups.items():
            for state, _ in asked.values():
                state.next_attempt_ms = now_ms + self._request_timeout_ms
            self._network.send(node, _builder(list(asked.values()))).on_done(
                partial(self._take, asked)
            )

    def _take(self, asked: _Asked, future: RequestFuture[ClientResponse]) -> None:
        now_ms = self._clock.monotonic_ms()
        for state, _ in asked.values():
            state.retry_later(now_ms, self._backoff)
        if future.error is not None:
            self._failed(asked, future.error)
            return
        for topic in future.value.body(OffsetForLeaderEpochResponse).topics:
            for end in topic.partitions:
                entry = asked.get(TopicPartition(topic.topic, end.partition))
                if entry is not None:
                    self._take_partition(*entry, end)

    def _failed(self, asked: _Asked, error: KafkaError) -> None:
        if isinstance(error, UnsupportedVersionError):
            for state, _ in asked.values():
                state.complete_validation()
        elif error.retriable:
            self._metadata.request_update()
        else:
            self._error = error

    def _take_partition(
        self, state: TopicPartitionState, asked: FetchPosition, end: EpochEndOffset
    ) -> None:
        moved = state.fetch_state is not FetchState.AWAIT_VALIDATION or state.position != asked
        if moved or not self._subscriptions.holds(state):
            return
        error = error_for_code(end.error_code)
        if isinstance(error, TopicAuthorizationError):
            self._error = topics_denied((state.partition.topic,), DESCRIBE)
        elif error is not None:
            self._log.info("validation of %s: %s; will be retried", state.partition, error)
            self._metadata.request_update()
        elif end.end_offset < 0 or end.leader_epoch < 0:
            self._truncated(state, asked, None)
        elif end.end_offset < asked.offset:
            self._truncated(state, asked, OffsetAndMetadata(end.end_offset, "", end.leader_epoch))
        else:
            state.complete_validation()

    def _truncated(
        self,
        state: TopicPartitionState,
        position: FetchPosition,
        divergent: OffsetAndMetadata | None,
    ) -> None:
        if self._subscriptions.default_reset == NONE:
            self._error = LogTruncationError(
                {state.partition: position.offset}, {state.partition: divergent}
            )
        elif divergent is None:
            self._log.warning(
                "log of %s was truncated before position %d; resetting by policy",
                state.partition,
                position.offset,
            )
            state.reset(self._subscriptions.default_reset)
        else:
            self._log.warning(
                "log of %s was truncated: position goes from %d back to %d, where the logs part",
                state.partition,
                position.offset,
                divergent.offset,
            )
            state.seek(
                position._replace(offset=divergent.offset, offset_epoch=divergent.leader_epoch)
            )


def _builder(
    asked: Sequence[tuple[TopicPartitionState, FetchPosition]],
) -> SimpleBuilder:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for state, position in asked:
        name = state.partition.topic
        topics.setdefault(name, OffsetForLeaderTopic(topic=name)).partitions.append(
            OffsetForLeaderPartition(
                partition=state.partition.partition,
                current_leader_epoch=position.leader.epoch,
                leader_epoch=position.offset_epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER_REPLICA_ID, topics=list(topics.values())
    )
    return SimpleBuilder(request, oldest=_OLDEST_FOR_CONSUMERS)
