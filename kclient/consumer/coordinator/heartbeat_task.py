"""The loop that keeps a membership alive while the application works (Kafka: HeartbeatThread)."""

from kclient.common.errors import FatalError, KafkaError
from kclient.common.runtime import Clock, Task, Tasks
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.consumer.drive_lock import DriveLock

_FIRST_LOOK_MS = 5.0
_LONGEST_LOOK_MS = 200.0


class HeartbeatTask:
    """Takes the seat when nobody drives, moves the membership on by one step, leaves again.

    It never waits for the network: an answer that is on its way is looked for after a short wait,
    which doubles while none comes.
    """

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        network: ConsumerNetworkClient,
        seat: DriveLock,
        clock: Clock,
        longest_wait_ms: float,
    ) -> None:
        self._coordinator = coordinator
        self._network = network
        self._seat = seat
        self._clock = clock
        self._longest_wait_ms = longest_wait_ms
        self._wait_ms = _LONGEST_LOOK_MS
        self._look_ms = _FIRST_LOOK_MS
        self._task: Task | None = None

    def start(self, tasks: Tasks, name: str) -> None:
        """Start the loop, unless it runs already."""
        if self._task is None:
            self._task = tasks.spawn(name, self.step)

    def step(self) -> bool:
        """Wait, then drive once if the seat is free; return whether to be called again."""
        if self._seat.stopped:
            return False
        if not self._seat.take_in_background(self._wait_ms):
            # The application drives, and keeps the membership alive itself.
            self._wait_ms = _LONGEST_LOOK_MS
            return not self._seat.stopped
        try:
            self._wait_ms = self._drive()
        except Exception as error:  # noqa: BLE001 (the application hears of it in its next poll)
            self._coordinator.fail_in_background(_stopped_by(error))
            return False
        finally:
            self._seat.give_up_in_background()
        return True

    def stop(self, timeout: float) -> bool:
        """End the loop; return whether it has ended within `timeout` seconds."""
        self._seat.stop()
        return self._task is None or self._task.is_current() or self._task.join(timeout)

    def _drive(self) -> float:
        wait_ms = self._coordinator.background_step(self._clock.monotonic_ms())
        try:
            self._network.poll(0.0, membership_only=True)
        except KafkaError as error:
            self._coordinator.fail_in_background(error)
        if self._coordinator.awaits_heartbeat_answer():
            self._look_ms = min(self._look_ms * 2, _LONGEST_LOOK_MS)
            return min(wait_ms, self._look_ms) if wait_ms > 0 else self._look_ms
        self._look_ms = _FIRST_LOOK_MS
        return max(1.0, min(wait_ms, self._longest_wait_ms))


def _stopped_by(error: Exception) -> FatalError:
    failure = FatalError(
        f"the heartbeats stopped by {type(error).__name__}: {error}; close this consumer"
    )
    failure.__cause__ = error
    return failure
