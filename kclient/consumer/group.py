"""Membership and commits of a consumer with ``group.id``."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from kclient.consumer.classic.classic_membership import ClassicMembership
from kclient.consumer.commits import AutoCommit, CommitCallback, OffsetCommitter, Offsets
from kclient.consumer.committed_offsets import Committed, CommittedOffsets, UnfinishedLookup
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_metrics import ConsumerCommitMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.membership import Membership
from kclient.consumer.missing_partitions import ExistenceCheck
from kclient.consumer.reconciliation import Reconciliation
from kclient.consumer.subscription_state import SubscriptionState

_REVOKING_WAIT_MS = 100.0


class Group:
    """Steps of the group, and calls that commit.

    Attributes:
        membership: Membership by the group protocol.
        finder: Lookup of the group coordinator.
        commits: Explicit and asynchronous commits.
        auto_commit: Automatic commits.
        reconciliation: Changes of the partitions that the group assigns.
        committed_offsets: Lookup of committed offsets.
        heartbeats: Task that sends heartbeats between calls.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        lock: ConsumerLock,
        on_committed: Callable[[Offsets], None],
        metrics: Metrics,
        log_context: LogContext,
    ) -> None:
        """Initialize.

        Args:
            config: Configuration with ``group.id``.
            runtime: Clock.
            network: Requests and metadata.
            subscriptions: Subscription and assignment.
            lock: Is released while code of the application runs.
            on_committed: Called with the offsets of each successful commit.
            metrics: Metrics.
            log_context: Context of log lines.
        """
        group_id = config.group_id or ""
        self._log = log_context.logger(__name__)
        self._clock = runtime.clock
        self._network = network
        self._subscriptions = subscriptions
        self._error: KafkaError | None = None
        self.finder = finder = CoordinatorFinder(group_id, network, runtime.clock, log_context)
        self.membership: Membership = ClassicMembership(
            config, runtime, network, finder, subscriptions, lock, metrics, log_context
        )
        self.commits = OffsetCommitter(
            config,
            network,
            finder,
            self.membership,
            subscriptions,
            on_committed,
            lock.run_user_code,
            log_context,
        )
        self.auto_commit = AutoCommit(
            self.commits, subscriptions, config, network.backoff, log_context
        )
        self.reconciliation = Reconciliation(subscriptions, self.auto_commit, lock, log_context)
        self.committed_offsets = CommittedOffsets(group_id, network, finder, log_context)
        self._unfinished = UnfinishedLookup(config.request_timeout_ms)
        self._metrics = ConsumerCommitMetrics(metrics, runtime.clock.monotonic_ns)
        self.heartbeats = HeartbeatTask(
            self.membership,
            network,
            lock,
            runtime.clock,
            config.heartbeat_interval_ms,
            self._fail_next_step,
        )
        # Unlike `step`, this does not reset the poll timer of ``max.poll.interval.ms``.
        network.in_waits(self.membership.background_step)

    def step(self, now_ms: float) -> Steps[float]:
        """Run everything that is due in a poll: commits, membership, automatic commits.

        Returns:
            Time until the next step.

        Raises:
            KafkaError: An error for the application.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self.commits.run_callbacks()
        wait_ms = self.commits.step(now_ms)
        if self._subscriptions.is_group_managed():
            if self.reconciliation.revoking:  # by another task, which unsubscribes
                until_ms = self.membership.background_step(now_ms)
                return min(wait_ms, until_ms, _REVOKING_WAIT_MS)
            until_ms = yield from self.membership.step(self.reconciliation, now_ms)
            wait_ms = min(wait_ms, until_ms)
            if self.membership.holds_back():
                return wait_ms
        return min(wait_ms, self.auto_commit.step(now_ms))

    def commit(self, offsets: Offsets, deadline_ms: float) -> Steps[None]:
        """Commit and retry until the deadline; raises what `Consumer.commit` raises."""
        return self._metrics.commit(self._commit(offsets, deadline_ms))

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Queue a commit and send it if possible without waiting."""
        self._unfinished.discard()
        self.commits.run_callbacks()
        self.commits.commit_async(offsets, callback)
        self._network.flush()

    def committed(
        self, partitions: Sequence[TopicPartition], deadline_ms: float
    ) -> Steps[Committed]:
        """Look up committed offsets."""
        return self._metrics.committed(self._committed(partitions, deadline_ms))

    def queue_last_commit(self) -> None:
        """Queue a last automatic commit, ahead of later requests."""
        if self.auto_commit.enabled:
            self.commits.commit_async(self._subscriptions.all_consumed(), None)

    def leave(self) -> Steps[None]:
        """Revoke the partitions of a subscription and leave, without waiting for the response."""
        if self._subscriptions.is_group_managed():
            try:
                yield from self.revoke_all()
            finally:
                self.membership.leave("unsubscribed")

    # --- closing

    def commit_last(self, deadline_ms: float, *, may_commit: bool) -> Steps[None]:
        """Commit the positions before closing, and wait until no commit is pending.

        Args:
            deadline_ms: Deadline.
            may_commit: Whether the positions may be committed automatically.
        """
        offsets = self._subscriptions.all_consumed() if self.auto_commit.enabled else {}
        if may_commit and offsets and self.commits.can_commit():
            try:
                yield from self._commit(offsets, deadline_ms)
            except KafkaError as error:
                self._log.warning("Commit at close failed: %s", error)
        with suppress(KafkaError):
            yield from self._network.wait_for(
                lambda: not self.commits.has_pending(),
                self._commit_step,
                deadline_ms,
                "pending commits",
            )
        self.commits.run_callbacks()

    def revoke_all(self) -> Steps[None]:
        """Revoke the partitions of a subscription."""
        if self._subscriptions.is_group_managed():
            are_lost = not self.membership.owns_partitions()
            yield from self.reconciliation.revoke_all(are_lost=are_lost)

    def leave_at_close(self, deadline_ms: float) -> Steps[None]:
        """Leave the group of a subscription, and wait for the response."""
        if self._subscriptions.is_group_managed():
            left = self.membership.leave("the consumer is being closed")
            with suppress(KafkaError):
                yield from self._network.wait_for(
                    lambda: left.done, lambda _: 1000.0, deadline_ms, "leaving"
                )

    # --- inside

    def _fail_next_step(self, error: KafkaError) -> None:
        self._error = error

    def _commit_step(self, now_ms: float) -> float:
        """Find the coordinator and send queued commits; return the time until the next step."""
        return min(self.commits.step(now_ms), self.finder.step(now_ms))

    def _commit(self, offsets: Offsets, deadline_ms: float) -> Steps[None]:
        self._unfinished.discard()
        existence = ExistenceCheck(self._network.metadata, offsets)
        try:
            yield from self._commit_until(offsets, existence, deadline_ms)
        finally:
            self._network.metadata.set_transient_topics(())

    def _commit_until(
        self, offsets: Offsets, existence: ExistenceCheck, deadline_ms: float
    ) -> Steps[None]:
        network = self._network
        attempts = 0
        while True:
            error = yield from self._attempt(offsets, deadline_ms)
            self.commits.run_callbacks()
            if error is None:
                return
            if not error.retriable:
                raise error
            now_ms = self._clock.monotonic_ms()
            if isinstance(error, UnknownTopicOrPartitionError):
                existence.raise_missing(now_ms)
                network.metadata.set_transient_topics({partition.topic for partition in offsets})
                network.metadata.request_update()
            rest_ms = network.backoff.backoff(attempts)
            attempts += 1
            if now_ms + rest_ms >= deadline_ms:
                late = network.timed_out("commit")
                raise KafkaTimeoutError(f"{late}; the last attempt: {error}") from error
            yield from network.rest(now_ms + rest_ms, self._commit_step)

    def _attempt(self, offsets: Offsets, deadline_ms: float) -> Steps[KafkaError | None]:
        future = self.commits.commit(offsets)
        try:
            yield from self._network.wait_for(
                lambda: future.done, self._commit_step, deadline_ms, "commit"
            )
        finally:
            if not future.done:  # a queued commit must not be sent after the call has failed
                future.fail(self._network.timed_out("commit"))
        return future.error

    def _committed(
        self, partitions: Sequence[TopicPartition], deadline_ms: float
    ) -> Steps[Committed]:
        member = self.membership.metadata()
        lookup = self._unfinished.begin(partitions, member, self._clock.monotonic_ms())

        def step(now_ms: float) -> float:
            offsets, backoff = self.committed_offsets, self._network.backoff
            return min(self._commit_step(now_ms), lookup.step(offsets, backoff, now_ms))

        yield from self._network.wait_for(
            lambda: lookup.done, step, deadline_ms, "committed offsets"
        )
        self._unfinished.discard()
        return lookup.value
