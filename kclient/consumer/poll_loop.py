"""Loop of a call that waits (Kafka: KafkaConsumer.poll, pollForFetches).

One step runs the group, the positions and the fetches as far as they are due, without waiting.
Between steps the loop waits for the network.
"""

import math
from collections.abc import Callable, Sized
from typing import NamedTuple, TypeVar

from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.position_updater import PositionUpdater

T = TypeVar("T", bound=Sized)

# Interval of `service` while polls return buffered records.
_SERVICE_INTERVAL_MS = 2.0
_UNREACHED_MS = 1_000.0
_UNREACHED_POLLS = 10
_WARNING_INTERVAL_MS = 10_000.0


class Decoding(NamedTuple):
    """Decoding with deserializers of the application.

    Attributes:
        run_user_code: Runs code of the application while the heartbeat task may send heartbeats.
        undo: Puts back the records that were decoded last.
    """

    run_user_code: RunUserCode
    undo: Callable[[], None]


class PollLoop:
    """Runs the consumer while a call waits."""

    def __init__(
        self,
        network: ConsumerNetworkClient,
        fetcher: Fetcher,
        positions: PositionUpdater,
        coordinator: ConsumerCoordinator | None,
        clock: Clock,
        retry_backoff_ms: float,
        decoding: Decoding | None,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Initialize.

        Args:
            network: Network client.
            fetcher: Sends fetches.
            positions: Initializes and validates positions.
            coordinator: Group membership, None without a group.
            clock: Clock.
            retry_backoff_ms: Longest wait while a request has to be retried.
            decoding: Decoding with deserializers of the application, None if there are none.
            log_context: Prefix of log lines.
        """
        self._log = log_context.logger(__name__)
        self._network = network
        self._fetcher = fetcher
        self._positions = positions
        self._coordinator = coordinator
        self._clock = clock
        self._retry_backoff_ms = retry_backoff_ms
        self._decoding = decoding
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

    def service_at_next_poll(self) -> None:
        """Run `service` at the next poll: the application changed something."""
        self._next_service_ms = 0.0

    def poll(self, take: Callable[[], T], timeout_ms: float) -> T | None:
        """Return the first result of `take` that is not empty, None after `timeout_ms`.

        Raises:
            WakeupError: `Consumer.wakeup` was called.
            KafkaError: An error for the application; nothing was taken.
        """
        now_ms = self._polled_ms = self._clock.monotonic_ms()
        if now_ms < self._next_service_ms and (taken := self._take(take)) is not None:
            if self._fetcher.wants_to_send():
                self._fetch_ahead(now_ms)
            return taken
        deadline_ms = now_ms + timeout_ms
        last_look = False
        while True:
            self._network.maybe_raise_wakeup()
            wait_ms = self.service(now_ms)
            if (taken := self._take(take)) is not None:
                if self._warned:
                    self._log_unreached(now_ms)
                self._next_service_ms = now_ms + min(wait_ms, _SERVICE_INTERVAL_MS)
                self._fetch_ahead(now_ms)
                return taken
            if last_look:
                self._log_unreached(now_ms)
                return None
            left_ms = deadline_ms - now_ms
            last_look = left_ms <= 0
            self._network.poll(max(0.0, min(wait_ms, left_ms)))
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

    def service(self, now_ms: float) -> float:
        """Run one step of group, positions and fetches; return the time until the next.

        Raises:
            KafkaError: An error for the application.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        wait_ms = math.inf if self._coordinator is None else self._coordinator.step(now_ms)
        if not self._positions.step(now_ms):
            wait_ms = min(wait_ms, self._retry_backoff_ms)
        self._fetcher.send_fetches(now_ms)
        if not self._fetcher.has_in_flight():
            wait_ms = min(wait_ms, self._retry_backoff_ms)
        return wait_ms

    def wait_for(
        self,
        done: Callable[[], bool],
        step: Callable[[float], float],
        deadline_ms: float,
        what: str,
    ) -> None:
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
        self._network.clear_last_error()
        while not done():
            now_ms = self._clock.monotonic_ms()
            wait_ms = min(step(now_ms), self._keep_membership(now_ms))
            if done():
                return
            left_ms = deadline_ms - now_ms
            if last_look:
                raise self.timed_out(what)
            last_look = left_ms <= 0
            self._network.poll(max(0.0, min(wait_ms, left_ms)))
            self._network.maybe_raise_wakeup()

    def rest(self, until_ms: float, step: Callable[[float], float]) -> None:
        """Run steps until a time.

        Raises:
            WakeupError: `Consumer.wakeup` was called.
        """
        while (now_ms := self._clock.monotonic_ms()) < until_ms:
            wait_ms = min(step(now_ms), self._keep_membership(now_ms))
            self._network.poll(max(0.0, min(wait_ms, until_ms - now_ms)))
            self._network.maybe_raise_wakeup()

    def flush(self) -> None:
        """Send queued requests as far as possible without waiting."""
        self._network.poll(0.0)

    def timed_out(self, what: str) -> KafkaTimeoutError:
        """Return the timeout error of a call."""
        causes = self._network.known_errors()
        unreachable = causes != [] and all(isinstance(one, BootstrapError) for one in causes)
        kind = BootstrapError if unreachable else KafkaTimeoutError
        error = kind("; ".join([f"{what}: timed out", *map(str, causes)]))
        error.__cause__ = causes[0] if causes else None
        return error

    # --- inside

    def _take(self, take: Callable[[], T]) -> T | None:
        coordinator = self._coordinator
        if coordinator is not None and coordinator.holds_back():
            return None
        if coordinator is None or self._decoding is None:
            taken = take()
            return taken if len(taken) else None
        taken = self._decoding.run_user_code(take)
        if not len(taken):
            return None
        if coordinator.holds_back():
            # The membership ended during decoding: other members may own the partitions.
            self._decoding.undo()
            return None
        return taken

    def _keep_membership(self, now_ms: float) -> float:
        """Send a heartbeat if one is due; return the time until the next step.

        Unlike `service`, this does not reset the poll timer of ``max.poll.interval.ms``.
        """
        return math.inf if self._coordinator is None else self._coordinator.background_step(now_ms)

    def _fetch_ahead(self, now_ms: float) -> None:
        """Send the next fetch before the application processes the records."""
        try:
            if self._fetcher.wants_to_send():
                self._fetcher.send_fetches(now_ms)
            self._network.poll(0.0)
        except KafkaError as error:
            # The records are returned; the next poll raises the error.
            self._error = error
