"""Operation that completes exactly once: on a condition or at its deadline."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from kclient.common.runtime import Condition

_log = logging.getLogger(__name__)


class DelayedOperation(ABC):
    """Operation that may have to wait (Kafka: DelayedOperation).

    Any thread may try to complete it. The lock guards only the completed flag: the thread that sets
    it runs `on_complete`, outside the lock and exactly once.

    Attributes:
        deadline_ms: Time at which it is forced to complete.
        release: Removes the operation from its purgatory; called on completion.
    """

    def __init__(self, lock: Condition, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.release: Callable[[], None] | None = None
        self._lock = lock
        self._completed = False

    @property
    def is_completed(self) -> bool:
        """Whether a thread has completed or is completing the operation."""
        return self._completed

    def force_complete(self) -> bool:
        """Complete the operation unless it is completed; return whether this call did."""
        with self._lock:
            if self._completed:
                return False
            self._completed = True
        if self.release is not None:
            self.release()
        try:
            self.on_complete()
        except Exception:  # noqa: BLE001 (must not affect the thread that completes it)
            _log.exception("%s: completion failed", type(self).__name__)
        return True

    def expire(self) -> None:
        """Complete because the deadline has passed."""
        if self.force_complete():
            self.on_expiration()

    @abstractmethod
    def try_complete(self) -> bool:
        """Call `force_complete` if the condition holds; return whether that completed it."""

    @abstractmethod
    def on_complete(self) -> None:
        """Finish the operation."""

    def on_expiration(self) -> None:
        """Finish the operation if its deadline, not its condition, completed it."""
        return
