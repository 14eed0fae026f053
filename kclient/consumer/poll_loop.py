"""Loop of a call that waits (Kafka: KafkaConsumer.poll, pollForFetches).

One step runs the group, the positions and the fetches as far as they are due, without waiting.
Between steps the loop yields a wait for the network.
"""

import math
from collections.abc import Callable
from functools import partial

from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.log_context import ContextLogger
from kclient.common.runtime import Clock
from kclient.common.waiting import NetworkWait, Steps
from kclient.consumer.collected import Collected
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_metrics import ConsumerPollMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.group import Group
from kclient.consumer.position_updater import PositionUpdater

# Interval of `service` while polls return buffered records.
_SERVICE_INTERVAL_MS = 2.0
_UNREACHED_MS = 1_000.0
_UNREACHED_POLLS = 10
_WARNING_INTERVAL_MS = 10_000.0


class PollLoop:
    """Runs the consumer while a call waits.

    Attributes:
        network: Network client.
        fetcher: Sends fetches.
        positions: Initializes and validates positions.
        collector: Takes records from the fetch buffer.
        group: Membership and commits, None without a group.
        clock: Clock.
        metrics: Times of polls.
        retry_backoff_ms: Longest wait while a request has to be retried.
        run_released: Runs deserializers with the lock released; None if there are none.
        log: Logger.
    """

    def __init__(
        self,
        *,
        network: ConsumerNetworkClient,
        fetcher: Fetcher,
        positions: PositionUpdater,
        collector: FetchCollector,
        group: Group | None,
        clock: Clock,
        metrics: ConsumerPollMetrics,
        retry_backoff_ms: float,
        run_released: RunUserCode | None,
        log: ContextLogger,
    ) -> None:
        self.network = network
        self.fetcher = fetcher
        self.positions = positions
        self.collector = collector
        self.group = group
        self.clock = clock
        self.metrics = metrics
        self.retry_backoff_ms = retry_backoff_ms
        self.run_released = run_released
        self.log = log
        self._next_service_ms = 0.0
        self._unreached_since_ms: float | None = None
        self._unreached_polls = 0
        self._unreached_wait_ms = 0.0
        self._next_warning_ms = 0.0
        self._warned = False
        self._error: KafkaError | None = None
        self._polled_ms = math.nan

    def last_poll_ms(self) -> float:
        """Return the time of the last poll, NaN if there was none."""
        return self._polled_ms

    def flush_metrics(self) -> None:
        """Pass all polls that have ended to the metrics. For any thread."""
        self.metrics.flush()

    def service_at_next_poll(self) -> None:
        """Run `service` at the next poll: the application changed something."""
        self._next_service_ms = 0.0

    def fail_next_poll(self, error: KafkaError) -> None:
        """Make the next poll raise an error."""
        self._error = error

    def take_buffered(self, target: Collected) -> bool:
        """Begin a poll: collect buffered records, unless `service` is due.

        Returns:
            Whether there are records; if not, `poll` must follow.
        """
        self.metrics.started()
        now_ms = self._polled_ms = self.clock.monotonic_ms()
        if now_ms < self._next_service_ms and self._collect(target):
            if self.fetcher.wants_to_send():
                self._fetch_ahead(now_ms)
            self.metrics.ended()
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
            self.network.maybe_raise_wakeup()
            wait_ms = self.service(now_ms)
            if self._collect(target):
                if self._warned:
                    self._log_unreached(now_ms)
                self._next_service_ms = now_ms + min(wait_ms, _SERVICE_INTERVAL_MS)
                self._fetch_ahead(now_ms)
                self.metrics.ended()
                return True
            if self.fetcher.has_unplanned():
                # Data without a visible record was dropped, or a position was lost: what follows
                # from it is sent before the wait.
                wait_ms = self.service(now_ms)
            if last_look:
                self._log_unreached(now_ms)
                self.metrics.ended()
                return False
            last_look = deadline_ms <= now_ms
            yield NetworkWait(self.network, min(now_ms + wait_ms, deadline_ms))
            now_ms = self.clock.monotonic_ms()

    def _log_unreached(self, now_ms: float) -> None:
        """Log periodically that no broker can be reached, and once when one can be reached again.

        A connection that is being opened, or was closed for being idle, is not logged: it takes
        several polls with timeout 0 until it is ready.
        """
        error = self.network.bootstrap_error()
        if error is None:
            self._unreached_since_ms = None
            self._unreached_polls, self._unreached_wait_ms = 0, 0.0
            if self._warned:
                self._warned = False
                self.log.info("Brokers can be reached again")
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
            self.log.warning("poll() returned no records: %s", error)

    def service(self, now_ms: float) -> float:
        """Run one step of group, positions and fetches; return the time until the next.

        Raises:
            KafkaError: An error for the application.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        wait_ms = math.inf if self.group is None else self.group.step(now_ms)
        if not self.positions.step(now_ms):
            wait_ms = min(wait_ms, self.retry_backoff_ms)
        self.fetcher.send_fetches(now_ms)
        if not self.fetcher.has_in_flight():
            wait_ms = min(wait_ms, self.retry_backoff_ms)
        return wait_ms

    def wait_for(
        self,
        done: Callable[[], bool],
        step: Callable[[float], float],
        deadline_ms: float,
        what: str,
    ) -> Steps[None]:
        """Wait until `done()` is true.

        Args:
            done: Called before and after every wait.
            step: Called with the current time; returns the time until its next call. Heartbeats
                are sent in addition.
            deadline_ms: Deadline.
            what: Subject of the error text.

        Raises:
            KafkaTimeoutError: The deadline passed; the text has the last errors of brokers.
            WakeupError: `Consumer.wakeup` was called.
        """
        last_look = False
        self.network.clear_last_error()
        while not done():
            now_ms = self.clock.monotonic_ms()
            wait_ms = min(step(now_ms), self._keep_membership(now_ms))
            if done():
                return
            if last_look:
                raise self.timed_out(what)
            last_look = deadline_ms <= now_ms
            yield NetworkWait(self.network, min(now_ms + wait_ms, deadline_ms))
            self.network.maybe_raise_wakeup()

    def rest(self, until_ms: float, step: Callable[[float], float]) -> Steps[None]:
        """Run steps until a time.

        Raises:
            WakeupError: `Consumer.wakeup` was called.
        """
        while (now_ms := self.clock.monotonic_ms()) < until_ms:
            wait_ms = min(step(now_ms), self._keep_membership(now_ms))
            yield NetworkWait(self.network, min(now_ms + wait_ms, until_ms))
            self.network.maybe_raise_wakeup()

    def flush(self) -> None:
        """Send queued requests as far as possible without waiting."""
        self.network.poll(0.0, self.clock.monotonic_ms())

    def timed_out(self, what: str) -> KafkaTimeoutError:
        """Return the timeout error of a call."""
        causes = self.network.known_errors()
        unreachable = causes != [] and all(isinstance(one, BootstrapError) for one in causes)
        kind = BootstrapError if unreachable else KafkaTimeoutError
        error = kind("; ".join([f"{what}: timed out", *map(str, causes)]))
        error.__cause__ = causes[0] if causes else None
        return error

    # --- inside

    def _collect(self, target: Collected) -> bool:
        group = self.group
        if group is None:
            self.collector.collect(target)
            return len(target) > 0
        if group.membership.holds_back():
            return False
        if self.run_released is None:
            self.collector.collect(target)
            return len(target) > 0
        self.run_released(partial(self.collector.collect, target))
        if len(target) and group.membership.holds_back():
            # The membership ended during decoding: other members may own the partitions.
            self.collector.undo()
            target.clear()
        return len(target) > 0

    def _keep_membership(self, now_ms: float) -> float:
        """Send a heartbeat if one is due; return the time until the next step.

        Unlike `service`, this does not reset the poll timer of ``max.poll.interval.ms``.
        """
        group = self.group
        return math.inf if group is None else group.membership.background_step(now_ms)

    def _fetch_ahead(self, now_ms: float) -> None:
        """Send the next fetch before the application processes the records."""
        try:
            if self.fetcher.wants_to_send():
                self.fetcher.send_fetches(now_ms)
            self.network.poll(0.0, now_ms)
        except KafkaError as error:
            # The records are returned; the next poll raises the error.
            self._error = error
