"""Loop of a poll that waits (Kafka: KafkaConsumer.poll, pollForFetches).

One step runs the group, the positions and the fetches as far as they are due, without waiting.
Between steps the loop yields a wait for the network.
"""

import math
from functools import partial

from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.common.waiting import NetworkWait, Steps
from kclient.consumer.collected import Collected
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_metrics import ConsumerPollMetrics, seconds_since
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetching import Fetching
from kclient.consumer.group import Group
from kclient.consumer.positions import Positions

# Interval of `service` while polls return buffered records.
_SERVICE_INTERVAL_MS = 2.0
_UNREACHED_MS = 1_000.0
_UNREACHED_POLLS = 10
_WARNING_INTERVAL_MS = 10_000.0


class PollLoop:
    """Runs the consumer during polls."""

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        group: Group | None,
        positions: Positions,
        fetching: Fetching,
        lock: ConsumerLock,
        metrics: Metrics,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._clock = runtime.clock
        self._network = network
        self._group = group
        self._positions = positions
        self._fetcher = fetching.fetcher
        self._collector = fetching.collector
        self._retry_backoff_ms = config.retry_backoff_ms
        # Runs deserializers with the lock released.
        self._run_released = lock.run_released if config.has_deserializers() else None
        self._metrics = ConsumerPollMetrics(metrics, runtime.clock.monotonic_ns)
        metrics.gauge(
            "last-poll-seconds-ago",
            seconds_since(lambda: self._polled_ms, self._clock.monotonic_ms),
        )
        self._next_service_ms = 0.0
        self._unreached_since_ms: float | None = None
        self._unreached_polls = 0
        self._unreached_wait_ms = 0.0
        self._next_warning_ms = 0.0
        self._warned = False
        self._error: KafkaError | None = None
        self._polled_ms = math.nan

    def flush_metrics(self) -> None:
        """Pass all polls that have ended to the metrics. For any thread."""
        self._metrics.flush()

    def service_at_next_poll(self) -> None:
        """Run `service` at the next poll: the application changed something."""
        self._next_service_ms = 0.0

    def take_buffered(self, target: Collected) -> bool:
        """Begin a poll: collect buffered records, unless `service` is due.

        Returns:
            Whether there are records; if not, `poll` must follow.
        """
        self._metrics.started()
        now_ms = self._polled_ms = self._clock.monotonic_ms()
        if now_ms < self._next_service_ms and self._collect(target):
            if self._fetcher.wants_to_send():
                self._fetch_ahead()
            self._metrics.ended()
            return True
        return False

    def poll(self, target: Collected, timeout_ms: float) -> Steps[bool]:
        """Collect records, and wait for them up to `timeout_ms`; return whether there are any.

        Raises:
            WakeupError: `Consumer.wakeup` was called.
            KafkaError: An error for the application; nothing was taken.
        """
        now_ms = self._polled_ms
        deadline_ms = now_ms + timeout_ms
        last_look = False
        while True:
            self._network.maybe_raise_wakeup()
            wait_ms = yield from self.service(now_ms)
            if self._collect(target):
                if self._warned:
                    self._log_unreached(now_ms)
                self._next_service_ms = now_ms + min(wait_ms, _SERVICE_INTERVAL_MS)
                self._fetch_ahead()
                self._metrics.ended()
                return True
            if self._fetcher.has_unplanned():
                # Data without a visible record was dropped, or a position was lost: what follows
                # from it is sent before the wait.
                wait_ms = yield from self.service(now_ms)
            if last_look:
                self._log_unreached(now_ms)
                self._metrics.ended()
                return False
            last_look = deadline_ms <= now_ms
            yield NetworkWait(self._network, min(now_ms + wait_ms, deadline_ms))
            now_ms = self._clock.monotonic_ms()

    def _log_unreached(self, now_ms: float) -> None:
        """Log periodically that no broker can be reached, and once when one can be reached again.

        A connection that is being opened, or was closed for being idle, is not logged: it takes
        several polls with timeout 0 until it is ready.
        """
        error = self._network.bootstrap_error()
        if error is None:
            self._unreached_since_ms = None
            self._unreached_polls, self._unreached_wait_ms = 0, 0.0
            if self._warned:
                self._warned = False
                self._log.info("Brokers can be reached again")
            return
        if self._unreached_since_ms is None:
            self._unreached_since_ms = now_ms
        self._unreached_polls += 1
        self._unreached_wait_ms += now_ms - self._polled_ms
        lasts = now_ms >= self._unreached_since_ms + _UNREACHED_MS and (
            self._unreached_wait_ms >= _UNREACHED_MS or self._unreached_polls >= _UNREACHED_POLLS
        )
        if lasts and (not self._warned or now_ms >= self._next_warning_ms):
            self._warned = True
            self._next_warning_ms = now_ms + _WARNING_INTERVAL_MS
            self._log.warning("poll() returned no records: %s", error)

    def service(self, now_ms: float) -> Steps[float]:
        """Run one step of group, positions and fetches; return the time until the next.

        Raises:
            KafkaError: An error for the application.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        wait_ms = math.inf
        if self._group is not None:
            wait_ms = yield from self._group.step(now_ms)
        if not self._positions.step(now_ms):
            wait_ms = min(wait_ms, self._retry_backoff_ms)
        self._fetcher.send_fetches(now_ms)
        if not self._fetcher.has_in_flight():
            wait_ms = min(wait_ms, self._retry_backoff_ms)
        return wait_ms

    # --- inside

    def _collect(self, target: Collected) -> bool:
        group = self._group
        if group is None:
            self._collector.collect(target)
            return len(target) > 0
        if group.reconciliation.revoking or group.membership.holds_back():
            return False
        if self._run_released is None:
            self._collector.collect(target)
            return len(target) > 0
        self._run_released(partial(self._collector.collect, target))
        if len(target) and group.membership.holds_back():
            # The membership ended during decoding: other members may own the partitions.
            self._collector.undo()
            target.clear()
        return len(target) > 0

    def _fetch_ahead(self) -> None:
        """Send the next fetch before the application processes the records."""
        now_ms = self._clock.monotonic_ms()  # deserializers and callbacks may have run for long
        try:
            if self._fetcher.wants_to_send():
                self._fetcher.send_fetches(now_ms)
            self._network.poll(0.0, now_ms)
        except KafkaError as error:
            # The records are returned; the next poll raises the error.
            self._error = error
