"""ListOffsets, asked of the leaders and read back (Kafka: OffsetFetcherUtils)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kclient.client.client_response import ClientResponse
from kclient.client.metadata import Metadata
from kclient.client.request_builder import SimpleBuilder
from kclient.common.broker_errors import (
    LeaderNotAvailableError,
    TopicAuthorizationError,
    UnsupportedForMessageFormatError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import Node, OffsetAndTimestamp, TopicPartition
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.failure_log import FailureLog
from kclient.consumer.leaders import current_leader
from kclient.consumer.missing_partitions import partition_problem
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER_REPLICA_ID = -1
_OLDEST_WITH_ISOLATION = 2


@dataclass(slots=True)
class ListOffsetsAnswer:
    """What one broker said.

    Attributes:
        found: Offsets, with timestamp and leader epoch; None where no record is that late.
        to_retry: Partitions it could not answer for at present.
        unauthorized: Topics that may not be read.
        trouble: Why a partition is to be asked for again; None if none is.
    """

    found: dict[TopicPartition, OffsetAndTimestamp | None] = field(default_factory=dict)
    to_retry: set[TopicPartition] = field(default_factory=set)
    unauthorized: set[str] = field(default_factory=set)
    trouble: KafkaError | None = None

    def raise_unauthorized(self) -> None:
        """Raise `TopicAuthorizationError` if a topic may not be read."""
        if self.unauthorized:
            raise TopicAuthorizationError(
                f"{', '.join(sorted(self.unauthorized))}: may not be read"
            )


class ListOffsetsRequests:
    """Sends look-ups to the leaders."""

    def __init__(
        self,
        network: ConsumerNetworkClient,
        metadata: Metadata,
        isolation_level: int,
        request_timeout_ms: int,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Lookup of offsets")
        self._network = network
        self._metadata = metadata
        self._isolation_level = isolation_level
        self._request_timeout_ms = request_timeout_ms

    def send(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[frozenset[TopicPartition], RequestFuture[ListOffsetsAnswer]]:
        """Ask for the first offset at or after each timestamp, or a special position.

        Returns:
            The answers to come, each with the partitions it is for. Partitions whose leader is
            not known, or cannot be reached now, are left out; metadata is asked for them.
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
            frozenset(asked): self._network.send(node, self._builder(asked)).then(
                partial(self._read, asked)
            )
            for node, asked in groups.items()
        }

    def _note_leaderless(self, partitions: Sequence[TopicPartition]) -> None:
        """Keep why the first partition of these cannot be looked up, for a call that times out."""
        if self._metadata.cluster().is_bootstrap:
            return  # no broker was reached, which is the cause then
        problems = (partition_problem(self._metadata, each) for each in partitions)
        found = next((problem for problem in problems if problem is not None), None)
        self._network.note_trouble(
            found or LeaderNotAvailableError(f"{partitions[0]}: no metadata of the topic yet")
        )

    def _read(
        self, asked: Mapping[TopicPartition, object], response: ClientResponse
    ) -> ListOffsetsAnswer:
        answer = ListOffsetsAnswer(to_retry=set(asked))
        for topic in response.body(ListOffsetsResponse).topics:
            for data in topic.partitions:
                partition = TopicPartition(topic.name, data.partition_index)
                if partition in asked:
                    _read_partition(answer, partition, data)
        if answer.trouble is None:
            self._failures.succeeded()
        else:
            self._failures.failed(answer.trouble)
            self._network.note_trouble(answer.trouble)
        return answer

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
    answer: ListOffsetsAnswer, partition: TopicPartition, data: ListOffsetsPartitionResponse
) -> None:
    error = error_for_code(data.error_code, str(partition))
    if error is None:
        answer.to_retry.discard(partition)
        answer.found[partition] = (
            None
            if data.offset < 0
            else OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch)
        )
    elif isinstance(error, UnsupportedForMessageFormatError):
        answer.to_retry.discard(partition)
        answer.found[partition] = None
    elif isinstance(error, TopicAuthorizationError):
        answer.to_retry.discard(partition)
        answer.unauthorized.add(partition.topic)
    else:
        answer.trouble = error
