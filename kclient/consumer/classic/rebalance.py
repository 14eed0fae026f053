"""Rebalance of a member (Kafka: AbstractCoordinator.joinGroupIfNeeded)."""

import logging
import math
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
from kclient.common.types import Node
from kclient.common.waiting import Steps
from kclient.consumer.assignors import Assignment
from kclient.consumer.classic.consumer_protocol import decode_assignment
from kclient.consumer.classic.group_joiner import GroupJoiner
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.classic.member import Member
from kclient.consumer.consumer_metrics import seconds_since
from kclient.consumer.reconciliation import Reconciliation
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState

_RETRY_AT_ONCE = (MemberIdRequiredError, UnknownMemberIdError, IllegalGenerationError)


class RebalancePhase(Enum):
    """Phase of a rebalance on the member."""

    NONE = "no rebalance"
    REVOKING = "waiting for the last commit, or a callback was interrupted"
    JOINING = "partitions revoked, joining"
    ASSIGNED = "joined, the callbacks have not returned"


class Rebalance:
    """Rebalance by the eager protocol: all partitions are revoked first.

    Callbacks of the application run within `step`, see `Reconciliation`. An error of a callback
    does not stop the rebalance; it is raised when the state is consistent.

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
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._joiner = joiner
        self._leader = leader
        self._member = member
        self._subscriptions = subscriptions
        self._backoff = backoff
        self.phase = RebalancePhase.NONE
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

    def step(
        self, coordinator: Node | None, reconciliation: Reconciliation, now_ms: float
    ) -> Steps[float]:
        """Run as far as possible; return the time until the next step.

        Args:
            coordinator: Group coordinator, None while unknown.
            reconciliation: Changes the assigned partitions.
            now_ms: Current time.
        """
        if self.phase is RebalancePhase.ASSIGNED:  # the callbacks were interrupted
            return (yield from self._report_assigned(reconciliation))
        if self.phase is RebalancePhase.NONE:
            self.phase = RebalancePhase.REVOKING
            self._began_ms = now_ms
            can_commit = self._member.is_stable()
            reconciliation.begin_revoking((), now_ms, can_commit=can_commit)
        if self.phase is RebalancePhase.REVOKING:
            wait_ms = yield from self._revoke(reconciliation, now_ms)
            if wait_ms > 0:
                return wait_ms
        if self._join is not None and self._join.done:
            yield from self._joined(self._join, reconciliation, now_ms)
        if self.phase is RebalancePhase.JOINING and self._join is None:
            if now_ms < self._next_attempt_ms:
                return self._next_attempt_ms - now_ms
            if coordinator is not None:
                self._join = self._joiner.join(coordinator)
        return math.inf

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
        self._join = None
        self._next_attempt_ms = 0.0

    # --- inside

    def _revoke(self, reconciliation: Reconciliation, now_ms: float) -> Steps[float]:
        """Revoke all partitions, then begin to join; return the time until the next step."""
        are_lost = not self._member.has_generation()
        try:
            wait_ms = yield from reconciliation.revoke(now_ms, are_lost=are_lost)
        except Exception:
            self._begin_joining()
            raise
        if wait_ms <= 0:
            self._begin_joining()
        return wait_ms

    def _begin_joining(self) -> None:
        if self.phase is RebalancePhase.REVOKING:  # otherwise a callback has left the group
            self.phase = RebalancePhase.JOINING

    def _joined(
        self, join: RequestFuture[bytes], reconciliation: Reconciliation, now_ms: float
    ) -> Steps[None]:
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
        reconciliation.assign(assignment.partitions, now_ms)
        self._assignment = assignment
        self.phase = RebalancePhase.ASSIGNED
        yield from self._report_assigned(reconciliation)

    def _report_assigned(self, reconciliation: Reconciliation) -> Steps[float]:
        """Call assignor and listener; if these are interrupted the next step calls them again.

        Returns:
            Time until the next step.
        """
        if not self._member.is_stable():  # the member has left the group since
            self.phase = RebalancePhase.NONE
            return 0.0
        generation = self._member.generation
        try:
            self._leader.on_assignment(
                self._assignment, generation.protocol_name, generation.generation_id
            )
            yield from reconciliation.report_assigned()
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
