"""Thread of the metadata publications, apart from that of the quorum."""

from collections.abc import Sequence
from functools import partial
from math import inf

from kclient.broker.controller.event_queue import EventQueue
from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.raft.raft_types import CommittedBatch, LeaderAndEpoch
from kclient.broker.raft.snapshots import SnapshotReader
from kclient.common.runtime import Tasks

_POLL_MS = 100.0


class MetadataQueue:
    """Listener of the metadata log whose calls are events for a `MetadataLoader`.

    To publish a large topic takes long, as its partitions are opened. The quorum must not wait for
    that.

    Attributes:
        events: Calls of the loader; with a thread as soon as that is started.
    """

    def __init__(self, loader: MetadataLoader, tasks: Tasks) -> None:
        self._loader = loader
        self.events = EventQueue(tasks, self._poll)

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Replay committed batches."""
        self.events.submit(partial(self._loader.handle_commit, batches))

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        """Replace the image by that of a snapshot."""
        self.events.submit(partial(self._loader.handle_load_snapshot, reader))

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Report a leader."""
        self.events.submit(partial(self._loader.handle_leader_change, leader))

    def begin_shutdown(self) -> None:
        """Publish nothing any more."""
        self.events.submit(self._loader.begin_shutdown)

    def _poll(self) -> float:
        return _POLL_MS if self._loader.poll() else inf
