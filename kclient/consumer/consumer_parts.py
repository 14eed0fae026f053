"""Wiring of a consumer."""

from collections.abc import Callable
from functools import partial
from itertools import count

from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_fetch_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.consumer_request_metrics import ConsumerRequestMetrics, seconds_since
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.consumer.coordinator.group_parts import GroupCallbacks, GroupParts
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat_task import HeartbeatTask
from kclient.consumer.coordinator.rebalance import Rebalance
from kclient.consumer.coordinator.unfinished_lookup import UnfinishedLookup
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.fetch_config import READ_COMMITTED
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.list_offsets_requests import ListOffsetsRequests
from kclient.consumer.missing_partitions import MissingPartitionsLog
from kclient.consumer.node_backoff import NodeBackoff
from kclient.consumer.offset_fetcher import OffsetFetcher
from kclient.consumer.offset_validator import OffsetValidator
from kclient.consumer.poll_loop import Decoding, PollLoop
from kclient.consumer.position_updater import PositionUpdater
from kclient.consumer.subscription_state import SubscriptionState

_CLIENT_ID = "kclient-consumer"
# Group requests, lookups and one fetch per connection; bounds the queue.
_MAX_IN_FLIGHT = 100
_instances = count(1)


class ConsumerParts:
    """Objects of a consumer. Opens no connection and starts no task."""

    def __init__(self, config: ConsumerConfig, runtime: Runtime) -> None:
        values = config.values
        self.config = config
        self.runtime = runtime
        self.log_context = _log_context(config)
        self.log = self.log_context.logger(__name__)
        self.lock = ConsumerLock(runtime.tasks)
        self.backoff = ExponentialBackoff(
            values["retry_backoff_ms"], values["retry_backoff_max_ms"], runtime.random.random
        )
        self.metrics = _metrics(config, runtime)
        self.interceptors = ConsumerInterceptors(
            values["interceptor_classes"], self.lock.run_user_code, self.log_context
        )
        self.subscriptions = SubscriptionState(
            config.auto_offset_reset, exclude_internal=values["exclude_internal_topics"]
        )
        self.metadata = _metadata(config, runtime, self.log_context)
        self.network = ConsumerNetworkClient(
            self._network_client, self.metadata, runtime.clock, values["request_timeout_ms"]
        )
        self.buffer = FetchBuffer()
        self.requests = ListOffsetsRequests(
            self.network,
            self.metadata,
            config.fetch.isolation_level,
            values["request_timeout_ms"],
            self.log_context,
        )
        self.group = self._group(config.group)
        self.coordinator = (
            None if self.group is None else ConsumerCoordinator(self.group, self.log_context)
        )
        self.unfinished = UnfinishedLookup(values["request_timeout_ms"])
        self._wire_fetching()
        self._show_levels()

    def _show_levels(self) -> None:
        self.metrics.gauge("assigned-partitions", lambda: len(self.subscriptions.assigned))
        committed_only = self.config.fetch.isolation_level == READ_COMMITTED
        largest_lag = partial(self.subscriptions.largest_lag, committed_only=committed_only)
        self.metrics.gauge("records-lag-max", largest_lag)
        self.metrics.gauge("fetches-buffered", lambda: len(self.buffer))
        now_ms = self.runtime.clock.monotonic_ms
        since = partial(seconds_since, now_ms=now_ms)
        self.metrics.gauge("last-poll-seconds-ago", since(self.loop.last_poll_ms))
        if self.group is not None:
            requests = ConsumerRequestMetrics(self.metrics)
            self.network.on_response(requests.record)
            self.metrics.gauge("last-heartbeat-seconds-ago", since(requests.last_heartbeat_ms))
            self._show_rebalances(self.group.rebalance, now_ms)

    def _show_rebalances(self, rebalance: Rebalance, now_ms: Callable[[], float]) -> None:
        gauge = self.metrics.gauge
        gauge("rebalance-total", lambda: rebalance.completed)
        gauge("failed-rebalance-total", lambda: rebalance.failed)
        gauge("rebalance-latency-total", lambda: rebalance.took_ms)
        gauge("last-rebalance-seconds-ago", seconds_since(lambda: rebalance.ended_ms, now_ms))

    def _group(self, settings: GroupSettings | None) -> GroupParts | None:
        if settings is None:
            return None
        return GroupParts(
            settings,
            self.config.values["partition_assignment_strategy"],
            self.network,
            self.metadata,
            self.subscriptions,
            self.runtime,
            GroupCallbacks(self.lock.run_user_code, self.interceptors.on_commit),
            self.log_context,
        )

    def _network_client(self) -> NetworkClient:
        return build_network_client(
            self.config.values,
            self.runtime,
            self.metadata,
            client_id=_CLIENT_ID,
            max_in_flight=_MAX_IN_FLIGHT,
            log_context=self.log_context,
        )

    def _wire_fetching(self) -> None:
        config, values, clock = self.config, self.config.values, self.runtime.clock
        measured = ConsumerFetchMetrics(self.metrics)
        self.fetcher = Fetcher(
            self.network,
            self.metadata,
            self.subscriptions,
            self.buffer,
            config.fetch,
            measured,
            NodeBackoff(self.backoff, clock),
            self.log_context,
        )
        self.collector = FetchCollector(
            self.buffer,
            self.subscriptions,
            self.metadata,
            config.fetch,
            clock,
            self.backoff,
            measured,
            self.log_context,
        )
        self.positions = self._position_updater(measured)
        self.loop = PollLoop(
            self.network,
            self.fetcher,
            self.positions,
            self.coordinator,
            clock,
            values["retry_backoff_ms"],
            Decoding(self.lock.run_user_code, self.collector.undo)
            if config.fetch.has_deserializers()
            else None,
            self.log_context,
        )
        self.heartbeats = (
            None
            if self.coordinator is None or config.group is None
            else HeartbeatTask(
                self.coordinator,
                self.network,
                self.lock,
                clock,
                config.group.heartbeat_interval_ms,
            )
        )

    def _position_updater(self, measured: ConsumerFetchMetrics) -> PositionUpdater:
        values, clock = self.config.values, self.runtime.clock
        validator = OffsetValidator(
            self.network,
            self.metadata,
            self.subscriptions,
            clock,
            request_timeout_ms=values["request_timeout_ms"],
            backoff=self.backoff,
            log_context=self.log_context,
        )
        offset_fetcher = OffsetFetcher(
            self.requests,
            self.metadata,
            self.subscriptions,
            measured,
            clock,
            request_timeout_ms=values["request_timeout_ms"],
            backoff=self.backoff,
            log_context=self.log_context,
        )
        committed = None if self.group is None else self.group.committed
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

    def reset_after_interrupt(self) -> None:
        """Reset all state that an interrupted call may have left inconsistent."""
        if self.coordinator is not None:
            self.coordinator.reset_after_interrupt()
        self.positions.reset_after_interrupt()
        self.fetcher.reset_after_interrupt()
        self.network.renew()


def _log_context(config: ConsumerConfig) -> LogContext:
    client_id = config.values["client_id"]
    names: dict[str, str | None] = {"clientId": client_id or _CLIENT_ID}
    if not client_id:  # consumers of one process still differ in their log lines
        names["instance"] = str(next(_instances))
    names["groupId"] = None if config.group is None else config.group.group_id
    return LogContext("Consumer", names)


def _metrics(config: ConsumerConfig, runtime: Runtime) -> Metrics:
    return Metrics(
        runtime.clock,
        runtime.tasks,
        num_samples=config.values["metrics_num_samples"],
        sample_window_ms=config.values["metrics_sample_window_ms"],
    )


def _metadata(
    config: ConsumerConfig, runtime: Runtime, log_context: LogContext
) -> ConsumerMetadata:
    values = config.values
    return ConsumerMetadata(
        runtime,
        refresh_backoff_ms=values["retry_backoff_ms"],
        refresh_backoff_max_ms=values["retry_backoff_max_ms"],
        max_age_ms=values["metadata_max_age_ms"],
        allow_auto_topic_creation=values["allow_auto_create_topics"],
        log_context=log_context,
    )
