"""Wiring of a group membership."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock, Runtime
from kclient.consumer.assignors.partition_assignor import (
    Assignment,
    MemberSubscription,
    PartitionAssignor,
)
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.auto_commit import AutoCommit
from kclient.consumer.coordinator.committed_offsets import CommittedOffsets
from kclient.consumer.coordinator.consumer_protocol import encode_subscription
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_joiner import GroupJoiner, GroupProtocol
from kclient.consumer.coordinator.group_leader import GroupLeader
from kclient.consumer.coordinator.group_leaver import GroupLeaver
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat import Heartbeat
from kclient.consumer.coordinator.heartbeat_sender import HeartbeatSender
from kclient.consumer.coordinator.membership import Membership
from kclient.consumer.coordinator.offset_committer import OffsetCommitter, Offsets
from kclient.consumer.coordinator.rebalance import Rebalance, RebalanceHooks
from kclient.consumer.subscription_state import SubscriptionState


class GroupCallbacks(NamedTuple):
    """Callbacks of a membership.

    Attributes:
        run_callback: Runs a callback of the application.
        on_committed: Called with the offsets of each successful commit.
    """

    run_callback: RunUserCode
    on_committed: Callable[[Offsets], None]


class GroupParts:
    """Objects of a group membership."""

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
            RebalanceHooks(self.group_protocols, self.run_callback, self.assigned),
            self._log_context,
        )

    def group_protocols(self) -> list[GroupProtocol]:
        """Return the assignors that this member supports, each with its subscription."""
        topics = self.subscriptions.topics
        self.joined_topics = topics
        # If this member becomes the leader again, it watches topics again.
        self.leader.step_down()
        return [
            GroupProtocol(
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
        """Pass the assignment of this member to the assignor."""
        generation = self.membership.generation
        assignor = self.leader.assignor(generation.protocol_name)
        self.run_callback(lambda: assignor.on_assignment(assignment, generation.generation_id))

    def _user_data(self, assignor: PartitionAssignor, topics: frozenset[str]) -> bytes | None:
        return self.run_callback(lambda: assignor.subscription_user_data(topics))
