"""Wires the parts of a membership together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kclient.client.consumer_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock, Runtime
from kclient.consumer.assignors.partition_assignor import (
    Assignment,
    MemberSubscription,
    PartitionAssignor,
)
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.auto_commit import AutoCommit
from kclient.consumer.coordinator.committed_offsets import CommittedOffsets
from kclient.consumer.coordinator.consumer_protocol import encode_subscription
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_joiner import GroupJoiner, Offer
from kclient.consumer.coordinator.group_leader import GroupLeader
from kclient.consumer.coordinator.group_leaver import GroupLeaver
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat import Heartbeat
from kclient.consumer.coordinator.heartbeat_sender import HeartbeatSender
from kclient.consumer.coordinator.membership import Membership
from kclient.consumer.coordinator.offset_committer import OffsetCommitter, Offsets
from kclient.consumer.coordinator.rebalance import Rebalance, RebalanceHooks
from kclient.consumer.drive_lock import RunUserCode
from kclient.consumer.subscription_state import SubscriptionState


class GroupCallbacks(NamedTuple):
    """What a membership calls outside of its own parts.

    Attributes:
        run_callback: Runs a callback of the application.
        on_committed: Called with each commit that the group has taken.
    """

    run_callback: RunUserCode
    on_committed: Callable[[Offsets], None]


class GroupParts:
    """What a coordinator is made of; see the class of each."""

    def __init__(
        self,
        settings: GroupSettings,
        assignors: Sequence[PartitionAssignor],
        network: ConsumerNetworkClient,
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        runtime: Runtime,
        callbacks: GroupCallbacks,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log_context = log_context
        clock, run_callback = runtime.clock, callbacks.run_callback
        backoff = ExponentialBackoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, runtime.random.random
        )
        self.settings = settings
        self.metadata = metadata
        self.subscriptions = subscriptions
        self.assignors = assignors
        self.joined_topics: frozenset[str] = frozenset()
        self.run_callback = run_callback
        self.membership = membership = Membership(log_context)
        self.finder = finder = CoordinatorFinder(
            settings.group_id, network, clock, backoff, log_context
        )
        self.heartbeat = self._heartbeat(backoff)
        self.heartbeats = HeartbeatSender(
            settings, network, finder, membership, self.heartbeat, clock, log_context
        )
        self.leader = GroupLeader(assignors, subscriptions, metadata, run_callback, log_context)
        self.leaver = GroupLeaver(settings, network, finder, membership, log_context)
        self.committed = CommittedOffsets(settings.group_id, network, finder, log_context)
        self.committer = OffsetCommitter(
            settings,
            network,
            finder,
            membership,
            subscriptions,
            callbacks.on_committed,
            log_context,
        )
        self.auto_commit = self._auto_commit(backoff)
        self.joiner = self._joiner(network, clock)
        self.rebalance = self._rebalance(backoff)

    def _heartbeat(self, backoff: ExponentialBackoff) -> Heartbeat:
        settings = self.settings
        return Heartbeat(
            settings.heartbeat_interval_ms,
            settings.session_timeout_ms,
            settings.max_poll_interval_ms,
            backoff,
        )

    def _joiner(self, network: ConsumerNetworkClient, clock: Clock) -> GroupJoiner:
        return GroupJoiner(
            self.settings,
            network,
            self.finder,
            self.membership,
            self.heartbeat,
            clock,
            self.leader.lead,
            self._log_context,
        )

    def _auto_commit(self, backoff: ExponentialBackoff) -> AutoCommit:
        return AutoCommit(
            self.committer,
            self.subscriptions,
            self.settings.auto_commit_interval_ms,
            backoff,
            enabled=self.settings.auto_commit,
            log_context=self._log_context,
        )

    def _rebalance(self, backoff: ExponentialBackoff) -> Rebalance:
        return Rebalance(
            self.joiner,
            self.membership,
            self.subscriptions,
            self.auto_commit,
            backoff,
            RebalanceHooks(self.offers, self.run_callback, self.assigned),
            self._log_context,
        )

    def offers(self) -> list[Offer]:
        """Return the assignors this member knows, each with its subscription."""
        topics = self.subscriptions.topics
        self.joined_topics = topics
        # Watching for others begins anew if this member is made the leader again.
        self.leader.step_down()
        return [
            Offer(
                assignor.name,
                encode_subscription(
                    MemberSubscription(
                        tuple(topics),
                        self._user_data(assignor, topics),
                        tuple(self.subscriptions.assigned),
                        self.membership.generation.generation_id,
                        rack_id=self.settings.rack_id,
                    )
                ),
            )
            for assignor in self.assignors
        ]

    def assigned(self, assignment: Assignment) -> None:
        """Tell the assignor in use what this member was given."""
        generation = self.membership.generation
        assignor = self.leader.assignor(generation.protocol_name)
        self.run_callback(lambda: assignor.on_assignment(assignment, generation.generation_id))

    def _user_data(self, assignor: PartitionAssignor, topics: frozenset[str]) -> bytes | None:
        return self.run_callback(lambda: assignor.subscription_user_data(topics))
