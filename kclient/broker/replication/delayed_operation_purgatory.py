"""Purgatory of delayed operations."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.replication.operation_timer import OperationTimer
from kclient.common.runtime import Condition

OperationT = TypeVar("OperationT", bound=DelayedOperation)


class DelayedOperationPurgatory(Generic[OperationT]):
    """Delayed operations by watch key, with a timer (Kafka: DelayedOperationPurgatory).

    The lock guards the watch lists; operations complete outside it.
    """

    def __init__(self, lock: Condition, timer: OperationTimer) -> None:
        self._lock = lock
        self._timer = timer
        self._watchers: dict[Hashable, dict[OperationT, None]] = {}

    def try_complete_else_watch(self, operation: OperationT, keys: Sequence[Hashable]) -> bool:
        """Complete the operation now, or watch it under every key.

        The condition may become true between the first try and the registration, when
        `check_and_complete` does not find the operation yet. Hence the second try.

        Returns:
            Whether the operation is complete.
        """
        if operation.try_complete():
            return True
        operation.release = partial(self._forget, operation, keys)
        with self._lock:
            for key in keys:
                self._watchers.setdefault(key, {})[operation] = None
        if operation.try_complete():
            return True
        if operation.is_completed:
            # Completed by another thread, possibly before `release` was set.
            self._forget(operation, keys)
            return True
        self._timer.add(operation)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try to complete every operation watched under `key`; return how many completed."""
        # Safe without the lock: an operation added concurrently tries again itself.
        if key not in self._watchers:
            return 0
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        return sum(operation.try_complete() for operation in operations)

    def complete_all(self, key: Hashable) -> int:
        """Force completion of every operation watched under `key`; return how many completed."""
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        return sum(operation.force_complete() for operation in operations)

    def watched(self) -> int:
        """Return the number of watched (operation, key) pairs."""
        with self._lock:
            return sum(len(operations) for operations in self._watchers.values())

    def _forget(self, operation: OperationT, keys: Sequence[Hashable]) -> None:
        with self._lock:
            for key in keys:
                operations = self._watchers.get(key)
                if operations is not None:
                    operations.pop(operation, None)
                    if not operations:
                        del self._watchers[key]
