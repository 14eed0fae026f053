"""Closing of a consumer within a timeout (Kafka: KafkaConsumer.close)."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kclient.client.client_metadata import ConsumerMetadata
from kclient.common.errors import KafkaError
from kclient.common.log_context import ContextLogger
from kclient.common.waiting import Steps
from kclient.consumer.commit_calls import CommitCalls
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.group import Group
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.subscription_state import SubscriptionState

Step = Callable[[float], Steps[None] | None]
"""A step of closing that takes the deadline; it may wait."""


class Closing(NamedTuple):
    """Steps of closing.

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
        log: Logger.
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
    log: ContextLogger

    def run(self, deadline_ms: float, *, may_commit: bool) -> Steps[BaseException | None]:
        """Run all steps and return the first error, also that of Ctrl-C while a step waits.

        Args:
            deadline_ms: Deadline of the steps that wait.
            may_commit: Whether the last positions may be committed automatically.
        """
        first: BaseException | None = None
        for step in self._steps(may_commit=may_commit):
            try:
                waiting = step(deadline_ms)
                if waiting is not None:
                    yield from waiting
            except BaseException as error:  # noqa: BLE001 (raised after the last step)
                first = first or error
        return first

    def _steps(self, *, may_commit: bool) -> tuple[Step, ...]:
        """Return the steps of closing; each runs even if an earlier one failed."""
        return (
            lambda _: self.network.forget_wakeup(),
            partial(self._commit_last, may_commit=may_commit),
            self._leave,
            lambda _: self._close_sessions(),
            self._stop_heartbeats,
            lambda _: self.network.close(),
            lambda _: self.metadata.close(),
            lambda _: self.interceptors.close(),
        )

    def _commit_last(self, deadline_ms: float, *, may_commit: bool) -> Steps[None]:
        group, calls = self.group, self.commit_calls
        if group is None or calls is None:
            return
        offsets = self.subscriptions.all_consumed() if group.auto_commits() else {}
        if may_commit and offsets and group.can_commit():
            try:
                yield from calls.commit(offsets, deadline_ms)
            except KafkaError as error:
                self.log.warning("Commit at close failed: %s", error)
        with suppress(KafkaError):
            yield from calls.drain(deadline_ms)
        group.commits.run_callbacks()

    def _leave(self, deadline_ms: float) -> Steps[None]:
        group = self.group
        if group is None or not self.subscriptions.is_group_managed():
            return
        try:
            group.membership.revoke_partitions()
        finally:
            yield from self._send_leave(group, deadline_ms)

    def _send_leave(self, group: Group, deadline_ms: float) -> Steps[None]:
        left = group.membership.leave("the consumer is being closed")
        with suppress(KafkaError):
            yield from self.loop.wait_for(
                lambda: left.done, lambda _: 1000.0, deadline_ms, "leaving"
            )

    def _close_sessions(self) -> None:
        """Close the fetch sessions without waiting for the responses."""
        with suppress(KafkaError):
            if self.fetcher.close():
                self.loop.flush()

    def _stop_heartbeats(self, deadline_ms: float) -> Steps[None] | None:
        return None if self.heartbeats is None else self.heartbeats.stop(deadline_ms)
