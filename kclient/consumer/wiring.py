"""Construction of a consumer: the only module that knows all of its classes."""

from collections.abc import Callable
from functools import partial
from itertools import count

from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import MetadataSettings
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.consumer.classic.classic_membership import ClassicMembership
from kclient.consumer.classic.group_joiner import GroupJoiner
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.classic.heartbeat import HeartbeatSender, HeartbeatTimers
from kclient.consumer.classic.member import Member
from kclient.consumer.classic.rebalance import Rebalance
from kclient.consumer.closing import Closing
from kclient.consumer.commit_calls import CommitCalls
from kclient.consumer.commits import AutoCommit, OffsetCommitter
from kclient.consumer.committed_offsets import CommittedOffsets, UnfinishedLookup
from kclient.consumer.consumer_config import READ_COMMITTED, ConsumerConfig
from kclient.consumer.consumer_core import ConsumerCore
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_metrics import (
    ConsumerCommitMetrics,
    ConsumerFetchMetrics,
    ConsumerPollMetrics,
    ConsumerRequestMetrics,
    seconds_since,
)
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.fetcher import Fetcher, NodeBackoff
from kclient.consumer.group import Group
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.list_offsets_requests import ListOffsetsRequests
from kclient.consumer.membership import CommittingMember, Membership
from kclient.consumer.missing_partitions import MissingPartitionsLog
from kclient.consumer.offset_fetcher import OffsetFetcher
from kclient.consumer.offset_validator import OffsetValidator
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.position_updater import PositionUpdater
from kclient.consumer.subscription_state import SubscriptionState

_CLIENT_ID = "kclient-consumer"
# Group requests, lookups and one fetch per connection; bounds the queue.
_MAX_IN_FLIGHT = 100
_instances = count(1)

MembershipFactory = Callable[
    ["Wiring", str, CoordinatorFinder],
    tuple[CommittingMember, Callable[[AutoCommit], Membership]],
]
"""Returns the member for commits, and the constructor of its membership."""


class Wiring:
    """Builder of one consumer. Opens no connection and starts no task; unused afterwards."""

    def __init__(self, config: ConsumerConfig, runtime: Runtime) -> None:
        self.config = config
        self.runtime = runtime
        self.clock = runtime.clock
        self.log_context = log_context = _log_context(config)
        self.lock = ConsumerLock(runtime.tasks)
        self.backoff = self._backoff()
        self.metrics = Metrics(
            runtime.clock,
            runtime.tasks,
            num_samples=config.metrics_num_samples,
            sample_window_ms=config.metrics_sample_window_ms,
        )
        self.fetch_metrics = ConsumerFetchMetrics(self.metrics)
        self.interceptors = ConsumerInterceptors(
            config.interceptor_classes, self.lock.run_user_code, log_context
        )
        self.subscriptions = SubscriptionState(
            config.auto_offset_reset, exclude_internal=config.exclude_internal_topics
        )
        self.metadata = ConsumerMetadata(
            runtime,
            MetadataSettings.of(config),
            log_context,
            allow_auto_topic_creation=config.allow_auto_create_topics,
        )
        self.network = ConsumerNetworkClient(
            self._network_client(), self.metadata, runtime.clock, config.request_timeout_ms
        )
        self.buffer = FetchBuffer()
        self.offset_requests = ListOffsetsRequests(
            self.network,
            self.metadata,
            config.isolation_level,
            config.request_timeout_ms,
            log_context,
        )

    def build(self) -> ConsumerCore:
        """Return the core of the consumer."""
        group_id = self.config.group_id
        group = None if group_id is None else self._group(group_id)
        fetcher = self._fetcher()
        collector = self._collector()
        positions = self._positions(None if group is None else group.committed)
        loop = self._loop(group, fetcher, collector, positions)
        commit_calls = None if group is None else self._commit_calls(group, loop)
        heartbeats = None if group is None else self._heartbeat_task(group, loop)
        self._add_gauges(loop)
        closing = Closing(
            network=self.network,
            metadata=self.metadata,
            subscriptions=self.subscriptions,
            fetcher=fetcher,
            interceptors=self.interceptors,
            loop=loop,
            group=group,
            commit_calls=commit_calls,
            heartbeats=heartbeats,
            log=self.log_context.logger(__name__),
        )
        return ConsumerCore(
            config=self.config,
            client_id=self.config.client_id or _CLIENT_ID,
            clock=self.clock,
            tasks=self.runtime.tasks,
            lock=self.lock,
            backoff=self.backoff,
            metrics=self.metrics,
            interceptors=self.interceptors,
            subscriptions=self.subscriptions,
            metadata=self.metadata,
            network=self.network,
            buffer=self.buffer,
            fetcher=fetcher,
            collector=collector,
            offset_requests=self.offset_requests,
            positions=positions,
            loop=loop,
            group=group,
            commit_calls=commit_calls,
            commit_metrics=ConsumerCommitMetrics(self.metrics, self.clock.monotonic_ns),
            heartbeats=heartbeats,
            closing=closing,
        )

    # --- group

    def _group(self, group_id: str) -> Group:
        finder = CoordinatorFinder(
            group_id, self.network, self.clock, self._backoff(), self.log_context
        )
        member, membership = MEMBERSHIPS[self.config.group_protocol](self, group_id, finder)
        commits = OffsetCommitter(
            self.config,
            self.network,
            finder,
            member,
            self.subscriptions,
            self.interceptors.on_commit,
            self.lock.run_user_code,
            self.log_context,
        )
        auto_commit = AutoCommit(
            commits, self.subscriptions, self.config, self._backoff(), self.log_context
        )
        return Group(
            membership=membership(auto_commit),
            finder=finder,
            commits=commits,
            auto_commit=auto_commit,
            committed=CommittedOffsets(group_id, self.network, finder, self.log_context),
            subscriptions=self.subscriptions,
        )

    def classic_membership(
        self, group_id: str, finder: CoordinatorFinder
    ) -> tuple[CommittingMember, Callable[[AutoCommit], Membership]]:
        """Return member and membership of the classic group protocol."""
        config = self.config
        member = Member(group_id, config.group_instance_id, self.log_context)
        timers = HeartbeatTimers(
            config.heartbeat_interval_ms,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            self._backoff(),
        )
        heartbeats = HeartbeatSender(
            config, self.network, finder, member, timers, self.clock, self.log_context
        )
        leader = GroupLeader(
            self.config.partition_assignment_strategy,
            self.subscriptions,
            self.metadata,
            self.lock.run_user_code,
            self.log_context,
        )
        joiner = GroupJoiner(
            config, self.network, finder, member, timers, self.clock, leader, self.log_context
        )

        def membership(auto_commit: AutoCommit) -> Membership:
            rebalance = Rebalance(
                joiner,
                leader,
                member,
                self.subscriptions,
                auto_commit,
                self._backoff(),
                self.lock.run_user_code,
                self.log_context,
            )
            self._add_rebalance_gauges(rebalance)
            return ClassicMembership(
                member,
                finder,
                heartbeats,
                leader,
                rebalance,
                self.subscriptions,
                self.metadata,
                self.log_context,
            )

        return member, membership

    def _commit_calls(self, group: Group, loop: PollLoop) -> CommitCalls:
        return CommitCalls(
            commits=group.commits,
            step=group.commit_step,
            lookup=group.committed,
            loop=loop,
            metadata=self.metadata,
            backoff=self.backoff,
            clock=self.clock,
            unfinished=UnfinishedLookup(self.config.request_timeout_ms),
        )

    def _heartbeat_task(self, group: Group, loop: PollLoop) -> HeartbeatTask:
        return HeartbeatTask(
            group.membership,
            self.network,
            self.lock,
            self.clock,
            self.config.heartbeat_interval_ms,
            loop.fail_next_poll,
        )

    # --- fetching

    def _fetcher(self) -> Fetcher:
        return Fetcher(
            self.network,
            self.metadata,
            self.subscriptions,
            self.buffer,
            self.config,
            self.fetch_metrics,
            NodeBackoff(self.backoff, self.clock),
            self.log_context,
        )

    def _collector(self) -> FetchCollector:
        return FetchCollector(
            self.buffer,
            self.subscriptions,
            self.metadata,
            self.config,
            self.clock,
            self.backoff,
            self.fetch_metrics,
            self.log_context,
        )

    def _positions(self, committed: CommittedOffsets | None) -> PositionUpdater:
        request_timeout_ms = self.config.request_timeout_ms
        validator = OffsetValidator(
            self.network,
            self.metadata,
            self.subscriptions,
            self.clock,
            request_timeout_ms=request_timeout_ms,
            backoff=self.backoff,
            log_context=self.log_context,
        )
        offset_fetcher = OffsetFetcher(
            self.offset_requests,
            self.metadata,
            self.subscriptions,
            self.fetch_metrics,
            self.clock,
            request_timeout_ms=request_timeout_ms,
            backoff=self.backoff,
            log_context=self.log_context,
        )
        return PositionUpdater(
            self.subscriptions,
            self.metadata,
            validator,
            offset_fetcher,
            committed,
            self.backoff,
            MissingPartitionsLog(self.metadata, self.subscriptions, self.log_context),
            self.log_context,
        )

    def _loop(
        self,
        group: Group | None,
        fetcher: Fetcher,
        collector: FetchCollector,
        positions: PositionUpdater,
    ) -> PollLoop:
        return PollLoop(
            network=self.network,
            fetcher=fetcher,
            positions=positions,
            collector=collector,
            group=group,
            clock=self.clock,
            metrics=ConsumerPollMetrics(self.metrics, self.clock.monotonic_ns),
            retry_backoff_ms=self.config.retry_backoff_ms,
            run_released=self.lock.run_released if self.config.has_deserializers() else None,
            log=self.log_context.logger("kclient.consumer.poll_loop"),
        )

    # --- metrics

    def _add_gauges(self, loop: PollLoop) -> None:
        self.metrics.gauge("assigned-partitions", lambda: len(self.subscriptions.assigned))
        committed_only = self.config.isolation_level == READ_COMMITTED
        largest_lag = partial(self.subscriptions.largest_lag, committed_only=committed_only)
        self.metrics.gauge("records-lag-max", largest_lag)
        self.metrics.gauge("fetches-buffered", lambda: len(self.buffer))
        self._add_seconds_since("last-poll-seconds-ago", loop.last_poll_ms)
        if self.config.group_id is not None:
            requests = ConsumerRequestMetrics(self.metrics)
            self.network.on_response(requests.record)
            self._add_seconds_since("last-heartbeat-seconds-ago", requests.last_heartbeat_ms)

    def _add_rebalance_gauges(self, rebalance: Rebalance) -> None:
        gauge = self.metrics.gauge
        gauge("rebalance-total", lambda: rebalance.completed)
        gauge("failed-rebalance-total", lambda: rebalance.failed)
        gauge("rebalance-latency-total", lambda: rebalance.took_ms)
        self._add_seconds_since("last-rebalance-seconds-ago", lambda: rebalance.ended_ms)

    def _add_seconds_since(self, name: str, time_ms: Callable[[], float]) -> None:
        self.metrics.gauge(name, seconds_since(time_ms, self.clock.monotonic_ms))

    # --- clients

    def _backoff(self) -> ExponentialBackoff:
        config, generator = self.config, self.runtime.random
        return ExponentialBackoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, generator.random
        )

    def _network_client(self) -> NetworkClient:
        return build_network_client(
            self.config,
            self.runtime,
            self.metadata,
            client_id=_CLIENT_ID,
            max_in_flight=_MAX_IN_FLIGHT,
            log_context=self.log_context,
        )


MEMBERSHIPS: dict[str, MembershipFactory] = {"classic": Wiring.classic_membership}
"""Membership by the value of ``group.protocol``."""


def _log_context(config: ConsumerConfig) -> LogContext:
    client_id = config.client_id
    names: dict[str, str | None] = {"clientId": client_id or _CLIENT_ID}
    if not client_id:  # consumers of one process still differ in their log lines
        names["instance"] = str(next(_instances))
    names["groupId"] = config.group_id
    return LogContext("Consumer", names)
