"""Fetches partitions from one leader into the local logs (Kafka: ReplicaFetcherThread).

The server runs one thread for each fetcher, which calls `step` and then polls the connection of its
`LeaderEndpoint`. The callbacks of the endpoint are called in that thread. `add` and `remove` are
called by the thread that publishes metadata.

The position of a partition is the end of its log and the epoch of its last record. The leader
finds out whether its log has that position, and otherwise returns where to truncate.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.replication.fetcher_session import FetcherSession, PartitionKey
from kclient.broker.replication.hosted_partitions import FollowedPartition
from kclient.broker.replication.partition import Partition
from kclient.common.broker_errors import (
    NONE,
    CorruptRecordError,
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
    code_of,
)
from kclient.common.errors import InvalidOffsetError, KafkaError
from kclient.common.files import FileSlice, WireBytes, WirePart
from kclient.common.runtime import Condition
from kclient.common.types import TopicPartition
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_log = logging.getLogger(__name__)

_LATEST = -1
_EARLIEST = -2
_FENCED = code_of(FencedLeaderEpochError)
_FIRST_BACKOFF_MS = 20.0
_MAX_DOUBLINGS = 20
_BRIEF_ERRORS = frozenset(
    code_of(each())
    for each in (
        UnknownTopicOrPartitionError,
        NotLeaderOrFollowerError,
        UnknownLeaderEpochError,
        UnknownTopicIdError,
        InconsistentTopicIdError,
    )
)
"""Errors until the leader has applied the metadata that this broker has."""
_OUT_OF_RANGE = code_of(OffsetOutOfRangeError)
_REPLICA_STATE = 15
IDLE_MS = 60_000.0

ResponseT = TypeVar("ResponseT", bound=Response)
OnResponse = Callable[[Response | KafkaError], None]

_FETCH_VERSIONS = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
_LIST_OFFSETS_VERSIONS = ((29, 11), (25, 10), (21, 9), (9, 8))


def fetch_version(metadata_version: int) -> int:
    """Return the version of Fetch between brokers at a level of metadata.version."""
    return next((each for level, each in _FETCH_VERSIONS if metadata_version >= level), 13)


def list_offsets_version(metadata_version: int) -> int:
    """Return the version of ListOffsets between brokers at a level of metadata.version."""
    return next((each for level, each in _LIST_OFFSETS_VERSIONS if metadata_version >= level), 7)


class LeaderEndpoint(Protocol):
    """Connection to the broker that a fetcher fetches from."""

    def send(self, request: Request, version: int, on_response: OnResponse) -> None:
        """Send a request in a version; `on_response` receives the response or the failure."""
        ...

    def wakeup(self) -> None:
        """Make the thread of the fetcher call `step` soon."""
        ...


class LogTruncation(Protocol):
    """Truncation of logs with their checkpoints: the `LogManager`."""

    def truncate_to(self, partition: TopicPartition, offset: int) -> None:
        """Truncate a log."""
        ...

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty a log."""
        ...


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """Settings of a fetcher; times in milliseconds, Kafka's defaults.

    Attributes:
        broker_id: Id of this broker.
        broker_epoch: Returns its epoch.
        metadata_version: Returns the finalized level of metadata.version.
        max_wait_ms: ``replica.fetch.wait.max.ms``.
        min_bytes: ``replica.fetch.min.bytes``.
        max_bytes: ``replica.fetch.response.max.bytes``.
        partition_max_bytes: ``replica.fetch.max.bytes``.
        backoff_ms: ``replica.fetch.backoff.ms``; the first pauses are shorter after an error that
            the leader returns until it has the metadata of this broker.
    """

    broker_id: int
    broker_epoch: Callable[[], int]
    metadata_version: Callable[[], int]
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    backoff_ms: float = 1_000.0


@dataclass(slots=True)
class FetchState:
    """Fetch of one partition (Kafka: PartitionFetchState).

    Attributes:
        partition: The partition.
        leader_epoch: Leader epoch in which it is fetched.
        not_before_ms: Time before which it is not fetched, after an error.
        brief_errors: Number of such errors in succession; see `FetcherSettings.backoff_ms`.
        looks_up_offsets: Whether its position is out of range, and the leader's offsets are asked.
    """

    partition: Partition
    leader_epoch: int
    not_before_ms: float = 0.0
    brief_errors: int = 0
    looks_up_offsets: bool = False

    @property
    def key(self) -> PartitionKey:
        """Topic id and partition."""
        topic_partition = self.partition.topic_partition
        return self.partition.topic_id, topic_partition.partition


class ReplicaFetcher:
    """Fetcher of the partitions that one broker leads: a step function with one request in flight.

    The lock guards the partitions. It is held while a partition's batches are appended, so that
    nothing is appended after `remove`.
    """

    def __init__(
        self,
        settings: FetcherSettings,
        leader: LeaderEndpoint,
        logs: LogTruncation,
        lock: Condition,
        now_ms: Callable[[], float],
        changed: Callable[[TopicPartition], None],
    ) -> None:
        """Create a fetcher without partitions.

        Args:
            settings: Settings.
            leader: Connection to the leader.
            logs: Truncates logs.
            lock: The lock.
            now_ms: Returns the monotonic time.
            changed: Called with a partition that has got records, or another high watermark.
        """
        self._settings = settings
        self._leader = leader
        self._logs = logs
        self._lock = lock
        self._now_ms = now_ms
        self._changed = changed
        self._states: dict[PartitionKey, FetchState] = {}
        self._session = FetcherSession()
        self._is_waiting = False

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        """Fetch partitions in their present leader epochs."""
        with self._lock:
            for partition, _, leader_epoch in partitions:
                state = FetchState(partition, leader_epoch)
                self._states[state.key] = state
                self._guard(state, self._start)
        self._leader.wakeup()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching partitions."""
        removed = set(partitions)
        with self._lock:
            for key, state in list(self._states.items()):
                if state.partition.topic_partition in removed:
                    del self._states[key]

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions."""
        with self._lock:
            return [state.partition.topic_partition for state in self._states.values()]

    def step(self, now_ms: float) -> float:
        """Send a request if none is in flight; return the milliseconds until the next call."""
        with self._lock:
            if self._is_waiting:
                return IDLE_MS
            wanted: dict[PartitionKey, FetchPartition] = {}
            lookups = []
            wait_ms = IDLE_MS
            for key, state in self._states.items():
                if state.not_before_ms > now_ms:
                    wait_ms = min(wait_ms, state.not_before_ms - now_ms)
                elif state.looks_up_offsets:
                    lookups.append(state)
                else:
                    wanted[key] = self._position(state)
            if not wanted and not lookups:
                return wait_ms
            self._is_waiting = True
        if lookups:
            self._look_up(lookups[0], _LATEST)
        else:
            self._fetch(wanted)
        return 0.0

    def _fetch(self, wanted: dict[PartitionKey, FetchPartition]) -> None:
        settings = self._settings
        version = fetch_version(settings.metadata_version())
        request = FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
        )
        if version >= _REPLICA_STATE:
            request.replica_state = ReplicaState(
                replica_id=settings.broker_id, replica_epoch=settings.broker_epoch()
            )
        else:
            request.replica_id = settings.broker_id
        self._session.fill(request, wanted)
        self._leader.send(request, version, partial(self._on_fetched, wanted))

    def _position(self, state: FetchState) -> FetchPartition:
        log = state.partition.log
        epoch = log.latest_epoch
        return FetchPartition(
            partition=state.key[1],
            current_leader_epoch=state.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=-1 if epoch is None else epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._settings.partition_max_bytes,
        )

    def _start(self, state: FetchState) -> None:
        """Truncate a log without leader epochs to its high watermark: it cannot be compared."""
        log = state.partition.log
        if log.latest_epoch is None and log.log_end_offset > log.high_watermark:
            self._truncate(state, log.high_watermark)

    def _on_fetched(
        self, wanted: dict[PartitionKey, FetchPartition], response: Response | KafkaError
    ) -> None:
        found = None
        if isinstance(response, FetchResponse):
            # Without the session the next request is a full one, which needs no pause.
            found = self._session.take(response)
        else:
            self._session.reset()
            self._delay(wanted)
        if found is None:
            _log.info("a fetch from the leader failed: %s", response)
        for key, data in (found or {}).items():
            request = wanted.get(key)
            with self._lock:
                state = self._states.get(key)
                if (
                    state is None
                    or request is None
                    or state.leader_epoch != request.current_leader_epoch
                ):
                    continue  # removed, or followed in another epoch
                self._guard(state, partial(self._process, request, data))
            self._changed(state.partition.topic_partition)
        self._is_waiting = False

    def _process(self, request: FetchPartition, data: PartitionData, state: FetchState) -> None:
        """Truncate, or append and take over the leader's offsets; never both."""
        code = data.error_code
        if code == _OUT_OF_RANGE:
            state.looks_up_offsets = True
        elif code == _FENCED:
            # The metadata of a later epoch is on its way, which adds the partition again.
            del self._states[state.key]
        elif code in _BRIEF_ERRORS:
            pause_ms = min(_FIRST_BACKOFF_MS * 2**state.brief_errors, self._settings.backoff_ms)
            state.brief_errors = min(state.brief_errors + 1, _MAX_DOUBLINGS)
            self._back_off(state, f"error {code}", pause_ms)
        elif code != NONE:
            self._back_off(state, f"error {code}")
        elif data.diverging_epoch.end_offset >= 0:
            epoch, end_offset = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
            self._truncate(state, truncation_offset(state.partition.log, epoch, end_offset))
        else:
            partition, epoch = state.partition, state.leader_epoch
            records = contiguous(data.records)
            if len(records):
                partition.append_records_to_follower(records, epoch, request.fetch_offset)
            partition.update_bounds_of_follower(data.high_watermark, data.log_start_offset, epoch)
            state.brief_errors = 0

    def _guard(self, state: FetchState, action: Callable[[FetchState], None]) -> None:
        """Run an action on a partition; an error affects only this partition."""
        try:
            action(state)
        except (KafkaStorageError, NotLeaderOrFollowerError) as error:
            # Offline, deleted or led in another epoch: the metadata adds it again.
            _log.warning("%s: not fetched any more: %s", state.partition.topic_partition, error)
            self._states.pop(state.key, None)
        except (
            CorruptRecordError,
            UnsupportedForMessageFormatError,
            InvalidOffsetError,
            OffsetOutOfRangeError,
        ) as error:
            self._back_off(state, str(error))

    def _back_off(self, state: FetchState, reason: str, pause_ms: float | None = None) -> None:
        _log.info("%s: fetched again later: %s", state.partition.topic_partition, reason)
        pause_ms = self._settings.backoff_ms if pause_ms is None else pause_ms
        state.not_before_ms = self._now_ms() + pause_ms

    def _delay(self, keys: Iterable[PartitionKey]) -> None:
        not_before_ms = self._now_ms() + self._settings.backoff_ms
        with self._lock:
            for key in keys:
                state = self._states.get(key)
                if state is not None:
                    state.not_before_ms = not_before_ms

    def _truncate(self, state: FetchState, offset: int) -> None:
        partition = state.partition
        if offset < partition.log.high_watermark:
            _log.warning(
                "%s: truncating to %d, below the high watermark %d",
                partition.topic_partition,
                offset,
                partition.log.high_watermark,
            )
        partition.truncate_follower(
            lambda log: self._logs.truncate_to(log.partition, offset), state.leader_epoch
        )

    def _look_up(self, state: FetchState, timestamp: int) -> None:
        """Ask the leader for its log end or its log start offset."""
        topic_partition = state.partition.topic_partition
        asked = ListOffsetsPartition(
            partition_index=topic_partition.partition,
            current_leader_epoch=state.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._settings.broker_id,
            topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[asked])],
        )
        version = list_offsets_version(self._settings.metadata_version())
        self._leader.send(request, version, partial(self._on_offset, state, timestamp))

    def _on_offset(
        self, state: FetchState, timestamp: int, response: Response | KafkaError
    ) -> None:
        found = None
        if isinstance(response, ListOffsetsResponse):
            parts = [part for topic in response.topics for part in topic.partitions]
            if len(parts) == 1 and parts[0].error_code == NONE and parts[0].offset >= 0:
                found = parts[0].offset
        asks_start = False
        with self._lock:
            if self._states.get(state.key) is state:
                if found is None:
                    self._back_off(state, f"no offset of the leader: {response}")
                else:
                    log = state.partition.log
                    asks_start = timestamp == _LATEST and found >= log.log_end_offset
                    if not asks_start:
                        self._guard(state, partial(self._return_to_range, timestamp, found))
        if asks_start:
            self._look_up(state, _EARLIEST)
            return
        self._changed(state.partition.topic_partition)
        self._is_waiting = False

    def _return_to_range(self, timestamp: int, offset: int, state: FetchState) -> None:
        """Truncate to the leader's end, or start at its start if this log ends before it."""
        partition = state.partition
        if timestamp == _LATEST:
            self._truncate(state, offset)
        elif offset > partition.log.log_end_offset:
            partition.truncate_follower(
                lambda log: self._logs.truncate_fully_and_start_at(log.partition, offset),
                state.leader_epoch,
            )
        state.looks_up_offsets = False


def truncation_offset(log: UnifiedLog, epoch: int, end_offset: int) -> int:
    """Return the offset to truncate a follower's log to (KIP-279).

    If this log has no such epoch, it is truncated to the end of the greatest one before, and the
    next fetch asks with that.

    Args:
        log: The log.
        epoch: Greatest epoch of the leader that is at most the follower's last one.
        end_offset: The leader's end offset of it.
    """
    log_end = log.log_end_offset
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_end < 0:
        return min(end_offset, log_end)
    if own_epoch != epoch:
        return min(own_end, log_end)
    return min(own_end, end_offset, log_end)


def contiguous(records: WirePart | None) -> WireBytes:
    """Return fetched records as bytes."""
    if isinstance(records, FileSlice):
        return records.read()
    return records if records is not None else b""
