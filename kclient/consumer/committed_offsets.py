"""Lookup of committed offsets (Kafka: ConsumerCoordinator.fetchCommittedOffsets)."""

from collections.abc import Iterable, Sequence

from kclient.client.client_request import ClientResponse, RequestBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    error_for_code,
)
from kclient.common.denials import DESCRIBE, group_denied, topics_denied
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, FailureLog, LogContext
from kclient.common.types import ConsumerGroupMetadata, Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

Committed = dict[TopicPartition, OffsetAndMetadata | None]

_FIRST_WITH_GROUPS = 8
_FIRST_WITH_STABLE = 7
_LATEST_WITH_NAMES = 9


class _Builder(RequestBuilder):
    """Puts the group in top-level fields or in a list, by version."""

    api_key = ApiKey.OFFSET_FETCH
    request_type = OffsetFetchRequest
    oldest_allowed_version = OffsetFetchRequest.min_version
    latest_allowed_version = _LATEST_WITH_NAMES

    def __init__(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        self._group_id = group_id
        self._topics: dict[str, list[int]] = {}
        for partition in partitions:
            self._topics.setdefault(partition.topic, []).append(partition.partition)

    def build(self, version: int) -> OffsetFetchRequest:
        # The broker reports partitions with pending transactional commits as unstable.
        stable = version >= _FIRST_WITH_STABLE
        if version >= _FIRST_WITH_GROUPS:
            group = OffsetFetchRequestGroup(
                group_id=self._group_id,
                topics=[
                    OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                    for name, numbers in self._topics.items()
                ],
            )
            return OffsetFetchRequest(groups=[group], require_stable=stable)
        return OffsetFetchRequest(
            group_id=self._group_id,
            topics=[
                OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in self._topics.items()
            ],
            require_stable=stable,
        )


class CommittedLookup:
    """A lookup of committed offsets that is retried until it succeeds or fails fatally.

    Attributes:
        partitions: Partitions to look up.
    """

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        self._outcome: RequestFuture[Committed] = RequestFuture()
        self._in_flight = False
        self._attempts = 0
        self._next_attempt_ms = 0.0
        if not self.partitions:
            self._outcome.succeed({})

    @property
    def done(self) -> bool:
        """Whether it succeeded or failed with a fatal error."""
        return self._outcome.done

    @property
    def value(self) -> Committed:
        """The offsets, None for partitions without; raise the error if the lookup failed."""
        return self._outcome.value

    def step(
        self, offsets: "CommittedOffsets", backoff: ExponentialBackoff, now_ms: float
    ) -> float:
        """Send a request if one is due; return the time until the next step."""
        if self.done or self._in_flight:
            return float("inf")
        if now_ms < self._next_attempt_ms:
            return self._next_attempt_ms - now_ms
        future = offsets.fetch(self.partitions)
        if future is None:
            return offsets.find_coordinator(now_ms)
        self._next_attempt_ms = now_ms + backoff.backoff(self._attempts)
        self._attempts += 1
        self._in_flight = True
        future.on_done(self._take)
        return self._next_attempt_ms - now_ms

    def _take(self, future: RequestFuture[Committed]) -> None:
        self._in_flight = False
        if future.error is None:
            self._outcome.succeed(future.value)
        elif not future.error.retriable:
            self._outcome.fail(future.error)


class CommittedOffsets:
    """Sends OffsetFetch requests to the coordinator."""

    def __init__(
        self,
        group_id: str,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Lookup of committed offsets")
        self._group_id = group_id
        self._network = network
        self._finder = finder

    def find_coordinator(self, now_ms: float) -> float:
        """Find the coordinator; return the time until the next step.

        Raises:
            GroupAuthorizationError: Not authorized to access the group.
        """
        return self._finder.step(now_ms)

    def fetch(self, partitions: Sequence[TopicPartition]) -> RequestFuture[Committed] | None:
        """Send one request; return None while the coordinator is unknown."""
        coordinator: Node | None = self._finder.coordinator()
        if coordinator is None:
            return None
        builder = _Builder(self._group_id, partitions)
        return self._network.send(coordinator, builder).then(
            lambda response: self._read(response, partitions), self._failed
        )

    def _read(self, response: ClientResponse, partitions: Sequence[TopicPartition]) -> Committed:
        body = response.body(OffsetFetchResponse)
        found: Committed = dict.fromkeys(partitions)
        missing = set(partitions)
        group = next((group for group in body.groups if group.group_id == self._group_id), None)
        self._check(group.error_code if group is not None else body.error_code)
        for topic in group.topics if group is not None else body.topics:
            for data in topic.partitions:
                partition = TopicPartition(topic.name, data.partition_index)
                if partition in missing:
                    missing.discard(partition)
                    found[partition] = self._position(partition, data)
        if missing:
            raise CoordinatorNotAvailableError("the response does not contain all partitions")
        self._failures.succeeded()
        return found

    def _position(
        self,
        partition: TopicPartition,
        data: OffsetFetchResponsePartition | OffsetFetchResponsePartitions,
    ) -> OffsetAndMetadata | None:
        error = error_for_code(data.error_code)
        if isinstance(error, TopicAuthorizationError):
            raise topics_denied((partition.topic,), DESCRIBE)
        if error is not None:
            raise error
        if data.committed_offset < 0:
            return None
        return OffsetAndMetadata(
            data.committed_offset, data.metadata or "", data.committed_leader_epoch
        )

    def _check(self, code: int) -> None:
        error = error_for_code(code)
        if isinstance(error, GroupAuthorizationError):
            raise group_denied(self._group_id)
        if error is not None:
            raise error

    def _failed(self, error: KafkaError) -> None:
        self._failures.failed(error)
        self._network.record_error(error)
        self._finder.check_lost(error)


class UnfinishedLookup:
    """Keeps the lookup of a call that timed out (Kafka: PendingCommittedOffsetRequest).

    The next call for the same partitions continues it, so that repeated calls with a timeout of 0
    return the response.
    """

    def __init__(self, max_age_ms: float) -> None:
        """Initialize.

        Args:
            max_age_ms: Age after which a lookup is discarded.
        """
        self._max_age_ms = max_age_ms
        self._lookup: CommittedLookup | None = None
        self._member: ConsumerGroupMetadata | None = None
        self._began_ms = 0.0

    def begin(
        self, partitions: Sequence[TopicPartition], member: ConsumerGroupMetadata, now_ms: float
    ) -> CommittedLookup:
        """Return the lookup that was kept, or a new one if it does not apply.

        Args:
            partitions: Partitions to look up.
            member: Current membership; in another generation other members may have committed.
            now_ms: Current time.
        """
        kept = self._lookup
        is_fresh = now_ms < self._began_ms + self._max_age_ms and member == self._member
        if kept is not None and is_fresh and kept.partitions == tuple(partitions):
            return kept
        self._lookup, self._member, self._began_ms = CommittedLookup(partitions), member, now_ms
        return self._lookup

    def discard(self) -> None:
        """Discard the lookup: it is complete, or a commit changes its result."""
        self._lookup = None
