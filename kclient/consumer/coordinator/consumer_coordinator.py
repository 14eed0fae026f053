"""Coordination of membership, rebalances and commits (Kafka: ConsumerCoordinator)."""

from collections import deque
from collections.abc import Callable

from kclient.client.cluster import Cluster
from kclient.common.errors import KafkaError, RetriableCommitFailedError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kclient.consumer.coordinator.committed_offsets import CommittedOffsets
from kclient.consumer.coordinator.group_parts import GroupParts
from kclient.consumer.coordinator.offset_committer import Offsets
from kclient.consumer.request_future import RequestFuture

CommitCallback = Callable[[Offsets, KafkaError | None], object]
"""Called with the offsets of an asynchronous commit and its error or None."""


class ConsumerCoordinator:
    """Membership, rebalances and commits, in steps that never wait.

    The application's `poll` calls `step`. The heartbeat task calls `background_step`, which runs
    no callbacks and no rebalances.
    """

    def __init__(self, parts: GroupParts, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self._parts = parts
        self._subscriptions = parts.subscriptions
        self._metadata = parts.metadata
        self._cluster_seen: Cluster | None = None
        self._asynchronous: deque[tuple[CommitCallback | None, Offsets, RequestFuture[None]]] = (
            deque()
        )
        self._background_error: KafkaError | None = None
        self._metadata_version = -1

    # --- steps

    def step(self, now_ms: float) -> float:
        """Run everything that is due, including callbacks; return the time until the next step.

        Raises:
            KafkaError: An error for the application, for example FencedInstanceIdError.
        """
        self.run_commit_callbacks()
        self._raise_background_error()
        parts = self._parts
        wait_ms = parts.committer.step(now_ms)
        if not self._subscriptions.is_group_managed():
            return min(wait_ms, parts.auto_commit.step(now_ms))
        parts.heartbeat.polled(now_ms)
        parts.heartbeats.raise_error()
        wait_ms = min(wait_ms, parts.finder.step(now_ms), parts.heartbeats.step(now_ms))
        self._follow_metadata()
        if parts.rebalance.is_under_way() or (
            parts.membership.rejoin_needed and self._knows_topics()
        ):
            coordinator = parts.finder.coordinator()
            limit_ms = min(parts.settings.request_timeout_ms, parts.settings.session_timeout_ms)
            return min(wait_ms, parts.rebalance.step(coordinator, now_ms, limit_ms))
        return min(wait_ms, parts.auto_commit.step(now_ms))

    def background_step(self, now_ms: float) -> float:
        """Send heartbeats, and leave the group if the application does not poll.

        Called by the heartbeat task and by calls other than `poll` that wait. Errors are kept for
        the next poll.

        Returns:
            Time until the next step, milliseconds.
        """
        parts = self._parts
        if not self._subscriptions.is_group_managed():
            return parts.heartbeat.interval_ms
        try:
            if parts.membership.heartbeats() and parts.heartbeat.poll_expired(now_ms):
                self._log.warning(
                    "no poll() within max.poll.interval.ms (%d ms): leaving the group; poll more "
                    "often, reduce max_poll_records or raise the interval",
                    parts.settings.max_poll_interval_ms,
                )
                parts.leaver.leave("max.poll.interval.ms exceeded")
            wait_ms = parts.heartbeats.step(now_ms)
            if parts.membership.heartbeats():
                wait_ms = min(wait_ms, parts.finder.step(now_ms))
            return min(wait_ms, parts.heartbeat.interval_ms)
        except KafkaError as error:
            self.fail_in_background(error)
            return parts.heartbeat.interval_ms

    def fail_in_background(self, error: KafkaError) -> None:
        """Keep an error for the application's next poll."""
        self._background_error = error

    def has_heartbeat_in_flight(self) -> bool:
        """Return whether a heartbeat is in flight."""
        return self._parts.heartbeat.in_flight

    def holds_back(self) -> bool:
        """Return whether records must not be returned: the group is rebalancing."""
        return self._subscriptions.is_group_managed() and (
            self._parts.rebalance.is_under_way() or not self._parts.membership.is_stable()
        )

    def reset_after_interrupt(self) -> None:
        """Reset requests and rebalances after an interrupted call; a stable member stays stable."""
        parts = self._parts
        parts.joiner.cancel()
        if parts.rebalance.reset_after_interrupt() or not parts.membership.is_stable():
            parts.membership.lose("interrupted while joining", keep_member_id=True)
        parts.finder.reset_after_interrupt()
        parts.heartbeat.reset_after_interrupt()
        parts.committer.reset_after_interrupt()
        parts.auto_commit.reset_after_interrupt()
        self._cluster_seen = None

    # --- subscription

    def subscribed(self, metadata_version: int) -> None:
        """Set the metadata version after which the subscribed topics are known.

        The member rejoins when the next step finds that the topics have changed.
        """
        self._metadata_version = metadata_version

    def rejoin(self, reason: str) -> None:
        """Rejoin at the next step."""
        self._parts.membership.request_rejoin(reason)

    def report_given_up(self) -> None:
        """Call the rebalance listener for revoked or lost partitions, and remove them."""
        self._parts.rebalance.report_given_up()

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; the future completes with the response."""
        left = self._parts.leaver.leave(reason)
        self._parts.rebalance.cancel()
        self._parts.leader.step_down()
        return left

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer."""
        generation = self._parts.membership.generation
        return ConsumerGroupMetadata(
            self._parts.settings.group_id,
            generation.generation_id,
            generation.member_id,
            self._parts.settings.group_instance_id,
        )

    # --- commits

    @property
    def committed(self) -> CommittedOffsets:
        """Lookup of committed offsets."""
        return self._parts.committed

    @property
    def auto_commits(self) -> bool:
        """Whether automatic commits are enabled."""
        return self._parts.auto_commit.enabled

    def may_commit(self) -> bool:
        """Return whether a commit can succeed: outside group management, or while stable."""
        return not self._subscriptions.is_group_managed() or self._parts.membership.is_stable()

    def commit(self, offsets: Offsets) -> RequestFuture[None]:
        """Queue one attempt to commit."""
        return self._parts.committer.commit(offsets)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Queue one attempt to commit; a later call runs the callback."""
        self._asynchronous.append((callback, offsets, self._parts.committer.commit(offsets)))

    def commit_step(self, now_ms: float) -> float:
        """Find the coordinator and send queued commits; for waiting calls other than poll."""
        wait_ms = self._parts.committer.step(now_ms)
        return min(wait_ms, self._parts.finder.step(now_ms))

    def has_pending_commits(self) -> bool:
        """Return whether commits are queued or in flight."""
        return self._parts.committer.has_pending()

    def run_commit_callbacks(self) -> None:
        """Run the callbacks of completed commits, in the order of the commits."""
        while self._asynchronous and self._asynchronous[0][2].done:
            callback, offsets, future = self._asynchronous.popleft()
            error = future.error
            if error is not None and error.retriable:
                error = RetriableCommitFailedError(f"commit failed, try again: {error}")
                error.__cause__ = future.error
            if callback is not None:
                self._run_commit_callback(callback, offsets, error)
            elif error is not None:
                self._log.error("Asynchronous commit of %d offsets failed: %s", len(offsets), error)

    # --- inside

    def _run_commit_callback(
        self, callback: CommitCallback, offsets: Offsets, error: KafkaError | None
    ) -> None:
        self._parts.run_callback(lambda: callback(offsets, error))

    def _raise_background_error(self) -> None:
        if self._background_error is not None:
            error, self._background_error = self._background_error, None
            raise error

    def _knows_topics(self) -> bool:
        """Return whether the metadata has the subscribed topics, or was updated since `subscribe`.

        A leader that joins before has nothing to assign.
        """
        cluster = self._metadata.cluster()
        if cluster.is_bootstrap:
            return False
        if self._subscriptions.pattern is None and self._subscriptions.topics <= cluster.topics:
            return True
        return self._metadata.update_version() > self._metadata_version

    def _follow_metadata(self) -> None:
        cluster = self._metadata.cluster()
        if cluster is not self._cluster_seen and not cluster.is_bootstrap:
            self._cluster_seen = cluster
            self._match_pattern(cluster)
            if self._parts.leader.has_news():
                self.rejoin("partitions of subscribed topics changed")
        joined = self._parts.membership.is_stable()
        if joined and self._parts.joined_topics != self._subscriptions.topics:
            self.rejoin("the subscription changed")

    def _match_pattern(self, cluster: Cluster) -> None:
        if self._subscriptions.pattern is not None:
            internal = cluster.internal_topics
            self._subscriptions.take_matching(
                topic
                for topic in cluster.topics
                if self._subscriptions.accepts(topic, topic in internal)
            )
