"""A consumer's part in its group (Kafka: ConsumerCoordinator)."""

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
"""Told of the outcome of an asynchronous commit: what was committed, and the error if any."""


class ConsumerCoordinator:
    """Membership, rebalances and commits, moved on by steps that never wait.

    `step` belongs to the application's `poll`; `background_step` to the heartbeat loop, which must
    run neither callbacks nor rebalances.
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

    # --- moving on

    def step(self, now_ms: float) -> float:
        """Do what is due, callbacks of the application included; return how long to wait.

        Raises:
            KafkaError: Something the application must know: the group may not be used, the static
                member was fenced, and so on.
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
        """Keep the membership alive while the application does not poll.

        For the heartbeat loop, and for calls of the application other than `poll` that wait. Errors
        are kept for the next poll.

        Returns:
            How long to wait for the next step, milliseconds.
        """
        parts = self._parts
        if not self._subscriptions.is_group_managed():
            return parts.heartbeat.interval_ms
        try:
            if parts.membership.heartbeats() and parts.heartbeat.poll_expired(now_ms):
                self._log.warning(
                    "no poll() within max.poll.interval.ms (%d ms): leaving the group; poll more "
                    "often, take fewer records at a time or raise the interval",
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

    def awaits_heartbeat_answer(self) -> bool:
        """Return whether an answer of the broker is on its way."""
        return self._parts.heartbeat.in_flight

    def holds_back(self) -> bool:
        """Return whether no records may be handed out, since partitions are being given up."""
        return self._subscriptions.is_group_managed() and (
            self._parts.rebalance.is_under_way() or not self._parts.membership.is_stable()
        )

    def mend(self) -> None:
        """Start over with what was under way; a member that holds its partitions keeps them."""
        parts = self._parts
        parts.joiner.cancel()
        if parts.rebalance.mend() or not parts.membership.is_stable():
            parts.membership.lose("interrupted while joining", keep_member_id=True)
        parts.finder.mend()
        parts.heartbeat.mend()
        parts.committer.mend()
        parts.auto_commit.mend()
        self._cluster_seen = None

    # --- subscription

    def subscribed(self, metadata_version: int) -> None:
        """Take note of a subscription, whose topics an answer later than this tells of.

        A member joins again when the next step finds that the topics are others.
        """
        self._metadata_version = metadata_version

    def rejoin(self, reason: str) -> None:
        """Join again at the next step."""
        self._parts.membership.request_rejoin(reason)

    def report_given_up(self) -> None:
        """Tell the application that it gives its partitions up, or has lost them, and take them."""
        self._parts.rebalance.report_given_up()

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; return when the broker has been told."""
        told = self._parts.leaver.leave(reason)
        self._parts.rebalance.cancel()
        self._parts.leader.step_down()
        return told

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer needs to commit on this consumer's behalf."""
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
        """Reads the group's committed positions."""
        return self._parts.committed

    @property
    def auto_commits(self) -> bool:
        """Whether positions are committed without being asked to."""
        return self._parts.auto_commit.enabled

    def may_commit(self) -> bool:
        """Return whether a commit can succeed: the membership, if there must be one, stands."""
        return not self._subscriptions.is_group_managed() or self._parts.membership.is_stable()

    def commit(self, offsets: Offsets) -> RequestFuture[None]:
        """Queue one attempt to commit."""
        return self._parts.committer.commit(offsets)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Queue one attempt to commit; a later call of the application runs the callback."""
        self._asynchronous.append((callback, offsets, self._parts.committer.commit(offsets)))

    def commit_step(self, now_ms: float) -> float:
        """Look for the coordinator and send what waits; for calls that wait outside of poll."""
        wait_ms = self._parts.committer.step(now_ms)
        return min(wait_ms, self._parts.finder.step(now_ms))

    def has_pending_commits(self) -> bool:
        """Return whether commits wait or are in flight."""
        return self._parts.committer.has_pending()

    def run_commit_callbacks(self) -> None:
        """Run the callbacks of commits that have ended, in the order of the commits."""
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
        """Return whether the brokers have told of the topics subscribed to, or that they are not.

        A leader that joins before would have nothing to assign.
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
