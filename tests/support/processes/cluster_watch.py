"""A consumer group and the leaders of a cluster whose nodes are killed."""

import time
from collections.abc import Mapping, Sequence

from kclient import Consumer
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.background_thread import BackgroundThread
from tests.support.clients.wire import Wire
from tests.support.processes.cluster_processes import ClusterProcesses

Place = tuple[str, int]

_VERSION = 12
_INTERVAL_S = 0.02


class GroupReader(BackgroundThread):
    """Reads topics as the only member of a group, and commits after each poll.

    It fails if a record is left out, or if the group continues before an offset that it has
    committed.

    Attributes:
        count: Number of records read, without repetitions.
    """

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        super().__init__("group reader", "poll() or commit()", timeout=90)
        self._bootstrap = bootstrap
        self._topics = topics
        self._next: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self.count = 0

    def run(self) -> None:
        with Consumer(
            bootstrap_servers=self._bootstrap,
            group_id="readers",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            reconnect_backoff_max_ms=200,
        ) as consumer:
            consumer.subscribe(list(self._topics))
            while not self.stopping.is_set():
                for record in consumer.poll(0.2):
                    self._read((record.topic, record.partition), record.offset)
                self._commit(consumer)

    def await_ends(self, ends: Mapping[Place, int], timeout: float) -> None:
        """Wait until the group has read all records before these offsets."""

        def is_reached() -> bool:
            self.check()
            return all(self._next.get(place, 0) >= end for place, end in ends.items())

        wait_until(is_reached, f"the group has read up to {ends}", timeout)

    def _read(self, place: Place, offset: int) -> None:
        following = self._next.get(place, 0)
        assert offset <= following, f"{place}: got offset {offset} after {following - 1}"
        committed = self._committed.get(place, 0)
        assert offset >= committed, f"{place}: got offset {offset}, but {committed} is committed"
        self._next[place] = max(following, offset + 1)
        self.count += offset == following

    def _commit(self, consumer: Consumer) -> None:
        read = dict(self._next)
        try:
            consumer.commit()
        except KafkaError:
            return  # the group is rebalanced, or has no coordinator; its outcome is unknown
        self._committed = read


class LeaderWatch(BackgroundThread):
    """Measures for how long a partition has no leader among the running nodes.

    Attributes:
        longest_s: The longest time so far.
    """

    def __init__(self, cluster: ClusterProcesses, topics: Sequence[str]) -> None:
        super().__init__("leader watch", "a Metadata request", timeout=30)
        self._cluster = cluster
        self._request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        self._lost_at: dict[Place, float] = {}
        self.longest_s = 0.0

    def run(self) -> None:
        while not self.stopping.wait(_INTERVAL_S):
            leaders = self._leaders()
            now = time.monotonic()
            running = self._cluster.running
            for place, leader in leaders.items():
                if leader not in running:
                    self._lost_at.setdefault(place, now)
                elif place in self._lost_at:
                    self.longest_s = max(self.longest_s, now - self._lost_at.pop(place))

    def _leaders(self) -> dict[Place, int]:
        """Return the leaders with the newest epochs that running nodes know."""
        newest: dict[Place, tuple[int, int]] = {}
        for node in self._cluster.running:
            try:
                with Wire(self._cluster.addresses[node]) as wire:
                    response = wire.ask(self._request, _VERSION, MetadataResponse)
            except (OSError, EOFError):
                continue  # it was killed
            for topic in response.topics:
                for each in topic.partitions:
                    place = (topic.name or "", each.partition_index)
                    found = (each.leader_epoch, each.leader_id)
                    newest[place] = max(newest.get(place, found), found)
        return {place: leader for place, (_, leader) in newest.items()}
