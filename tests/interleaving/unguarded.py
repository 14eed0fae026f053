"""Clients without their simple locks, to show that missing locks are detected."""

from kclient.common.runtime import Lock
from kclient.testing.virtual.virtual_tasks import VirtualTasks


class _NoLock:
    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None: ...


def remove_locks() -> None:
    """Replace every lock, except those of conditions, by one that excludes no task."""

    def lock(self: VirtualTasks) -> Lock:
        return _NoLock()

    VirtualTasks.lock = lock  # type: ignore[method-assign]  # a fault on purpose
