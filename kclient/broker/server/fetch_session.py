"""Incremental fetch sessions (KIP-227; Kafka: FetchSession, FetchSessionCache, FetchContext).

The broker keeps the partitions of a session with what it sent last. A request of the session names
only the partitions that changed on the client, and its response contains only those with records,
an error or other offsets. Without a free slot the response has session id 0: the fetch is full.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kclient.broker.replication.fetch_params import FetchPartition, FetchResult
from kclient.common.broker_errors import (
    NONE,
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Condition
from kclient.common.uuids import RandomSource
from kclient.protocol.messages.fetch import FetchRequest

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
_TOPIC_IDS = 13

MIN_EVICTION_MS = 120_000.0
"""Age from which a session may be evicted (``min.incremental.fetch.session.eviction.ms``)."""

MAX_CACHED_PARTITIONS = 250_000
"""Partitions of all sessions together, about 500 bytes each: clients determine their number."""

PartitionKey = tuple[str | bytes, int]
"""Topic name or topic id, and partition."""


class CachedPartition:
    """Partition of a fetch, with what was sent last (Kafka: FetchSession.CachedPartition).

    Attributes:
        name: Topic name; empty while the topic id is unknown.
        topic_id: Topic id, 16 bytes; zero in requests with names.
        index: Number of the partition.
        wanted: Offset and limits of the client.
    """

    __slots__ = ("_high_watermark", "_log_start_offset", "index", "name", "topic_id", "wanted")

    def __init__(self, name: str, topic_id: bytes, index: int, wanted: FetchPartition) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index = index
        self.wanted = wanted
        self._high_watermark = self._log_start_offset = -1

    def update(self, result: FetchResult) -> bool:
        """Record the result of a fetch; return whether the response must contain it.

        After an error the partition is sent again when the error has ended.
        """
        failed = result.error is not None or result.diverging_epoch is not None
        changed = (
            failed
            or len(result.records) > 0
            or result.high_watermark != self._high_watermark
            or result.log_start_offset != self._log_start_offset
        )
        if changed:
            self._high_watermark = -1 if failed else result.high_watermark
            self._log_start_offset = result.log_start_offset
        return changed


class FetchSession:
    """Partitions of one client on one broker. Guarded by the lock of the cache.

    Attributes:
        id: Session id, not 0.
        epoch: Epoch that the next request must have.
        is_privileged: Whether the client is a follower, whose session consumers do not evict.
        uses_topic_ids: Whether its requests have topic ids.
        created_ms: Monotonic time of its creation.
        last_used_ms: Monotonic time of the last request.
        partitions: Partitions in the order in which they are read.
    """

    def __init__(
        self, session_id: int, now_ms: float, *, is_privileged: bool, uses_topic_ids: bool
    ) -> None:
        self.id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, CachedPartition] = {}

    def is_evictable_for(self, size: int, now_ms: float, *, is_privileged: bool) -> bool:
        """Return whether a new session of a size may evict this one."""
        if now_ms - self.last_used_ms > MIN_EVICTION_MS:
            return True
        if is_privileged and not self.is_privileged:
            return True
        is_old = now_ms - self.created_ms > MIN_EVICTION_MS
        return is_old and (self.is_privileged, len(self.partitions)) < (is_privileged, size)


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request of a session."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class Selected(NamedTuple):
    """Content of a response.

    Attributes:
        error_code: Error of the whole fetch.
        session_id: Session, 0 for none.
        partitions: Partitions with their results.
    """

    error_code: int
    session_id: int
    partitions: list[tuple[CachedPartition, FetchResult]]


class FetchContext(NamedTuple):
    """Partitions to read for a request, and the selection of those in its response.

    Attributes:
        partitions: Partitions to read, in order.
        select: Returns the content of the response from the results, one for each partition.
    """

    partitions: list[CachedPartition]
    select: Callable[[list[FetchResult]], Selected]


def _sessionless(partitions: list[CachedPartition]) -> FetchContext:
    def select(results: list[FetchResult]) -> Selected:
        return Selected(NONE, INVALID_SESSION_ID, list(zip(partitions, results, strict=True)))

    return FetchContext(partitions, select)


def _refused(error: KafkaError) -> FetchContext:
    return FetchContext([], lambda _: Selected(code_of(error), INVALID_SESSION_ID, []))


class FetchSessionCache:
    """Fetch sessions by id, the least recently used first (Kafka: FetchSessionCache).

    The lock guards the sessions and their partitions.
    """

    def __init__(self, slots: int, clock: Clock, random: RandomSource, lock: Condition) -> None:
        """Create a cache.

        Args:
            slots: ``max.incremental.fetch.session.cache.slots``.
            clock: Clock of the ages of sessions.
            random: Source of session ids.
            lock: The lock.
        """
        self._slots = slots
        self._clock = clock
        self._random = random
        self._lock = lock
        self._sessions: dict[int, FetchSession] = {}
        self._cached_partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def context(
        self,
        body: FetchRequest,
        version: int,
        name_of: Callable[[bytes], str],
        *,
        is_privileged: bool,
    ) -> FetchContext:
        """Return the context of a request (Kafka: FetchManager.newContext).

        Args:
            body: Request.
            version: Version of the request.
            name_of: Returns the topic name of an id, or an empty string.
            is_privileged: Whether the client is a follower.
        """
        by_id = version >= _TOPIC_IDS
        named = _partitions(body, name_of, by_id=by_id)
        if body.session_epoch not in {INITIAL_EPOCH, FINAL_EPOCH}:
            return self._incremental(body, named, name_of, by_id=by_id)
        if body.session_id != INVALID_SESSION_ID:
            with self._lock:
                self._remove(body.session_id)
        if body.session_epoch == FINAL_EPOCH:
            return _sessionless([partition for _, partition in named])
        return self._full(dict(named), is_privileged=is_privileged, by_id=by_id)

    def _full(
        self, partitions: dict[PartitionKey, CachedPartition], *, is_privileged: bool, by_id: bool
    ) -> FetchContext:
        """Return the context of a full fetch, whose response creates a session."""

        def select(results: list[FetchResult]) -> Selected:
            found = list(zip(partitions.values(), results, strict=True))
            for partition, result in found:
                partition.update(result)
            with self._lock:
                session = self._create(
                    len(partitions), is_privileged=is_privileged, uses_topic_ids=by_id
                )
                if session is None:
                    return Selected(NONE, INVALID_SESSION_ID, found)
                session.partitions = partitions
                self._cached_partitions += len(partitions)
                return Selected(NONE, session.id, found)

        return FetchContext(list(partitions.values()), select)

    def _incremental(
        self,
        body: FetchRequest,
        named: Iterable[tuple[PartitionKey, CachedPartition]],
        name_of: Callable[[bytes], str],
        *,
        by_id: bool,
    ) -> FetchContext:
        with self._lock:
            session = self._sessions.get(body.session_id)
            if session is None:
                return _refused(FetchSessionIdNotFoundError())
            if session.epoch != body.session_epoch:
                return _refused(InvalidFetchSessionEpochError())
            if session.uses_topic_ids is not by_id:
                return _refused(FetchSessionTopicIdError())
            self._apply(session, named, body, by_id=by_id)
            if not session.partitions or self._cached_partitions > MAX_CACHED_PARTITIONS:
                partitions = list(session.partitions.values())
                self._remove(session.id)
                return _sessionless(partitions)
            self._touch(session)
            session.epoch = expected = next_epoch(session.epoch)
            partitions = list(session.partitions.values())
            for partition in partitions if by_id else ():
                partition.name = partition.name or name_of(partition.topic_id)

        def select(results: list[FetchResult]) -> Selected:
            with self._lock:
                if session.epoch != expected:
                    code = code_of(InvalidFetchSessionEpochError())
                    return Selected(code, session.id, [])
                return Selected(NONE, session.id, _changed(session, partitions, results))

        return FetchContext(partitions, select)

    def _apply(
        self,
        session: FetchSession,
        named: Iterable[tuple[PartitionKey, CachedPartition]],
        body: FetchRequest,
        *,
        by_id: bool,
    ) -> None:
        """Add, change and remove the partitions that a request names."""
        cached = session.partitions
        before = len(cached)
        for key, partition in named:
            known = cached.setdefault(key, partition)
            known.wanted = partition.wanted
        for topic in body.forgotten_topics_data:
            topic_key = topic.topic_id if by_id else topic.topic
            for index in topic.partitions:
                cached.pop((topic_key, index), None)
        self._cached_partitions += len(cached) - before

    def _create(
        self, size: int, *, is_privileged: bool, uses_topic_ids: bool
    ) -> FetchSession | None:
        """Return a new session without partitions, or None if there is no slot or memory for it."""
        now_ms = self._clock.monotonic_ms()
        if len(self._sessions) >= self._slots:
            self._evict(size, now_ms, is_privileged=is_privileged)
        if len(self._sessions) >= self._slots:
            return None
        if self._cached_partitions + size > MAX_CACHED_PARTITIONS:
            return None
        session = FetchSession(
            self._new_id(), now_ms, is_privileged=is_privileged, uses_topic_ids=uses_topic_ids
        )
        self._sessions[session.id] = session
        return session

    def _evict(self, size: int, now_ms: float, *, is_privileged: bool) -> None:
        """Remove the least recently used session if it is idle, else the smallest that may be."""
        evictable = [
            session
            for session in self._sessions.values()
            if session.is_evictable_for(size, now_ms, is_privileged=is_privileged)
        ]
        if not evictable:
            return
        chosen = evictable[0]
        if now_ms - chosen.last_used_ms <= MIN_EVICTION_MS:
            chosen = min(evictable, key=lambda each: (each.is_privileged, len(each.partitions)))
        self._remove(chosen.id)

    def _new_id(self) -> int:
        while True:
            session_id = int.from_bytes(self._random.randbytes(4), "big") >> 1
            if session_id != INVALID_SESSION_ID and session_id not in self._sessions:
                return session_id

    def _touch(self, session: FetchSession) -> None:
        session.last_used_ms = self._clock.monotonic_ms()
        self._sessions[session.id] = self._sessions.pop(session.id)

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._cached_partitions -= len(session.partitions)


def _partitions(
    body: FetchRequest, name_of: Callable[[bytes], str], *, by_id: bool
) -> list[tuple[PartitionKey, CachedPartition]]:
    named: list[tuple[PartitionKey, CachedPartition]] = []
    for topic in body.topics:
        topic_id = topic.topic_id
        name = name_of(topic_id) if by_id else topic.topic
        key = topic_id if by_id else name
        for part in topic.partitions:
            wanted = FetchPartition(
                topic_id,
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
            )
            cached = CachedPartition(name, topic_id, part.partition, wanted)
            named.append(((key, part.partition), cached))
    return named


def _changed(
    session: FetchSession, partitions: list[CachedPartition], results: list[FetchResult]
) -> list[tuple[CachedPartition, FetchResult]]:
    """Return the partitions that the response must contain.

    Those with records move to the end, so that the limit of a response does not starve the others.
    """
    selected = []
    for partition, result in zip(partitions, results, strict=True):
        if partition.update(result):
            selected.append((partition, result))
            if len(result.records):
                key = partition.topic_id if session.uses_topic_ids else partition.name
                session.partitions[key, partition.index] = session.partitions.pop(
                    (key, partition.index)
                )
    return selected
