"""Membership and commits of a consumer with ``group.id``."""

from typing import NamedTuple

from kclient.consumer.commits import AutoCommit, OffsetCommitter
from kclient.consumer.committed_offsets import CommittedOffsets
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.membership import Membership
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.subscription_state import SubscriptionState


class Group(NamedTuple):
    """Steps of the group: commits, membership, automatic commits, in this order.

    Attributes:
        membership: Membership by the group protocol.
        finder: Lookup of the group coordinator.
        commits: Explicit and asynchronous commits.
        auto_commit: Automatic commits.
        committed: Lookup of committed offsets.
        subscriptions: Subscription and assignment.
    """

    membership: Membership
    finder: CoordinatorFinder
    commits: OffsetCommitter
    auto_commit: AutoCommit
    committed: CommittedOffsets
    subscriptions: SubscriptionState

    def step(self, now_ms: float) -> float:
        """Run everything that is due in a poll; return the time until the next step.

        Raises:
            KafkaError: An error for the application.
        """
        self.commits.run_callbacks()
        wait_ms = self.commits.step(now_ms)
        if self.subscriptions.is_group_managed():
            wait_ms = min(wait_ms, self.membership.step(now_ms))
            if self.membership.holds_back():
                return wait_ms
        return min(wait_ms, self.auto_commit.step(now_ms))

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Report commits to a tracer, or to none any more."""
        self.commits.tracer = tracer

    def auto_commits(self) -> bool:
        """Return whether automatic commits are enabled."""
        return self.auto_commit.enabled

    def queue_last_commit(self) -> None:
        """Queue a last automatic commit, ahead of later requests."""
        if self.auto_commit.enabled:
            self.commits.commit_async(self.subscriptions.all_consumed(), None)

    def can_commit(self) -> bool:
        """Return whether a commit can succeed now."""
        return self.commits.can_commit()

    def commit_step(self, now_ms: float) -> float:
        """Find the coordinator and send queued commits; for waiting calls other than poll."""
        return min(self.commits.step(now_ms), self.finder.step(now_ms))
