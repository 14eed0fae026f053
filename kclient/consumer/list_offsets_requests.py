"""ListOffsets, asked of the leaders and read back (Kafka: OffsetFetcherUtils)."""

from collections.abc import Mapping, Sequence
from functools import partial

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.common.broker_errors import (
    LeaderNotAvailableError,
    TopicAuthorizationError,
    UnsupportedForMessageFormatError,
    error_for_code,
)
from kclient.common.denials import DESCRIBE, topics_denied
from kclient.common.errors import KafkaError
from kclient.common.log_context import FailureLog, LogContext
from kclient.common.types import Node, OffsetAndTimestamp, TopicPartition
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.missing_partitions import partition_problem
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.topic_partition_state import current_leader
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER_REPLICA_ID = -1
_OLDEST_WITH_ISOLATION = 2


class ListOffsetsResult:
    """Content of one ListOffsets response.

    Attributes:
        found: Offsets with timestamp and leader epoch; None if no record is that late.
        to_retry: Partitions to retry.
        unauthorized: Topics that the client is not authorized to read.
        retry_error: Error of a partition to retry; None if there is none.
    """

    __slots__ = ("found", "retry_error", "to_retry", "unauthorized")

    def __init__(
        self,
        found: dict[TopicPartition, OffsetAndTimestamp | None] | None = None,
        to_retry: set[TopicPartition] | None = None,
        unauthorized: set[str] | None = None,
    ) -> None:
        self.found = {} if found is None else found
        self.to_retry = set() if to_retry is None else to_retry
        self.unauthorized = set() if unauthorized is None else unauthorized
        self.retry_error: KafkaError | None = None

    def raise_unauthorized(self) -> None:
        """Raise `TopicAuthorizationError` if the client is not authorized to read a topic."""
        if self.unauthorized:
            raise topics_denied(self.unauthorized, DESCRIBE)


class ListOffsetsRequests:
    """Sends ListOffsets requests to the leaders."""

    def __init__(
        self,
        config: ConsumerConfig,
        network: ConsumerNetworkClient,
        log_context: LogContext,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Lookup of offsets")
        self._network = network
        self._metadata = network.metadata
        self._isolation_level = config.isolation_level
        self._request_timeout_ms = config.request_timeout_ms

    def send(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[tuple[TopicPartition, ...], RequestFuture[ListOffsetsResult]]:
        """Look up the first offset at or after each timestamp, or a special position.

        Returns:
            A future per request, by the partitions of the request. Partitions whose leader is
            unknown or unavailable are left out; a metadata update is requested for them.
        """
        cluster = self._metadata.cluster()
        groups: dict[Node, dict[TopicPartition, tuple[int, int]]] = {}
        leaderless: list[TopicPartition] = []
        for partition, timestamp in timestamps.items():
            leader = current_leader(cluster, partition)
            if leader.leader is None:
                leaderless.append(partition)
            elif not self._network.is_unavailable(leader.leader):
                groups.setdefault(leader.leader, {})[partition] = (timestamp, leader.epoch)
        if leaderless:
            self._metadata.request_update()
            self._note_leaderless(leaderless)
        return {
            tuple(asked): self._network.send(node, self._builder(asked)).then(
                partial(self._read, asked)
            )
            for node, asked in groups.items()
        }

    def _note_leaderless(self, partitions: Sequence[TopicPartition]) -> None:
        """Record why the first partition has no leader, for the error of a call that times out."""
        if self._metadata.cluster().is_bootstrap:
            return  # no broker was reached, which is reported instead
        problems = (partition_problem(self._metadata, each) for each in partitions)
        found = next((problem for problem in problems if problem is not None), None)
        self._network.record_error(
            found or LeaderNotAvailableError(f"{partitions[0]}: no metadata of the topic yet")
        )

    def _read(
        self, asked: Mapping[TopicPartition, object], response: ClientResponse
    ) -> ListOffsetsResult:
        result = ListOffsetsResult(to_retry=set(asked))
        for topic in response.body(ListOffsetsResponse).topics:
            for data in topic.partitions:
                partition = TopicPartition(topic.name, data.partition_index)
                if partition in asked:
                    _read_partition(result, partition, data)
        if result.retry_error is None:
            self._failures.succeeded()
        else:
            self._failures.failed(result.retry_error)
            self._network.record_error(result.retry_error)
        return result

    def _builder(self, asked: Mapping[TopicPartition, tuple[int, int]]) -> SimpleBuilder:
        topics: dict[str, ListOffsetsTopic] = {}
        for partition, (timestamp, epoch) in asked.items():
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=epoch,
                    timestamp=timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
            timeout_ms=self._request_timeout_ms,
        )
        return SimpleBuilder(request, oldest=_OLDEST_WITH_ISOLATION)


def _read_partition(
    result: ListOffsetsResult, partition: TopicPartition, data: ListOffsetsPartitionResponse
) -> None:
    error = error_for_code(data.error_code, str(partition))
    if error is None:
        result.to_retry.discard(partition)
        result.found[partition] = (
            None
            if data.offset < 0
            else OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch)
        )
    elif isinstance(error, UnsupportedForMessageFormatError):
        result.to_retry.discard(partition)
        result.found[partition] = None
    elif isinstance(error, TopicAuthorizationError):
        result.to_retry.discard(partition)
        result.unauthorized.add(partition.topic)
    else:
        result.retry_error = error
