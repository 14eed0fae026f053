"""Rebalance of a member (Kafka: AbstractCoordinator.joinGroupIfNeeded)."""

import logging
import math
from collections.abc import Callable
from enum import Enum

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import (
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Clock
from kclient.common.types import Node, TopicPartition
from kclient.consumer.assignors import Assignment
from kclient.consumer.classic.consumer_protocol import decode_assignment
from kclient.consumer.classic.group_joiner import GroupJoiner
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.classic.member import Member
from kclient.consumer.commits import AutoCommit
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_metrics import seconds_since
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState

_RETRY_AT_ONCE = (MemberIdRequiredError, UnknownMemberIdError, IllegalGenerationError)


class RebalancePhase(Enum):
    """Phase of a rebalance on the member."""

    NONE = "no rebalance"
    COMMITTING = "waiting for the last commit"
    JOINING = "partitions revoked, joining"
    ASSIGNED = "joined, the callbacks have not returned"


class Rebalance:
    """Rebalance by the eager protocol: all partitions are revoked first.

    Callbacks of the application run within `step`. An error of a callback does not stop the
    rebalance; it is raised when the state is consistent.

    Attributes:
        phase: Current phase.
        completed: Number of completed rebalances.
        failed: Number of failed joins.
        took_ms: Total time of the completed rebalances.
        ended_ms: Time when the last one was completed, NaN if none was.
    """

    def __init__(
        self,
        joiner: GroupJoiner,
        leader: GroupLeader,
        member: Member,
        subscriptions: SubscriptionState,
        backoff: ExponentialBackoff,
        run_callback: RunUserCode,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._joiner = joiner
        self._leader = leader
        self._member = member
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._run_callback = run_callback
        self.phase = RebalancePhase.NONE
        self._commit: RequestFuture[None] | None = None
        self._commit_ends_ms = 0.0
        self._join: RequestFuture[bytes] | None = None
        self._assignment = Assignment(())
        self._attempts = 0
        self._retried_at_once: set[type[KafkaError]] = set()
        self._next_attempt_ms = 0.0
        self._began_ms = 0.0
        self.completed = 0
        self.failed = 0
        self.took_ms = 0.0
        self.ended_ms = math.nan

    def is_under_way(self) -> bool:
        """Return whether a rebalance is in progress."""
        return self.phase is not RebalancePhase.NONE

    def add_gauges(self, metrics: Metrics, clock: Clock) -> None:
        """Add the metrics of rebalances."""
        metrics.gauge("rebalance-total", lambda: self.completed)
        metrics.gauge("failed-rebalance-total", lambda: self.failed)
        metrics.gauge("rebalance-latency-total", lambda: self.took_ms)
        metrics.gauge(
            "last-rebalance-seconds-ago", seconds_since(lambda: self.ended_ms, clock.monotonic_ms)
        )

    def step(self, coordinator: Node | None, auto_commit: AutoCommit, now_ms: float) -> float:
        """Run as far as possible without waiting; return the time until the next step.

        Args:
            coordinator: Group coordinator, None while unknown.
            auto_commit: Commits before partitions are revoked.
            now_ms: Current time.
        """
        if self.phase is RebalancePhase.ASSIGNED:  # Ctrl-C came while the callbacks ran
            return self._report_assigned()
        if self.phase is RebalancePhase.NONE:
            self._begin(auto_commit, now_ms)
        if self.phase is RebalancePhase.COMMITTING:
            if self._commit is not None and not self._commit.done and now_ms < self._commit_ends_ms:
                return self._commit_ends_ms - now_ms
            self._revoke_before_joining()
        if self._join is not None and self._join.done:
            self._joined(self._join, auto_commit, now_ms)
        if self.phase is RebalancePhase.JOINING and self._join is None:
            if now_ms < self._next_attempt_ms:
                return self._next_attempt_ms - now_ms
            if coordinator is not None:
                self._join = self._joiner.join(coordinator)
        return float("inf")

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group and discard a rebalance in progress."""
        response = self._joiner.leave(reason)
        self.cancel()
        self._leader.step_down()
        return response

    def leave_in_background(self, reason: str) -> None:
        """Leave the group; a rebalance in progress is discarded by the next `step`."""
        self._joiner.leave(reason)

    def cancel(self) -> None:
        """Discard a rebalance in progress."""
        self.phase = RebalancePhase.NONE
        self._commit = self._join = None
        self._next_attempt_ms = 0.0

    def revoke_partitions(self) -> None:
        """Call the rebalance listener for revoked or lost partitions, and remove them."""
        if self._member.has_generation():
            self._take_away("Revoking", RebalanceListener.revoked)
        else:
            self._take_away("Lost", RebalanceListener.lost)

    # --- inside

    def _begin(self, auto_commit: AutoCommit, now_ms: float) -> None:
        self.phase = RebalancePhase.COMMITTING
        self._began_ms = now_ms
        self._commit = None
        if auto_commit.enabled and self._member.is_stable():
            self._commit = auto_commit.commit_now()
            self._commit_ends_ms = auto_commit.last_commit_deadline_ms(now_ms)

    def _revoke_before_joining(self) -> None:
        if self._commit is not None and (not self._commit.done or self._commit.failed):
            self._log.warning(
                "Commit before the rebalance failed: %s", self._commit.error or "no response"
            )
        try:
            self.revoke_partitions()
        except Exception:
            self._begin_joining()
            raise
        self._begin_joining()

    def _begin_joining(self) -> None:
        self._commit = None
        self.phase = RebalancePhase.JOINING

    def _take_away(
        self, what: str, report: Callable[[RebalanceListener, list[TopicPartition]], None]
    ) -> None:
        partitions = sorted(self._subscriptions.assigned)
        listener = self._subscriptions.listener
        if not partitions:
            return
        self._log.info(
            "%s previously assigned partitions: %s", what, ", ".join(map(str, partitions))
        )
        try:
            self._run_callback(lambda: report(listener, partitions))
        except Exception:
            self._drop_partitions()
            raise
        # After Ctrl-C during the callback they are kept: the next poll runs it again.
        self._drop_partitions()

    def _drop_partitions(self) -> None:
        if self._subscriptions.is_group_managed():
            self._subscriptions.assign_from_group(())

    def _joined(self, join: RequestFuture[bytes], auto_commit: AutoCommit, now_ms: float) -> None:
        self._join = None
        if join.error is not None:
            self._join_failed(join.error, now_ms)
            return
        if not self._member.is_stable():
            # The heartbeat task left the group after the response: others own the partitions.
            # `step` joins again.
            self._put_off(now_ms)
            return
        self.completed += 1
        self.took_ms += now_ms - self._began_ms
        self.ended_ms = now_ms
        assignment = decode_assignment(join.value)
        if not self._is_still_wanted(assignment):
            self._member.request_rejoin("the subscription changed while joining")
            self._put_off(now_ms)
            self.phase = RebalancePhase.NONE
            return
        self._attempts = 0
        self._retried_at_once.clear()
        self._subscriptions.assign_from_group(assignment.partitions)
        auto_commit.restart(now_ms)
        self._assignment = assignment
        self.phase = RebalancePhase.ASSIGNED
        self._report_assigned()

    def _report_assigned(self) -> float:
        """Call assignor and listener; after Ctrl-C during these the next step calls them again.

        Returns:
            Time until the next step.
        """
        if not self._member.is_stable():  # the member has left the group since
            self.phase = RebalancePhase.NONE
            return 0.0
        generation, listener = self._member.generation, self._subscriptions.listener
        partitions = sorted(self._assignment.partitions)
        self._log.info(
            "Adding newly assigned partitions: %s", ", ".join(map(str, partitions)) or "none"
        )
        try:
            self._leader.on_assignment(
                self._assignment, generation.protocol_name, generation.generation_id
            )
            self._run_callback(lambda: listener.assigned(partitions))
        except Exception:
            self.phase = RebalancePhase.NONE
            raise
        self.phase = RebalancePhase.NONE
        return math.inf

    def _join_failed(self, error: KafkaError, now_ms: float) -> None:
        expected = isinstance(error, MemberIdRequiredError | RebalanceInProgressError)
        level = logging.DEBUG if expected else logging.INFO
        self._log.log(level, "Join group failed: %s", error)
        if not isinstance(error, MemberIdRequiredError):  # first step of a regular join
            self.failed += 1
        # Retry without backoff once per kind of error.
        if isinstance(error, _RETRY_AT_ONCE) and type(error) not in self._retried_at_once:
            self._retried_at_once.add(type(error))
        else:
            self._put_off(now_ms)
        passing = isinstance(error, (*_RETRY_AT_ONCE, RebalanceInProgressError))
        if not passing and not error.retriable:
            raise error

    def _put_off(self, now_ms: float) -> None:
        self._next_attempt_ms = now_ms + self._backoff.backoff(self._attempts)
        self._attempts += 1

    def _is_still_wanted(self, assignment: Assignment) -> bool:
        return self._subscriptions.wants({each.topic for each in assignment.partitions})
