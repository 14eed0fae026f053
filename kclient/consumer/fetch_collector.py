"""Collection of records from the fetch buffer (Kafka: FetchCollector)."""

import logging
from typing import NamedTuple

from kclient.common.broker_errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    TopicAuthorizationError,
    UnknownLeaderEpochError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    error_of_code,
)
from kclient.common.denials import READ, topics_denied
from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.consumer.collected import Collected
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.errors import CorruptBatchError
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.record import ConsumerRecord

_STALE_METADATA = (
    NotLeaderOrFollowerError,
    ReplicaNotAvailableError,
    FencedLeaderEpochError,
    KafkaStorageError,
    OffsetNotAvailableError,
    UnknownTopicOrPartitionError,
    UnknownTopicIdError,
    InconsistentTopicIdError,
)
_PASSING = (UnknownLeaderEpochError, UnknownServerError)


class CollectedRange(NamedTuple):
    """Positions before a collect, and its number of records.

    Attributes:
        positions: Each partition's state and position, in the order of the changes.
        consumed: Records that were counted as consumed.
    """

    positions: list[tuple[TopicPartitionState, FetchPosition]]
    consumed: int


class FetchCollector:
    """Takes records from the fetch buffer in order, and advances the positions.

    A fetch is dropped if its partition is not assigned any more, has another position, or awaits
    validation. Fetches of paused partitions stay in the buffer.

    Attributes:
        tracer: Takes the records from the fetches instead, or None; set by any thread.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        buffer: FetchBuffer,
        metrics: ConsumerFetchMetrics,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._buffer = buffer
        self._subscriptions = subscriptions
        self._metadata = network.metadata
        self._config = config
        self._clock = runtime.clock
        self._backoff = network.backoff
        self._metrics = metrics
        self.tracer: RecordTracer | None = None
        self._last: CompletedFetch | None = None
        self._before: list[tuple[TopicPartitionState, FetchPosition]] = []
        self._counted = 0

    def collect(self, target: Collected) -> None:
        """Move the next records to `target`, at most as many as it accepts.

        Raises:
            UnreadableBatchError: The next batch is corrupt; the position stays before it.
            RecordDeserializationError: A deserializer raised; the position stays at the record.
            OffsetsOutOfRangeError: A position is outside the log and the reset policy is ``none``.
            TopicAuthorizationError: Not authorized to read the topic.
        """
        self._before = []
        try:
            while target.remaining > 0:
                fetch = self._current()
                if fetch is None:
                    return
                tracer = self.tracer
                if tracer is None:
                    target.take_from(fetch)
                else:
                    tracer.take(target, fetch)
                self._advance(fetch)
                if target.remaining > 0 and fetch.is_exhausted():
                    self._buffer.remove(fetch)  # without a second check of its partition
        except KafkaError:
            # Records before the error are returned; the next call raises it again.
            if not len(target):
                self._drop_last()
                raise

    def put_back(self, records: list[ConsumerRecord], consumed: int) -> None:
        """Put back records of the last `collect` of a single fetch, and reset the position.

        Does nothing if the position has changed since.

        Args:
            records: Records of that `collect`, after interceptors.
            consumed: Number of them that the application has consumed.
        """
        self._metrics.record_consumed(consumed)
        fetch = self._last
        if fetch is None or not self._subscriptions.holds(fetch.state):
            return
        position = fetch.state.position
        if position is None or position.offset != fetch.next_fetch_offset:
            return
        fetch.put_back(records, consumed)
        fetch.state.rewind(
            FetchPosition(fetch.next_fetch_offset, fetch.last_epoch, position.leader)
        )

    def count(self, records: int) -> None:
        """Count the records of the last `collect` as consumed."""
        self._counted = records
        self._metrics.record_consumed(records)

    def confirm(self) -> None:
        """Confirm the last `collect`: its records were returned to the application."""
        self._before = []
        self._counted = 0

    def take_range(self) -> CollectedRange:
        """Confirm the last `collect`, and return what restores the positions before it."""
        taken = CollectedRange(self._before, self._counted)
        self.confirm()
        return taken

    def undo(self) -> None:
        """Reset the positions to before the last `collect`, unless it was confirmed."""
        self._metrics.record_consumed(-self._counted)
        self._counted = 0
        while self._before:
            self._rewind(*self._before[-1])
            self._before.pop()

    def restore(self, before: CollectedRange) -> None:
        """Reset the positions to before a `collect` that was confirmed."""
        self._metrics.record_consumed(-before.consumed)
        for state, position in reversed(before.positions):
            self._rewind(state, position)

    # --- inside

    def _rewind(self, state: TopicPartitionState, position: FetchPosition) -> None:
        """Set a position back, never forward: records of an earlier collect may be wanted again."""
        now = state.position
        if not self._subscriptions.holds(state) or not state.has_valid_position() or now is None:
            return
        if position.offset < now.offset:
            state.rewind(position)
            self._buffer.drop(state.partition)

    def _current(self) -> CompletedFetch | None:
        """Return the first fetch with records to return; drop stale and exhausted ones."""
        while (fetch := self._buffer.first()) is not None:
            self._last = fetch
            if self._is_ready(fetch):
                return fetch
            self._buffer.remove(fetch)
        return None

    def _is_ready(self, fetch: CompletedFetch) -> bool:
        state = fetch.state
        position = state.position
        if not self._subscriptions.holds(state) or not state.is_fetchable() or position is None:
            return False
        if position.offset != fetch.next_fetch_offset:
            self._log.debug(
                "dropped a stale fetch of %s at %d", state.partition, fetch.fetch_offset
            )
            return False
        if not fetch.initialized:
            if fetch.data.error_code:
                self._handle_error(fetch)
                return False
            self._take_over_ends(fetch)
        return not fetch.is_exhausted()

    def _take_over_ends(self, fetch: CompletedFetch) -> None:
        state, data = fetch.state, fetch.data
        fetch.initialized = True
        state.retry_succeeded()
        if data.high_watermark >= 0:
            state.high_watermark = data.high_watermark
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.preferred_read_replica >= 0:
            until_ms = self._clock.monotonic_ms() + self._config.metadata_max_age_ms
            state.prefer_read_replica(data.preferred_read_replica, until_ms)

    def _handle_error(self, fetch: CompletedFetch) -> None:
        """Handle the error code of a partition as Kafka's consumer does."""
        state = fetch.state
        error = error_of_code(fetch.data.error_code)
        now_ms = self._clock.monotonic_ms()
        # An unexpected error that is only retried is reported nowhere else.
        level = logging.WARNING if isinstance(error, UnknownServerError) else logging.INFO
        self._log.log(level, "fetch of %s at %d: %s", state.partition, fetch.fetch_offset, error)
        if isinstance(error, OffsetOutOfRangeError):
            # A follower may lag behind: ask the leader before resetting the position.
            if state.preferred_read_replica(now_ms) is not None:
                state.clear_preferred_read_replica()
            else:
                self._subscriptions.reset_by_default(state)
            return
        state.retry_later(now_ms, self._backoff)
        if isinstance(error, _STALE_METADATA):
            state.clear_preferred_read_replica()
            self._metadata.request_update()
        elif isinstance(error, TopicAuthorizationError):
            raise topics_denied((state.partition.topic,), READ)
        elif isinstance(error, CorruptRecordError):
            raise CorruptBatchError(
                state.partition,
                fetch.fetch_offset,
                fetch.fetch_offset + 1,
                "the broker reports a corrupt record",
            )
        elif not isinstance(error, _PASSING):
            raise error

    def _advance(self, fetch: CompletedFetch) -> None:
        """Advance the position of the partition to that of the fetch."""
        state = fetch.state
        position = state.position
        if position is not None and fetch.next_fetch_offset != position.offset:
            self._before.append((state, position))
            # Not marked as changed: the next fetch still starts after the buffered data.
            state.position = FetchPosition(
                fetch.next_fetch_offset, fetch.last_epoch, position.leader
            )

    def _drop_last(self) -> None:
        fetch, self._last = self._last, None
        if fetch is not None:
            self._buffer.drop(fetch.state.partition)
