"""Calls for committed offsets."""

from collections.abc import Iterable
from typing import Never

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.callbacks import check_callback
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.foreign_names import refuse_keywords
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.arguments import CommitOffsets, check_commit, check_partitions
from kclient.consumer.consumer_base import ConsumerBase
from kclient.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.coordinator.consumer_coordinator import CommitCallback, ConsumerCoordinator
from kclient.consumer.coordinator.offset_committer import Offsets
from kclient.consumer.foreign_names import COMMIT, TIMEOUT
from kclient.consumer.missing_partitions import ExistenceCheck


class ConsumerCommits(ConsumerBase):
    """Commits offsets and looks them up."""

    def commit(
        self,
        offsets: CommitOffsets | None = None,
        timeout: float | None = None,
        **_unknown: Never,
    ) -> None:
        """Commit offsets and wait for the response.

        Retriable errors are retried until the timeout.

        Args:
            offsets: Offset of the next record to read, by partition; or a processed record, which
                commits the offset after it; None commits the positions of all assigned partitions:
                after the last records returned. A member that uses `subscribe` cannot commit
                revoked partitions, whose offsets belong to their new owners; a consumer of the
                group that uses `assign` can, while the group has no members.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 sends the request
                and raises KafkaTimeoutError, since the response takes time.

        Raises:
            CommitFailedError: The consumer is not a member of the group any more, or one of the
                partitions was revoked; nothing was committed.
            RebalanceInProgressError: The group is rebalancing; `poll`, then commit again.
            FencedInstanceIdError: Another consumer uses the same ``group.instance.id``.
            UnknownTopicOrPartitionError: The brokers have confirmed that a partition does not
                exist; nothing was committed for it.
            KafkaTimeoutError: There was no response in time; the outcome is unknown.
            IllegalStateError: There is no ``group_id``.
            InvalidTypeError: An argument has the wrong type.
            InvalidArgumentError: An offset is negative.
        """
        refuse_keywords("Consumer.commit", _unknown, COMMIT)
        given = None if offsets is None else check_commit(offsets)
        deadline_ms = self._deadline_ms(timeout, "commit")
        with self._call() as parts:
            coordinator = self._coordinator("commit")
            parts.unfinished.discard()
            chosen = parts.subscriptions.all_consumed() if given is None else given
            commit_and_wait(parts, coordinator, chosen, deadline_ms)

    def commit_async(
        self, offsets: CommitOffsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit offsets without waiting; asynchronous commits keep their order.

        Args:
            offsets: As for `commit`.
            callback: Called with the offsets and the error or None, inside a later call of this
                consumer. Failed commits are not retried, since a later commit may have succeeded.

        Raises:
            IllegalStateError: There is no ``group_id``.
            InvalidTypeError: An argument has the wrong type.
            InvalidArgumentError: An offset is negative.
        """
        given = None if offsets is None else check_commit(offsets)
        check_callback("callback", callback, "a callable (offsets, error)")
        with self._call() as parts:
            coordinator = self._coordinator("commit_async")
            parts.unfinished.discard()
            coordinator.run_commit_callbacks()
            chosen = parts.subscriptions.all_consumed() if given is None else given
            coordinator.commit_async(chosen, callback)
            parts.loop.flush()

    def committed(
        self,
        partitions: Iterable[TopicPartition],
        timeout: float | None = None,
        **_unknown: Never,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group, None for partitions without.

        Args:
            partitions: Partitions to look up; they need not be assigned.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; with 0, repeated
                calls for the same partitions return the response once it has arrived.

        Raises:
            IllegalStateError: There is no ``group_id``.
            KafkaTimeoutError: There was no response in time.
        """
        refuse_keywords("Consumer.committed", _unknown, TIMEOUT)
        checked = check_partitions(partitions)
        deadline_ms = self._deadline_ms(timeout, "committed")
        with self._call() as parts:
            coordinator = self._coordinator("committed")
            now_ms = parts.runtime.clock.monotonic_ms()
            lookup = parts.unfinished.begin(checked, coordinator.group_metadata(), now_ms)

            def step(now_ms: float) -> float:
                wait_ms = coordinator.commit_step(now_ms)
                return min(wait_ms, lookup.step(coordinator.committed, parts.backoff, now_ms))

            parts.loop.wait_for(lambda: lookup.done, step, deadline_ms, "committed offsets")
            parts.unfinished.discard()
            return lookup.value

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata that a transactional producer needs to commit offsets.

        Raises:
            IllegalStateError: There is no ``group_id``.
        """
        with self._call():
            return self._coordinator("group_metadata").group_metadata()


def commit_and_wait(
    parts: ConsumerParts, coordinator: ConsumerCoordinator, offsets: Offsets, deadline_ms: float
) -> None:
    """Commit and retry until the deadline; raises what `Consumer.commit` raises."""
    existence = ExistenceCheck(parts.metadata, offsets)
    try:
        _commit_until(parts, coordinator, offsets, existence, deadline_ms)
    finally:
        parts.metadata.set_transient_topics(())


def _commit_until(
    parts: ConsumerParts,
    coordinator: ConsumerCoordinator,
    offsets: Offsets,
    existence: ExistenceCheck,
    deadline_ms: float,
) -> None:
    attempts = 0
    while True:
        error = _attempt(parts, coordinator, offsets, deadline_ms)
        coordinator.run_commit_callbacks()
        if error is None:
            return
        if not error.retriable:
            raise error
        if isinstance(error, UnknownTopicOrPartitionError):
            existence.raise_missing(parts.runtime.clock.monotonic_ms())
            parts.metadata.set_transient_topics({partition.topic for partition in offsets})
            parts.metadata.request_update()
        rest_ms = parts.backoff.backoff(attempts)
        attempts += 1
        now_ms = parts.runtime.clock.monotonic_ms()
        if now_ms + rest_ms >= deadline_ms:
            late = parts.loop.timed_out("commit")
            raise KafkaTimeoutError(f"{late}; the last attempt: {error}") from error
        parts.loop.rest(now_ms + rest_ms, coordinator.commit_step)


def _attempt(
    parts: ConsumerParts, coordinator: ConsumerCoordinator, offsets: Offsets, deadline_ms: float
) -> KafkaError | None:
    future = coordinator.commit(offsets)
    try:
        parts.loop.wait_for(lambda: future.done, coordinator.commit_step, deadline_ms, "commit")
    finally:
        if not future.done:  # a queued commit must not be sent after the call has failed
            future.fail(parts.loop.timed_out("commit"))
    return future.error
