"""Membership by the classic group protocol (Kafka: ConsumerCoordinator, AbstractCoordinator)."""

from kclient.client.cluster import Cluster
from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.common.types import ConsumerGroupMetadata
from kclient.common.waiting import Steps
from kclient.consumer.classic.group_joiner import GroupJoiner
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.classic.heartbeat import HeartbeatSender, HeartbeatTimers
from kclient.consumer.classic.member import Member
from kclient.consumer.classic.rebalance import Rebalance
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.membership import MemberEpoch
from kclient.consumer.reconciliation import Reconciliation
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState


class ClassicMembership:
    """Membership that sends heartbeats and rebalances when the group or the topics change.

    Implements `kclient.consumer.membership.Membership`.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        subscriptions: SubscriptionState,
        lock: ConsumerLock,
        metrics: Metrics,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._finder = finder
        self._subscriptions = subscriptions
        self._metadata = network.metadata
        self._member = member = Member(finder.group_id, config.group_instance_id, log_context)
        clock, timers = runtime.clock, HeartbeatTimers(config, network.backoff)
        self._heartbeats = HeartbeatSender(
            config, network, finder, member, timers, clock, log_context
        )
        self._leader = GroupLeader(
            config.partition_assignment_strategy,
            subscriptions,
            network.metadata,
            lock.run_user_code,
            log_context,
        )
        joiner = GroupJoiner(
            config, network, finder, member, timers, clock, self._leader, log_context
        )
        self._rebalance = Rebalance(
            joiner,
            self._leader,
            member,
            subscriptions,
            network.backoff,
            log_context,
        )
        self._rebalance.add_gauges(metrics, clock)
        self._cluster_seen: Cluster | None = None
        self._background_error: KafkaError | None = None
        self._metadata_version = -1

    def step(self, reconciliation: Reconciliation, now_ms: float) -> Steps[float]:
        """Run everything that is due, including callbacks; return the time until the next step.

        Args:
            reconciliation: Changes the assigned partitions.
            now_ms: Current time.

        Raises:
            KafkaError: An error for the application, for example FencedInstanceIdError.
        """
        if self._background_error is not None:
            error, self._background_error = self._background_error, None
            raise error
        self._heartbeats.polled(now_ms)
        wait_ms = min(self._finder.step(now_ms), self._heartbeats.step(now_ms))
        self._check_topics()
        if self._must_rebalance():
            coordinator = self._finder.coordinator()
            until_ms = yield from self._rebalance.step(coordinator, reconciliation, now_ms)
            wait_ms = min(wait_ms, until_ms)
            if not self._rebalance.is_under_way():
                self._check_topics()  # a callback may have changed the subscription
                if self._must_rebalance():
                    return 0.0
        return wait_ms

    def background_step(self, now_ms: float) -> float:
        """Send heartbeats, or leave the group if the application does not poll.

        Errors are kept for the next `step`.

        Returns:
            Time until the next step.
        """
        interval_ms = self._heartbeats.interval_ms
        if not self._subscriptions.is_group_managed():
            return interval_ms
        try:
            if self._heartbeats.poll_expired(now_ms):
                self._log.warning(
                    "no poll() within max.poll.interval.ms (%d ms): leaving the group; poll more "
                    "often, reduce max_poll_records or raise the interval",
                    self._heartbeats.max_poll_interval_ms,
                )
                self._rebalance.leave_in_background("max.poll.interval.ms exceeded")
            wait_ms = self._heartbeats.step(now_ms)
            if self._member.heartbeats():
                wait_ms = min(wait_ms, self._finder.step(now_ms))
            return min(wait_ms, interval_ms)
        except KafkaError as error:
            self._background_error = error
            return interval_ms

    def awaits_response(self) -> bool:
        """Return whether a heartbeat is in flight."""
        return self._heartbeats.in_flight()

    def holds_back(self) -> bool:
        """Return whether records must not be returned: the group is rebalancing."""
        return self._subscriptions.is_group_managed() and (
            self._rebalance.is_under_way() or not self._member.is_stable()
        )

    def subscription_changed(self, metadata_version: int) -> None:
        """Set the metadata version after which the subscribed topics are known.

        The member rejoins when the next step finds that the topics have changed.
        """
        self._metadata_version = metadata_version

    def owns_partitions(self) -> bool:
        """Return whether the assigned partitions belong to this member: it was not removed."""
        return self._member.has_generation()

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; the future completes with the response, or now without a request."""
        return self._rebalance.leave(reason)

    def metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer."""
        return self._member.group_metadata()

    # --- commits

    def is_stable(self) -> bool:
        """Return whether the member has joined and has its assignment."""
        return self._member.is_stable()

    def commit_epoch(self) -> MemberEpoch:
        """Return member id and generation for a commit."""
        return self._member.commit_epoch()

    def commit_failed(self, error: KafkaError, sent: MemberEpoch) -> KafkaError:
        """Update the member after a failed commit; return the error for the caller."""
        return self._member.commit_failed(error, sent)

    # --- inside

    def _must_rebalance(self) -> bool:
        return self._rebalance.is_under_way() or (
            self._member.rejoin_needed and self._knows_topics()
        )

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

    def _check_topics(self) -> None:
        """Request a rejoin if topics of the group or of the subscription have changed."""
        cluster = self._metadata.cluster()
        if cluster is not self._cluster_seen and not cluster.is_bootstrap:
            self._cluster_seen = cluster
            self._match_pattern(cluster)
            if self._leader.partition_counts_changed():
                self._member.request_rejoin("partitions of subscribed topics changed")
        if self._member.is_stable() and self._leader.topics_changed():
            self._member.request_rejoin("the subscription changed")

    def _match_pattern(self, cluster: Cluster) -> None:
        if self._subscriptions.pattern is not None:
            internal = cluster.internal_topics
            self._subscriptions.take_matching(
                topic
                for topic in cluster.topics
                if self._subscriptions.accepts(topic, topic in internal)
            )
