"""Markers of ended transactions, and their way to the leaders of the partitions."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.common.broker_errors import (
    NONE,
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Tasks
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_log = logging.getLogger(__name__)

_RETRY_MS = 100.0
"""Time after which a marker is sent again, or its leader is looked up again."""

_WRITTEN = (
    NONE,
    # Partitions with an old format of records have no markers.
    code_of(UnsupportedForMessageFormatError),
    code_of(UnsupportedVersionError),
)
_FENCED = (code_of(InvalidProducerEpochError), code_of(TransactionCoordinatorFencedError))
"""Errors after which another coordinator, or another producer, owns the transaction."""


class MarkerTask(NamedTuple):
    """Prepared transaction whose markers are to be written.

    Attributes:
        prepared: The transaction.
        partition: Partition of ``__transaction_state`` that it belongs to.
        coordinator_epoch: Leader epoch of that partition.
        owner: The coordinator of the partition, which may give the markers up.
    """

    prepared: TransactionMetadata
    partition: int
    coordinator_epoch: int
    owner: object


OnMarkers = Callable[[WriteTxnMarkersResponse | KafkaError], None]
"""Receives the response of a leader, or why there is none."""


MarkerSender = Callable[[int, WriteTxnMarkersRequest, OnMarkers], None]
"""Sends a request to a broker, which may be this one."""


@dataclass(slots=True, eq=False)
class _Writing:
    """Transaction with the partitions that have no marker yet."""

    task: MarkerTask
    remaining: set[TopicPartition]
    is_cancelled: bool = False


_Marker = tuple[_Writing, TopicPartition]


@dataclass(slots=True)
class _Leader:
    """Markers for one leader: those that wait, and whether a request is in flight."""

    waiting: deque[_Marker] = field(default_factory=deque)
    is_in_flight: bool = False


class TransactionMarkers:
    """Writer of markers (Kafka: TransactionMarkerChannelManager).

    A leader has one request in flight; markers that come meanwhile are sent together in the next.
    A marker that fails is sent again, to the leader of that time, until it is written, its topic is
    deleted, or another coordinator owns the transaction. The lock guards the queues; requests are
    sent, and completions reported, without it.

    Args:
        clock: Monotonic clock.
        tasks: Locks.
        image: Returns the metadata of the cluster.

    Attributes:
        send: Sends requests to leaders.
        on_written: Receives a transaction whose markers are all written.
        wakeup: Called when `step` has work before the time that it returned last.
    """

    def __init__(self, clock: Clock, tasks: Tasks, image: Callable[[], MetadataImage]) -> None:
        self._clock = clock
        self._image = image
        self._lock = tasks.lock()
        self._writings: dict[str, _Writing] = {}
        self._leaders: dict[int, _Leader] = {}
        self._retries: deque[tuple[float, _Marker]] = deque()
        self.send: MarkerSender = _not_connected
        self.on_written: Callable[[MarkerTask], None] = _ignore
        self.wakeup: Callable[[], None] = _nothing

    def add(self, task: MarkerTask) -> None:
        """Write the markers of a transaction; those of an earlier call for its id are given up."""
        writing = _Writing(task, set(task.prepared.partitions))
        transactional_id = task.prepared.transactional_id
        with self._lock:
            former = self._writings.get(transactional_id)
            if former is not None:
                former.is_cancelled = True
            self._writings[transactional_id] = writing
        if writing.remaining:
            self._route([(writing, partition) for partition in sorted(writing.remaining)])
        else:
            self._finish([writing])

    def cancel(self, owner: object) -> None:
        """Give up the markers of a coordinator that has been unloaded."""
        with self._lock:
            for transactional_id, writing in list(self._writings.items()):
                if writing.task.owner is owner:
                    writing.is_cancelled = True
                    del self._writings[transactional_id]

    def step(self, now_ms: float) -> float | None:
        """Send markers again that are due; return the time of the next, or None."""
        due: list[_Marker] = []
        with self._lock:
            while self._retries and self._retries[0][0] <= now_ms:
                due.append(self._retries.popleft()[1])
        if due:
            self._route(due)
        with self._lock:
            return self._retries[0][0] if self._retries else None

    def _route(self, markers: Iterable[_Marker]) -> None:
        """Queue markers at their leaders; those of deleted topics are not needed any more."""
        image = self._image()
        later: list[_Marker] = []
        dropped: list[_Marker] = []
        leaders: set[int] = set()
        with self._lock:
            for marker in markers:
                topic = image.topics.get(marker[1].topic)
                if topic is None or marker[1].partition >= len(topic.partitions):
                    dropped.append(marker)
                    continue
                leader = topic.partitions[marker[1].partition].leader
                broker = image.brokers.get(leader)
                if broker is None or broker.fenced:
                    later.append(marker)
                    continue
                self._leaders.setdefault(leader, _Leader()).waiting.append(marker)
                leaders.add(leader)
        self._retry(later)
        self._mark_written(dropped)
        for leader in sorted(leaders):
            self._send_waiting(leader)

    def _send_waiting(self, leader: int) -> None:
        with self._lock:
            queue = self._leaders[leader]
            if queue.is_in_flight:
                return
            markers = [each for each in queue.waiting if not each[0].is_cancelled]
            queue.waiting.clear()
            queue.is_in_flight = bool(markers)
        if markers:
            self.send(leader, _request(markers), partial(self._on_response, leader, markers))

    def _on_response(
        self,
        leader: int,
        markers: Sequence[_Marker],
        response: WriteTxnMarkersResponse | KafkaError,
    ) -> None:
        with self._lock:
            self._leaders[leader].is_in_flight = False
        if isinstance(response, KafkaError):
            _log.debug("markers to broker %d failed: %s", leader, response)
            self._retry(markers)
        else:
            self._take_results(markers, _codes(response))
        self._send_waiting(leader)

    def _take_results(
        self, markers: Sequence[_Marker], codes: dict[tuple[int, TopicPartition], int]
    ) -> None:
        written: list[_Marker] = []
        failed: list[_Marker] = []
        for writing, partition in markers:
            prepared = writing.task.prepared
            code = codes.get((prepared.producer_id, partition), -1)
            if code in _WRITTEN:
                written.append((writing, partition))
            elif code in _FENCED:
                _log.info(
                    "transactional id %r: %s refuses its marker with error %d; another "
                    "coordinator or producer owns it",
                    prepared.transactional_id,
                    partition,
                    code,
                )
                self._give_up(writing)
            else:
                failed.append((writing, partition))
        self._retry(failed)
        self._mark_written(written)

    def _retry(self, markers: Sequence[_Marker]) -> None:
        due_ms = self._clock.monotonic_ms() + _RETRY_MS
        with self._lock:
            self._retries.extend((due_ms, each) for each in markers if not each[0].is_cancelled)
        if markers:
            self.wakeup()

    def _give_up(self, writing: _Writing) -> None:
        with self._lock:
            writing.is_cancelled = True
            self._forget(writing)

    def _forget(self, writing: _Writing) -> None:
        transactional_id = writing.task.prepared.transactional_id
        if self._writings.get(transactional_id) is writing:
            del self._writings[transactional_id]

    def _mark_written(self, markers: Sequence[_Marker]) -> None:
        finished: list[_Writing] = []
        with self._lock:
            for writing, partition in markers:
                writing.remaining.discard(partition)
                if not writing.remaining and writing not in finished:
                    finished.append(writing)
        self._finish(finished)

    def _finish(self, writings: Sequence[_Writing]) -> None:
        """Report transactions whose markers are all written."""
        with self._lock:
            finished = [each for each in writings if not each.is_cancelled]
            for writing in finished:
                self._forget(writing)
        for writing in finished:
            self.on_written(writing.task)


def _request(markers: Sequence[_Marker]) -> WriteTxnMarkersRequest:
    partitions: dict[int, list[TopicPartition]] = {}
    tasks: dict[int, MarkerTask] = {}
    for writing, partition in markers:
        producer_id = writing.task.prepared.producer_id
        tasks[producer_id] = writing.task
        partitions.setdefault(producer_id, []).append(partition)
    return WriteTxnMarkersRequest(
        markers=[_marker(task, partitions[producer_id]) for producer_id, task in tasks.items()]
    )


def _marker(task: MarkerTask, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for topic, number in partitions:
        found = topics.setdefault(topic, WritableTxnMarkerTopic(name=topic))
        found.partition_indexes.append(number)
    prepared = task.prepared
    return WritableTxnMarker(
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        transaction_result=prepared.state is TransactionState.PREPARE_COMMIT,
        topics=list(topics.values()),
        coordinator_epoch=task.coordinator_epoch,
        transaction_version=prepared.client_version,
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], int]:
    return {
        (marker.producer_id, TopicPartition(topic.name, each.partition_index)): each.error_code
        for marker in response.markers
        for topic in marker.topics
        for each in topic.partitions
    }


def _not_connected(leader: int, _request: WriteTxnMarkersRequest, _on_response: OnMarkers) -> None:
    raise AssertionError(f"no connection to broker {leader}")


def _ignore(_task: MarkerTask) -> None:
    return None


def _nothing() -> None:
    return None
