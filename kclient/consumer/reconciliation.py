"""Changes of the partitions that a group assigns to this member, and their callbacks.

Kafka: ConsumerCoordinator.onJoinPrepare and onJoinComplete, AbstractMembershipManager.reconcile.
"""

from collections.abc import Collection

from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from kclient.consumer.commits import AutoCommit
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState

_NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Reconciliation:
    """Changes the assigned partitions to those that the group protocol assigns.

    Only the difference changes: `begin_revoking` and `revoke` commit and remove partitions,
    `assign` and `report_assigned` add others. The group protocol decides what happens in between.

    A callback that Ctrl-C or a cancellation interrupts has not run: `revoke` and `report_assigned`
    call it again. After an error of a callback the partitions have changed nevertheless.

    Attributes:
        revoking: Partitions whose `on_revoked` or `on_lost` runs now.
    """

    def __init__(
        self,
        subscriptions: SubscriptionState,
        auto_commit: AutoCommit,
        lock: ConsumerLock,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._subscriptions = subscriptions
        self._auto_commit = auto_commit
        self._run_callback = lock.run_callback
        self._kept: Collection[TopicPartition] = ()
        self._commit: RequestFuture[None] | None = None
        self._commit_ends_ms = 0.0
        self._added: list[TopicPartition] = []
        self.revoking = _NO_PARTITIONS

    def begin_revoking(
        self, kept: Collection[TopicPartition], now_ms: float, *, can_commit: bool
    ) -> None:
        """Begin to revoke all partitions but some; `revoke` must follow.

        Args:
            kept: Partitions that stay assigned.
            now_ms: Current time.
            can_commit: Whether a commit can succeed; the positions are committed if commits are
                automatic.
        """
        self._kept = kept
        self._commit = None
        if can_commit and self._auto_commit.enabled and self._revoked():
            self._commit = self._auto_commit.commit_now()
            self._commit_ends_ms = self._auto_commit.last_commit_deadline_ms(now_ms)

    def revoke(self, now_ms: float, *, are_lost: bool) -> Steps[float]:
        """Revoke the partitions once their positions are committed.

        Args:
            now_ms: Current time.
            are_lost: Whether the partitions may belong to other members already.

        Returns:
            Time until the next call; 0 if the partitions are revoked.
        """
        commit = self._commit
        if commit is not None:
            if not commit.done and now_ms < self._commit_ends_ms:
                return self._commit_ends_ms - now_ms
            self._commit = None
            if not commit.done or commit.failed:
                self._log.warning(
                    "Commit before the rebalance failed: %s", commit.error or "no response"
                )
        yield from self._take_away(self._revoked(), are_lost=are_lost)
        return 0.0

    def revoke_all(self, *, are_lost: bool) -> Steps[None]:
        """Revoke all partitions of a member that leaves the group."""
        self._commit = None
        yield from self._take_away(sorted(self._subscriptions.assigned), are_lost=are_lost)

    def assign(self, partitions: Collection[TopicPartition], now_ms: float) -> None:
        """Add the partitions that are not assigned yet; `report_assigned` must follow."""
        assigned = self._subscriptions.assigned
        self._added = [each for each in partitions if each not in assigned]
        self._subscriptions.add_from_group(self._added)
        self._auto_commit.restart(now_ms)

    def report_assigned(self) -> Steps[None]:
        """Call `on_assigned` with the added partitions."""
        partitions = sorted(self._added)
        listener = self._subscriptions.listener
        self._log.info(
            "Adding newly assigned partitions: %s", ", ".join(map(str, partitions)) or "none"
        )
        yield from self._run_callback(lambda: listener.assigned(partitions))

    # --- inside

    def _revoked(self) -> list[TopicPartition]:
        return sorted(each for each in self._subscriptions.assigned if each not in self._kept)

    def _take_away(self, partitions: list[TopicPartition], *, are_lost: bool) -> Steps[None]:
        """Call the rebalance listener for partitions, and remove them.

        Partitions whose callback runs now are not reported again: that callback, or another task
        meanwhile, has unsubscribed.
        """
        reported = [each for each in partitions if each not in self.revoking]
        if not reported:
            return
        self._log.info(
            "%s previously assigned partitions: %s",
            "Lost" if are_lost else "Revoking",
            ", ".join(map(str, reported)),
        )
        listener = self._subscriptions.listener
        report = listener.lost if are_lost else listener.revoked
        self.revoking = self.revoking.union(reported)
        try:
            yield from self._run_callback(lambda: report(reported))
        except Exception:
            self._remove(reported)
            raise
        finally:
            self.revoking = self.revoking.difference(reported)
        # After an interruption of the callback they are kept: the next poll runs it again.
        self._remove(reported)

    def _remove(self, partitions: list[TopicPartition]) -> None:
        if self._subscriptions.is_group_managed():  # the callback may have unsubscribed
            self._subscriptions.revoke_from_group(partitions)
