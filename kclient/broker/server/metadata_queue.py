"""Thread of the metadata publications, apart from that of the quorum."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.raft.raft_types import CommittedBatch, LeaderAndEpoch
from kclient.broker.raft.snapshots import SnapshotReader
from kclient.common.runtime import Condition, Task, Tasks

_log = logging.getLogger(__name__)

_POLL_MS = 100.0
_IDLE_MS = 60_000.0


class MetadataQueue:
    """Listener of the metadata log that gives its calls to a `MetadataLoader` in another thread.

    To publish a large topic takes long, as its partitions are opened. The quorum must not wait for
    that. Without a thread, each call runs before it returns. The lock guards the queue and is not
    held while a call runs.
    """

    def __init__(self, loader: MetadataLoader, tasks: Tasks) -> None:
        self._loader = loader
        self._spawn = tasks.spawn
        self._changed: Condition = tasks.condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._has_thread = False
        self._task: Task | None = None
        self._is_running = True
        self._is_stepping = False
        self._on_failure: Callable[[BaseException], None] = _ignore

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Replay committed batches."""
        self._put(partial(self._loader.handle_commit, batches))

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        """Replace the image by that of a snapshot."""
        self._put(partial(self._loader.handle_load_snapshot, reader))

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Report a leader."""
        self._put(partial(self._loader.handle_leader_change, leader))

    def begin_shutdown(self) -> None:
        """Publish nothing any more."""
        self._put(self._loader.begin_shutdown)

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Start the thread.

        Args:
            on_failure: Receives the exception with which the thread has ended.
        """
        self._on_failure = on_failure
        self._has_thread = True
        self._task = self._spawn("kclient-metadata", self._run_once)

    def shutdown(self, timeout: float) -> None:
        """Stop the thread; the remaining calls are not run."""
        with self._changed:
            self._is_running = False
            self._changed.notify_all()
        if self._task is not None and not self._task.join(timeout):
            _log.warning("%s did not end within %s s", self._task.name, timeout)

    def _put(self, call: Callable[[], None]) -> None:
        with self._changed:
            self._calls.append(call)
            if self._has_thread:
                self._changed.notify_all()
                return
            if self._is_stepping:
                return
            self._is_stepping = True
        try:
            self._run_all()
        finally:
            self._is_stepping = False

    def _run_all(self) -> None:
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            return self._calls.popleft() if self._calls and self._is_running else None

    def _run_once(self) -> bool:
        try:
            self._run_all()
            is_waiting = self._loader.poll()
        except Exception as error:  # noqa: BLE001 (the node ends)
            self._on_failure(error)
            return False
        with self._changed:
            if self._is_running and not self._calls:
                self._changed.wait((_POLL_MS if is_waiting else _IDLE_MS) / 1000.0)
            return self._is_running


def _ignore(_error: BaseException) -> None:
    return
