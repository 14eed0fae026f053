"""Task that sends heartbeats between calls of the application (Kafka: HeartbeatThread)."""

from collections.abc import Callable

from kclient.common.errors import FatalError, KafkaError
from kclient.common.runtime import Clock, Task, Tasks
from kclient.common.waiting import Steps, TaskWait
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.membership import Membership

_FIRST_LOOK_MS = 5.0
_LONGEST_LOOK_MS = 200.0


class HeartbeatTask:
    """Runs one heartbeat step whenever the application thread does not hold the lock.

    It waits until its next heartbeat is due, then for the end of the call in progress, if there is
    one. It never waits for the network: while a heartbeat is in flight it polls after a short wait,
    which doubles each time.
    """

    def __init__(
        self,
        membership: Membership,
        network: ConsumerNetworkClient,
        lock: ConsumerLock,
        clock: Clock,
        longest_wait_ms: float,
        fail_next_poll: Callable[[KafkaError], None],
    ) -> None:
        self._membership = membership
        self._fail_next_poll = fail_next_poll
        self._network = network
        self._lock = lock
        self._clock = clock
        self._longest_wait_ms = longest_wait_ms
        self._look_ms = _FIRST_LOOK_MS
        self._task: Task | None = None

    def start(self, tasks: Tasks, name: str) -> None:
        """Start the task, unless it is running."""
        if self._task is None:
            self._task = tasks.run(name, self._steps(), self._clock)

    def stop(self, deadline_ms: float) -> Steps[None]:
        """Stop the task, and wait for its end."""
        self._lock.stop()
        if self._task is not None and not self._task.is_current():
            yield TaskWait(self._task, deadline_ms)

    def _steps(self) -> Steps[None]:
        """Send heartbeats between calls, until the lock is stopped."""
        wait_ms = _LONGEST_LOOK_MS
        while not self._lock.stopped:
            yield self._lock.until_stopped(self._clock.monotonic_ms() + wait_ms)
            if not (yield from self._acquire()):
                wait_ms = _LONGEST_LOOK_MS  # the next call has begun; there may be many
                continue
            try:
                wait_ms = self._drive()
            except Exception as error:  # noqa: BLE001 (the next poll raises it)
                self._fail_next_poll(_stopped_by(error))
                return
            finally:
                self._lock.release_in_background()

    def _acquire(self) -> Steps[bool]:
        """Acquire the lock at the end of the call in progress; return whether it was free."""
        if self._lock.acquire_in_background():
            return True
        if not self._lock.stopped:  # the application is in a call, which sends heartbeats itself
            until_ms = self._clock.monotonic_ms() + self._longest_wait_ms
            yield from self._lock.await_end_of_call(until_ms)
        return self._lock.acquire_in_background()

    def _drive(self) -> float:
        self._exchange()  # before the step, whose wait depends on the responses
        wait_ms = self._membership.background_step(self._clock.monotonic_ms())
        self._exchange()
        if self._membership.awaits_response():
            self._look_ms = min(self._look_ms * 2, _LONGEST_LOOK_MS)
            return min(wait_ms, self._look_ms) if wait_ms > 0 else self._look_ms
        self._look_ms = _FIRST_LOOK_MS
        return max(1.0, min(wait_ms, self._longest_wait_ms))

    def _exchange(self) -> None:
        try:
            self._network.poll_membership(self._clock.monotonic_ms())
        except KafkaError as error:
            self._fail_next_poll(error)


def _stopped_by(error: Exception) -> FatalError:
    failure = FatalError(
        f"the heartbeats stopped by {type(error).__name__}: {error}; close this consumer"
    )
    failure.__cause__ = error
    return failure
