"""Commit calls that wait: retries, deadlines, lookup of committed offsets."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from kclient.consumer.commits import OffsetCommitter, Offsets
from kclient.consumer.committed_offsets import Committed, CommittedOffsets, UnfinishedLookup
from kclient.consumer.membership import ConsumerGroupMetadata
from kclient.consumer.missing_partitions import ExistenceCheck
from kclient.consumer.poll_loop import PollLoop


class CommitCalls(NamedTuple):
    """Runs commits until they succeed, fail fatally, or reach their deadline.

    Attributes:
        commits: Queue of commits.
        step: Finds the coordinator and sends queued commits; returns the time until its next call.
        lookup: Lookup of committed offsets.
        loop: Waits.
        metadata: Cluster metadata.
        backoff: Backoff between attempts.
        clock: Clock.
        unfinished: Lookup that continues in the next call.
    """

    commits: OffsetCommitter
    step: Callable[[float], float]
    lookup: CommittedOffsets
    loop: PollLoop
    metadata: ConsumerMetadata
    backoff: ExponentialBackoff
    clock: Clock
    unfinished: UnfinishedLookup

    def commit(self, offsets: Offsets, deadline_ms: float) -> Steps[None]:
        """Commit and retry until the deadline; raises what `Consumer.commit` raises."""
        self.unfinished.discard()
        existence = ExistenceCheck(self.metadata, offsets)
        try:
            yield from self._commit_until(offsets, existence, deadline_ms)
        finally:
            self.metadata.set_transient_topics(())

    def commit_async(self, offsets: Offsets, callback: "Callable[..., object] | None") -> None:
        """Queue a commit and send it if possible without waiting."""
        self.unfinished.discard()
        self.commits.run_callbacks()
        self.commits.commit_async(offsets, callback)
        self.loop.flush()

    def drain(self, deadline_ms: float) -> Steps[None]:
        """Wait until no commit is queued or in flight."""
        return self.loop.wait_for(
            lambda: not self.commits.has_pending(), self.step, deadline_ms, "pending commits"
        )

    def committed(
        self,
        partitions: Sequence[TopicPartition],
        member: ConsumerGroupMetadata,
        deadline_ms: float,
    ) -> Steps[Committed]:
        """Look up committed offsets.

        Args:
            partitions: Partitions to look up.
            member: Current membership, which decides whether an unfinished lookup continues.
            deadline_ms: Deadline.
        """
        lookup = self.unfinished.begin(partitions, member, self.clock.monotonic_ms())

        def step(now_ms: float) -> float:
            return min(self.step(now_ms), lookup.step(self.lookup, self.backoff, now_ms))

        yield from self.loop.wait_for(lambda: lookup.done, step, deadline_ms, "committed offsets")
        self.unfinished.discard()
        return lookup.value

    def _commit_until(
        self, offsets: Offsets, existence: ExistenceCheck, deadline_ms: float
    ) -> Steps[None]:
        attempts = 0
        while True:
            error = yield from self._attempt(offsets, deadline_ms)
            self.commits.run_callbacks()
            if error is None:
                return
            if not error.retriable:
                raise error
            now_ms = self.clock.monotonic_ms()
            if isinstance(error, UnknownTopicOrPartitionError):
                existence.raise_missing(now_ms)
                self.metadata.set_transient_topics({partition.topic for partition in offsets})
                self.metadata.request_update()
            rest_ms = self.backoff.backoff(attempts)
            attempts += 1
            if now_ms + rest_ms >= deadline_ms:
                late = self.loop.timed_out("commit")
                raise KafkaTimeoutError(f"{late}; the last attempt: {error}") from error
            yield from self.loop.rest(now_ms + rest_ms, self.step)

    def _attempt(self, offsets: Offsets, deadline_ms: float) -> Steps[KafkaError | None]:
        future = self.commits.commit(offsets)
        try:
            yield from self.loop.wait_for(lambda: future.done, self.step, deadline_ms, "commit")
        finally:
            if not future.done:  # a queued commit must not be sent after the call has failed
                future.fail(self.loop.timed_out("commit"))
        return future.error
