"""Closing of a consumer within a timeout (Kafka: KafkaConsumer.close)."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Never

from kclient.common.errors import KafkaError
from kclient.common.foreign_names import refuse_keywords
from kclient.consumer.consumer_base import ConsumerBase
from kclient.consumer.consumer_commits import commit_and_wait
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.consumer.foreign_names import CLOSE

_DEFAULT_TIMEOUT_S = 30.0


class ConsumerClosing(ConsumerBase):
    """Closes a consumer."""

    _to_close: deque[Callable[[float], object]] | None = None

    def close(self, timeout: float | None = _DEFAULT_TIMEOUT_S, **_unknown: Never) -> None:
        """Commit if auto-commit is enabled, revoke the partitions, leave the group, and disconnect.

        A second call does nothing, and neither does a call in a forked child. Failures are logged;
        only the error of an application's callback is raised, at the end.

        Args:
            timeout: Longest time for all of it, seconds; None is ``default.api.timeout.ms``.

        Raises:
            ConcurrentAccessError: Another thread is in a call; use `wakeup` first.
        """
        refuse_keywords("Consumer.close", _unknown, CLOSE)
        deadline_ms = self._deadline_ms(timeout)
        if self._closed or self._parts.lock.is_foreign_process():
            return  # sockets and membership belong to the parent process
        with self._call() as parts:
            if self._to_close is None:
                self._to_close = deque(self._steps(parts))
            else:  # continue an interrupted close
                self._to_close.extend(self._last_steps(parts))
            error = self._take_steps(parts, self._to_close, deadline_ms)
            self._closed = True
        if error is not None:
            raise error

    # --- inside

    def _steps(self, parts: ConsumerParts) -> tuple[Callable[[float], object], ...]:
        """Return the steps of closing; each runs even if an earlier one failed."""
        return (
            lambda _: parts.network.forget_wakeup(),
            self._commit_last,
            self._leave,
            lambda _: self._end_sessions(),
            *self._last_steps(parts),
            lambda _: parts.interceptors.close(),
        )

    def _last_steps(self, parts: ConsumerParts) -> tuple[Callable[[float], object], ...]:
        """Return the last steps, which run again after an interrupt, since the reset reconnects."""
        return (
            self._stop_heartbeats,
            lambda _: parts.network.close(),
            lambda _: parts.metadata.close(),
        )

    def _take_steps(
        self, parts: ConsumerParts, steps: deque[Callable[[float], object]], deadline_ms: float
    ) -> BaseException | None:
        """Run all steps and return the first error; an interrupted step is not repeated."""
        first: BaseException | None = None
        while steps:
            step = steps[0]
            try:
                step(deadline_ms)
            except BaseException as error:  # noqa: BLE001 (raised after the last step)
                first = first or error
                if not isinstance(error, Exception) and not parts.network.was_only_waiting():
                    parts.reset_after_interrupt()
                    steps.extend(self._last_steps(parts))
            steps.popleft()
        return first

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
                parts.log.warning("Commit at close failed: %s", error)
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
            self._send_leave(parts, coordinator, deadline_ms)

    def _send_leave(
        self, parts: ConsumerParts, coordinator: ConsumerCoordinator, deadline_ms: float
    ) -> None:
        left = coordinator.leave("the consumer is being closed")
        with suppress(KafkaError):
            parts.loop.wait_for(lambda: left.done, lambda _: 1000.0, deadline_ms, "leaving")

    def _stop_heartbeats(self, deadline_ms: float) -> None:
        left_ms = deadline_ms - self._parts.runtime.clock.monotonic_ms()
        if self._parts.heartbeats is not None:
            self._parts.heartbeats.stop(max(left_ms, 0.0) / 1000.0)

    def _end_sessions(self) -> None:
        """Close the fetch sessions without waiting for the responses."""
        with suppress(KafkaError):
            if self._parts.fetcher.close():
                self._parts.loop.flush()
