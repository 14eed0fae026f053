"""Calls for positions: seek, offset lookup, lag."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Never

from kclient.common.errors import IllegalStateError
from kclient.common.foreign_names import refuse_keywords
from kclient.common.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kclient.consumer.arguments import (
    check_each,
    check_partition,
    check_partitions,
    check_seek,
    check_timestamps,
)
from kclient.consumer.auto_offset_reset import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    AutoOffsetReset,
)
from kclient.consumer.consumer_base import ConsumerBase
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.fetch_config import READ_COMMITTED
from kclient.consumer.fetch_position import FetchPosition
from kclient.consumer.foreign_names import TIMEOUT
from kclient.consumer.leaders import current_leader
from kclient.consumer.missing_partitions import ExistenceCheck
from kclient.consumer.offset_fetcher import OffsetLookup
from kclient.consumer.topic_partition_state import TopicPartitionState


class ConsumerPositions(ConsumerBase):
    """Reads and sets positions, and looks up offsets."""

    def position(
        self, partition: TopicPartition, timeout: float | None = None, **_unknown: Never
    ) -> int:
        """Return the offset of the next record to be returned.

        Waits if the position has to be looked up. If it is known, any thread may call this, even
        while another one is in a call.

        Args:
            partition: An assigned partition.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; with 0, repeated
                calls return the position once it is known.

        Raises:
            IllegalStateError: The partition is not assigned.
            NoOffsetForPartitionError: No offset is committed and the reset policy is ``none``.
            UnknownTopicOrPartitionError: The brokers have confirmed that it does not exist.
            KafkaTimeoutError: The position was not found in time.
        """
        refuse_keywords("Consumer.position", _unknown, TIMEOUT)
        checked = check_partition(partition)
        known = self._position_elsewhere(checked)
        if known is not None:
            return known
        deadline_ms = self._deadline_ms(timeout, "position")
        with self._call() as parts:
            state = parts.subscriptions.state(checked)
            existence = ExistenceCheck(parts.metadata, [checked])
            parts.loop.wait_for(
                state.has_valid_position,
                lambda now_ms: self._position_step(parts, existence, now_ms),
                deadline_ms,
                f"position of {checked}",
            )
            if state.position is None:
                raise IllegalStateError(f"{checked} was revoked during the call")
            return state.position.offset

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata | OffsetAndTimestamp
    ) -> None:
        """Set the position of a partition.

        Args:
            partition: An assigned partition.
            offset: Offset of the next record, or a result of `committed` or `offsets_for_times`:
                if that has a leader epoch, the position is validated first.

        Raises:
            IllegalStateError: The partition is not assigned.
            InvalidArgumentError: The offset is negative.
            InvalidTypeError: An argument has the wrong type.
        """
        checked = check_partition(partition)
        target = check_seek(checked, offset)
        with self._call() as parts:
            state = parts.subscriptions.state(checked)
            leader = current_leader(parts.metadata.cluster(), checked)
            state.seek_unvalidated(FetchPosition(target.offset, target.leader_epoch, leader))
            parts.buffer.drop(checked)
            parts.loop.service_at_next_poll()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set the position to the first record; without arguments, in every assigned partition.

        The offset is looked up by the next `poll` or `position`.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._seek_by(EARLIEST, check_each("seek_to_beginning", partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set the position after the last record; without arguments, in every assigned partition.

        The offset is looked up by the next `poll` or `position`.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._seek_by(LATEST, check_each("seek_to_end", partitions))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition; they need not be assigned.

        Args:
            partitions: Partitions to look up.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 never succeeds,
                since a response takes time.

        Raises:
            UnknownTopicOrPartitionError: The brokers have confirmed that one does not exist.
            KafkaTimeoutError: The offsets were not found in time.
            TopicAuthorizationError: Not authorized to read a topic.
        """
        return self._ends("beginning_offsets", partitions, EARLIEST_TIMESTAMP, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition.

        With ``isolation_level="read_committed"`` that is the last stable offset. Arguments and
        errors are those of `beginning_offsets`.
        """
        return self._ends("end_offsets", partitions, LATEST_TIMESTAMP, timeout)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time in each partition, None if there is none.

        Args:
            timestamps: Milliseconds since the epoch, or a datetime with a time zone, by partition.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 never succeeds,
                since a response takes time.

        Raises:
            UnknownTopicOrPartitionError: The brokers have confirmed that one does not exist.
            KafkaTimeoutError: The offsets were not found in time.
            TopicAuthorizationError: Not authorized to read a topic.
        """
        checked = check_timestamps(timestamps)
        deadline_ms = self._deadline_ms(timeout, "offsets_for_times")
        with self._call() as parts:
            return self._look_up(parts, checked, deadline_ms)

    def lag(self, partition: TopicPartition) -> int:
        """Return the number of offsets between the position and the end of the readable log.

        The end is that of the last fetch; before the first fetch it is looked up. May be called
        from any thread; it does not wait if another thread uses the consumer.

        Raises:
            IllegalStateError: The partition is not assigned; or another thread uses the consumer,
                and has not fetched from the partition yet.
            KafkaTimeoutError: Position or end offset was not found in time.
        """
        checked = check_partition(partition)
        parts = self._look()
        committed_only = parts.config.fetch.isolation_level == READ_COMMITTED
        if parts.lock.is_used_elsewhere():
            return self._lag_elsewhere(
                parts.subscriptions.state(checked), committed_only=committed_only
            )
        self._refuse_in_event_loop("lag")
        position = self.position(checked)
        with self._call() as parts:
            lag = parts.subscriptions.state(checked).lag(committed_only=committed_only)
        return max(0, self.end_offsets([checked])[checked] - position) if lag is None else lag

    # --- inside

    def _position_elsewhere(self, partition: TopicPartition) -> int | None:
        """Return a position without the lock if another thread uses the consumer."""
        parts = self._look()
        if not parts.lock.is_used_elsewhere():
            return None
        state = parts.subscriptions.state(partition)
        offset, position = self._first_pending_offset(partition), state.position
        if not state.has_valid_position() or position is None:
            return None
        return position.offset if offset is None else offset

    def _lag_elsewhere(self, state: TopicPartitionState, *, committed_only: bool) -> int:
        """Return a lag without the lock."""
        offset = self._first_pending_offset(state.partition)
        lag = state.lag(committed_only=committed_only, offset=offset)
        if lag is None:
            raise IllegalStateError(
                f"lag of {state.partition}: not known yet; another thread uses this consumer, and "
                "has not fetched from the partition yet"
            )
        return lag

    def _position_step(
        self, parts: ConsumerParts, existence: ExistenceCheck, now_ms: float
    ) -> float:
        existence.raise_missing(now_ms)
        parts.positions.step(now_ms)
        return parts.backoff.backoff(0)

    def _seek_by(self, policy: AutoOffsetReset, partitions: list[TopicPartition]) -> None:
        with self._call() as parts:
            chosen = partitions or list(parts.subscriptions.assigned)
            states = [parts.subscriptions.state(partition) for partition in chosen]
            for state in states:
                state.reset(policy, lost=False)
                parts.buffer.drop(state.partition)
            parts.loop.service_at_next_poll()

    def _ends(
        self,
        call: str,
        partitions: Iterable[TopicPartition],
        timestamp: int,
        timeout: float | None,
    ) -> dict[TopicPartition, int]:
        checked = dict.fromkeys(check_partitions(partitions), timestamp)
        deadline_ms = self._deadline_ms(timeout, call)
        with self._call() as parts:
            found = self._look_up(parts, checked, deadline_ms)
            return {
                partition: offset.offset if offset is not None else 0
                for partition, offset in found.items()
            }

    def _look_up(
        self, parts: ConsumerParts, timestamps: dict[TopicPartition, int], deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        lookup = OffsetLookup(timestamps)
        existence = ExistenceCheck(parts.metadata, timestamps)

        def step(now_ms: float) -> float:
            existence.raise_missing(now_ms)
            return lookup.step(parts.requests, parts.backoff, now_ms)

        parts.metadata.set_transient_topics({partition.topic for partition in timestamps})
        try:
            parts.loop.wait_for(
                lambda: lookup.done,
                step,
                deadline_ms,
                f"offsets of {', '.join(map(str, timestamps))}",
            )
        finally:
            parts.metadata.set_transient_topics(())
        return lookup.found
