"""Closing of a consumer within a timeout (Kafka: KafkaConsumer.close)."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from kclient.client.client_metadata import ConsumerMetadata
from kclient.common.errors import KafkaError
from kclient.common.log_context import ContextLogger
from kclient.common.runtime import Clock
from kclient.consumer.commit_calls import CommitCalls
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.group import Group
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.subscription_state import SubscriptionState

Step = Callable[[float], object]


@dataclass(eq=False, slots=True)
class Closing:
    """Steps of closing, which continue in the next call after an interrupt.

    Attributes:
        network: Network client.
        metadata: Cluster metadata.
        subscriptions: Subscription and assignment.
        fetcher: Fetch sessions.
        interceptors: Interceptors of the application.
        loop: Waits.
        group: Membership and commits, None without a group.
        commit_calls: Commits that wait, None without a group.
        heartbeats: Heartbeat task, None without a group.
        clock: Clock.
        log: Logger.
        may_commit: Whether the last positions may be committed automatically.
    """

    network: ConsumerNetworkClient
    metadata: ConsumerMetadata
    subscriptions: SubscriptionState
    fetcher: Fetcher
    interceptors: ConsumerInterceptors
    loop: PollLoop
    group: Group | None
    commit_calls: CommitCalls | None
    heartbeats: HeartbeatTask | None
    clock: Clock
    log: ContextLogger
    may_commit: bool = field(default=True, init=False)
    _steps: deque[Step] | None = field(default=None, init=False)

    def run(self, deadline_ms: float, reset: Callable[[], None]) -> BaseException | None:
        """Run all steps and return the first error; an interrupted step is not repeated.

        Args:
            deadline_ms: Deadline of the steps that wait.
            reset: Resets the state that an interrupted step leaves inconsistent.
        """
        if self._steps is None:
            self._steps = deque(self._all_steps())
        else:  # continue an interrupted close
            self._steps.extend(self._last_steps())
        first: BaseException | None = None
        while self._steps:
            try:
                self._steps[0](deadline_ms)
            except BaseException as error:  # noqa: BLE001 (raised after the last step)
                first = first or error
                if not isinstance(error, Exception) and not self.network.was_only_waiting():
                    reset()
                    self._steps.extend(self._last_steps())
            self._steps.popleft()
        return first

    def _all_steps(self) -> tuple[Step, ...]:
        """Return the steps of closing; each runs even if an earlier one failed."""
        return (
            lambda _: self.network.forget_wakeup(),
            self._commit_last,
            self._leave,
            lambda _: self._close_sessions(),
            *self._last_steps(),
            lambda _: self.interceptors.close(),
        )

    def _last_steps(self) -> tuple[Step, ...]:
        """Return the last steps, which run again after an interrupt, since the reset reconnects."""
        return (
            self._stop_heartbeats,
            lambda _: self.network.close(),
            lambda _: self.metadata.close(),
        )

    def _commit_last(self, deadline_ms: float) -> None:
        group, calls = self.group, self.commit_calls
        if group is None or calls is None:
            return
        offsets = self.subscriptions.all_consumed() if group.auto_commits() else {}
        if self.may_commit and offsets and group.can_commit():
            try:
                calls.commit(offsets, deadline_ms)
            except KafkaError as error:
                self.log.warning("Commit at close failed: %s", error)
        with suppress(KafkaError):
            calls.drain(deadline_ms)
        group.commits.run_callbacks()

    def _leave(self, deadline_ms: float) -> None:
        group = self.group
        if group is None or not self.subscriptions.is_group_managed():
            return
        try:
            group.membership.revoke_partitions()
        finally:
            self._send_leave(group, deadline_ms)

    def _send_leave(self, group: Group, deadline_ms: float) -> None:
        left = group.membership.leave("the consumer is being closed")
        with suppress(KafkaError):
            self.loop.wait_for(lambda: left.done, lambda _: 1000.0, deadline_ms, "leaving")

    def _close_sessions(self) -> None:
        """Close the fetch sessions without waiting for the responses."""
        with suppress(KafkaError):
            if self.fetcher.close():
                self.loop.flush()

    def _stop_heartbeats(self, deadline_ms: float) -> None:
        left_ms = deadline_ms - self.clock.monotonic_ms()
        if self.heartbeats is not None:
            self.heartbeats.stop(max(left_ms, 0.0) / 1000.0)
