"""Clients without their simple locks, to show that the lack of them is noticed."""

from kclient.common.runtime import Lock
from kclient.testing.virtual.virtual_tasks import VirtualTasks


class _NoLock:
    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None: ...


def take_locks_away() -> None:
    """Let everybody in at a time wherever a lock is made that nobody waits on."""

    def lock(self: VirtualTasks) -> Lock:
        return _NoLock()

    VirtualTasks.lock = lock  # type: ignore[method-assign]  # a fault on purpose
