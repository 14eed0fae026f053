"""Something that waits for a condition or for its deadline, and completes exactly once."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from kclient.common.runtime import Condition

_log = logging.getLogger(__name__)


class DelayedOperation(ABC):
    """An operation that may have to wait (Kafka: DelayedOperation).

    Any thread may try to complete it. The lock guards nothing but the claim: whoever claims the
    operation runs `on_complete`, outside the lock and exactly once.

    Attributes:
        deadline_ms: When it is forced to complete.
        release: What a purgatory does to forget the operation, called once it is claimed.
    """

    def __init__(self, lock: Condition, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.release: Callable[[], None] | None = None
        self._lock = lock
        self._completed = False

    @property
    def is_completed(self) -> bool:
        """Whether the operation was claimed."""
        return self._completed

    def force_complete(self) -> bool:
        """Complete unless that happened before; return whether this call did it."""
        with self._lock:
            if self._completed:
                return False
            self._completed = True
        if self.release is not None:
            self.release()
        try:
            self.on_complete()
        except Exception:  # noqa: BLE001 (whoever completes it has no part in its failure)
            _log.exception("%s: could not be completed", type(self).__name__)
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
        """Do what was waited for."""

    def on_expiration(self) -> None:
        """Do what is due only where the deadline, not the condition, ended the wait."""
        return
