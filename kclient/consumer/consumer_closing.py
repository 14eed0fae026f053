"""The end of a consumer: commit, leave, close, all within a bound (Kafka: KafkaConsumer.close)."""

import logging
from contextlib import ExitStack, suppress

from kclient.common.errors import KafkaError
from kclient.consumer.consumer_base import ConsumerBase
from kclient.consumer.consumer_commits import commit_and_wait
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator

_log = logging.getLogger(__name__)

_DEFAULT_TIMEOUT_S = 30.0


class ConsumerClosing(ConsumerBase):
    """Closes a consumer."""

    def close(self, timeout: float | None = _DEFAULT_TIMEOUT_S) -> None:
        """Commit where that is automatic, give the partitions up, leave the group, and disconnect.

        A second call does nothing, and neither does one in a forked child. What fails on the way is
        logged, since there is nothing to be done about it any more; only the error of an
        application's callback is raised, at the end.

        Args:
            timeout: Longest time for all of it, seconds; None takes ``default.api.timeout.ms``.

        Raises:
            ConcurrentAccessError: Another thread is inside a call; use `wakeup` first.
        """
        deadline_ms = self._deadline_ms(timeout)
        parts = self._parts
        if self._closed:
            return
        if parts.seat.is_foreign_process():
            return  # a child has nothing to close: the sockets and the membership are its parent's
        parts.seat.take()
        try:
            if self._in_hand:
                self._put_back()
            with ExitStack() as stack:
                # Last in, first run; each is run even if one before it failed.
                stack.callback(parts.interceptors.close)
                stack.callback(parts.metadata.close)
                stack.callback(parts.network.close)
                stack.callback(self._end_sessions)
                stack.callback(self._stop_heartbeats, deadline_ms)
                stack.callback(self._leave, deadline_ms)
                stack.callback(self._commit_last, deadline_ms)
                stack.callback(parts.network.forget_wakeup)
        finally:
            self._closed = True
            parts.seat.give_up()

    # --- inside

    def _commit_last(self, deadline_ms: float) -> None:
        parts, coordinator = self._parts, self._parts.coordinator
        if coordinator is None:
            return
        by_itself = coordinator.auto_commits and self._may_commit_last
        offsets = parts.subscriptions.all_consumed() if by_itself else {}
        if coordinator.may_commit() and offsets:
            try:
                commit_and_wait(parts, coordinator, offsets, deadline_ms)
            except KafkaError as error:
                _log.warning("commit at close failed: %s", error)
        with suppress(KafkaError):
            parts.loop.wait_for(
                lambda: not coordinator.has_pending_commits(),
                coordinator.commit_step,
                deadline_ms,
                "pending commits",
            )
        coordinator.run_commit_callbacks()

    def _leave(self, deadline_ms: float) -> None:
        parts, coordinator = self._parts, self._parts.coordinator
        if coordinator is None or not parts.subscriptions.is_group_managed():
            return
        try:
            coordinator.report_given_up()
        finally:
            self._tell_broker(parts, coordinator, deadline_ms)

    def _tell_broker(
        self, parts: ConsumerParts, coordinator: ConsumerCoordinator, deadline_ms: float
    ) -> None:
        told = coordinator.leave("the consumer is being closed")
        with suppress(KafkaError):
            parts.loop.wait_for(lambda: told.done, lambda _: 1000.0, deadline_ms, "leaving")

    def _stop_heartbeats(self, deadline_ms: float) -> None:
        left_ms = deadline_ms - self._parts.runtime.clock.monotonic_ms()
        if self._parts.heartbeats is not None:
            self._parts.heartbeats.stop(max(left_ms, 0.0) / 1000.0)

    def _end_sessions(self) -> None:
        """Tell the brokers; nobody waits for their answers."""
        with suppress(KafkaError):
            if self._parts.fetcher.close():
                self._parts.loop.flush()
