"""Incremental fetch sessions (KIP-227; Kafka: FetchSession, FetchSessionCache, FetchContext).

The broker keeps the partitions of a session with what it sent last. A request of the session names
only the partitions that changed on the client, and its response contains only those with records,
an error or other offsets. Without a free slot the response has session id 0: the fetch is full.

Unlike in Kafka, a request of a session does not read all of its partitions: its cost depends on the
partitions that have changed, which the replica manager reports.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from kclient.broker.replication.fetch_params import (
    FetchPartition,
    FetchPosition,
    FetchResult,
    FetchSource,
    NamedPartitions,
)
from kclient.common.broker_errors import (
    NONE,
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Condition
from kclient.common.types import TopicPartition
from kclient.common.uuids import RandomSource
from kclient.protocol.messages.fetch import FetchRequest

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
_TOPIC_IDS = 13
_PLACE = attrgetter("place")

MIN_EVICTION_MS = 120_000.0
"""Age from which a session may be evicted (``min.incremental.fetch.session.eviction.ms``)."""

MAX_CACHED_PARTITIONS = 250_000
"""Partitions of all sessions together, about 600 bytes each: clients determine their number."""

PartitionKey = tuple[str | bytes, int]
"""Topic name or topic id, and partition."""

PartitionResult = tuple["CachedPartition", FetchResult]


class CachedPartition(FetchPosition):
    """Partition of a fetch, with what was sent last (Kafka: FetchSession.CachedPartition).

    Attributes:
        topic_id: Topic id, 16 bytes; zero in requests with names.
        session: The session that has it, or None.
        place: Place in the order in which the session reads.
    """

    __slots__ = ("_high_watermark", "_log_start_offset", "place", "session", "topic_id")

    def __init__(
        self, topic_partition: TopicPartition, topic_id: bytes, wanted: FetchPartition
    ) -> None:
        super().__init__(topic_partition, wanted)
        self.topic_id = topic_id
        self.session: FetchSession | None = None
        self.place = 0
        self._high_watermark = self._log_start_offset = -1

    @property
    def name(self) -> str:
        """Topic name; empty while the topic id is unknown."""
        return self.topic_partition.topic

    @property
    def index(self) -> int:
        """Number of the partition."""
        return self.topic_partition.partition

    def update(self, result: FetchResult) -> bool:
        """Record the result of a fetch; return whether the response must contain it.

        After an error the partition is sent again when the error has ended.
        """
        changed = self.has_changed(result)
        if changed:
            self._high_watermark = -1 if result.is_due else result.high_watermark
            self._log_start_offset = result.log_start_offset
        return changed

    def has_changed(self, result: FetchResult) -> bool:
        """Return whether the response must contain the result."""
        return (
            result.is_due
            or len(result.records) > 0
            or result.high_watermark != self._high_watermark
            or result.log_start_offset != self._log_start_offset
        )

    def is_read_to_end(self, result: FetchResult) -> bool:
        """Return whether a consumer gets nothing more until the partition changes."""
        unread = len(result.records) > 0 or self.wanted.fetch_offset < result.high_watermark
        return not result.is_due and not unread


class FetchSession:
    """Partitions of one client on one broker. Guarded by the lock of the cache.

    A fetch reads only the partitions that may have something to return. These are those that have
    changed or that the client has named since the last fetch, and those that it has not read to
    their end.

    Attributes:
        id: Session id, not 0.
        epoch: Epoch that the next request must have.
        is_privileged: Whether the client is a follower, whose session consumers do not evict.
        uses_topic_ids: Whether its requests have topic ids.
        created_ms: Monotonic time of its creation.
        last_used_ms: Monotonic time of the last request.
        partitions: All partitions.
        changed: Partitions to read by the next `take`.
        taken: Partitions that the present request reads.
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
        self.changed: dict[CachedPartition, None] = {}
        self.taken: dict[CachedPartition, None] = {}
        self._places = itertools.count()

    def add(self, key: PartitionKey, partition: CachedPartition) -> None:
        """Add a partition, to be read after the others."""
        self.partitions[key] = partition
        partition.session = self
        partition.place = next(self._places)

    def mark_all(self) -> None:
        """Let the next `take` return all partitions."""
        self.changed.update(dict.fromkeys(self.partitions.values()))

    def take(self) -> list[CachedPartition]:
        """Return the partitions to read; changes from now on are read by the next `take`."""
        self.taken.update(self.changed)
        self.changed = {}
        return sorted(self.taken, key=_PLACE)

    def select(self, results: Sequence[PartitionResult]) -> list[PartitionResult]:
        """Return the partitions that the response must contain.

        Those with records move to the end, so that the limit of a response does not starve the
        others.
        """
        selected: list[PartitionResult] = []
        for partition, result in results:
            if partition.update(result):
                selected.append((partition, result))
            if len(result.records):
                partition.place = next(self._places)
            if not partition.is_read_to_end(result):
                self.changed[partition] = None
        self.taken = {}
        return selected

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
    partitions: Sequence[PartitionResult]


class FetchContext(FetchSource, Protocol):
    """Partitions to read for a request, and the selection of those in its response."""

    def take(self) -> Sequence[CachedPartition]:
        """Return the partitions to read now, in order."""
        ...

    def select(self, results: Sequence[PartitionResult]) -> Selected:
        """Return the content of the response from the results of the last `take`."""
        ...

    def changed(self, results: Sequence[PartitionResult]) -> Sequence[PartitionResult]:
        """Return the results that `select` would return, without a change of the session."""
        ...

    def throttled(self) -> Selected:
        """Return the content of a response without results; the next fetch reads them again."""
        ...


class FullFetch(NamedPartitions):
    """Fetch whose request names all partitions."""

    def __init__(
        self,
        partitions: Sequence[CachedPartition],
        select: Callable[[Sequence[PartitionResult]], Selected],
        error_code: int = NONE,
    ) -> None:
        super().__init__(partitions)
        self._partitions = partitions
        self._error_code = error_code
        self.select = select

    def take(self) -> Sequence[CachedPartition]:
        """Return all."""
        return self._partitions

    def changed(self, results: Sequence[PartitionResult]) -> Sequence[PartitionResult]:
        """Return all."""
        return results

    def throttled(self) -> Selected:
        """Return the content of a response that creates no session."""
        return Selected(self._error_code, INVALID_SESSION_ID, [])


def _sessionless(partitions: list[CachedPartition]) -> FullFetch:
    return FullFetch(partitions, lambda results: Selected(NONE, INVALID_SESSION_ID, results))


def _refused(error: KafkaError) -> FullFetch:
    code = code_of(error)
    return FullFetch([], lambda _: Selected(code, INVALID_SESSION_ID, []), code)


class IncrementalFetch:
    """Fetch of those partitions of a session that may have something to return.

    The session counts as superseded, and is not changed, when a later request has begun.
    """

    def __init__(self, session: FetchSession, lock: Condition) -> None:
        self._session = session
        self._epoch = session.epoch
        self._lock = lock

    def watch_keys(self) -> Sequence[Hashable]:
        """Return the session: its partitions are watched from request to request."""
        return (self._session,)

    def take(self) -> Sequence[CachedPartition]:
        """Return the partitions to read now."""
        session = self._session
        with self._lock:
            return session.take() if session.epoch == self._epoch else list(session.taken)

    def waiting(self) -> Sequence[CachedPartition]:
        """Return the partitions that were read, and those that have changed since."""
        session = self._session
        with self._lock:
            return list({**session.taken, **session.changed})

    def select(self, results: Sequence[PartitionResult]) -> Selected:
        """Return the content of the response."""
        session = self._session
        with self._lock:
            if session.epoch != self._epoch:
                return Selected(code_of(InvalidFetchSessionEpochError()), session.id, [])
            return Selected(NONE, session.id, session.select(results))

    def changed(self, results: Sequence[PartitionResult]) -> Sequence[PartitionResult]:
        """Return those with records, an error or other offsets."""
        return [each for each in results if each[0].has_changed(each[1])]

    def throttled(self) -> Selected:
        """Return a response without partitions; what was read stays to be read."""
        session = self._session
        with self._lock:
            is_superseded = session.epoch != self._epoch
        code = code_of(InvalidFetchSessionEpochError()) if is_superseded else NONE
        return Selected(code, session.id, [])


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
        self._watched: dict[TopicPartition, list[CachedPartition]] = {}  # of all sessions
        self._cached_partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def partition_changed(self, topic_partition: TopicPartition) -> Sequence[FetchSession]:
        """Let the sessions with a partition read it; return them, as keys of delayed fetches.

        It is called after the change, and may be called by any thread.
        """
        # Safe without the lock: a session reads a partition after it was added.
        if topic_partition not in self._watched:
            return ()
        found = []
        with self._lock:
            for partition in self._watched.get(topic_partition, ()):
                session = partition.session
                if session is not None:
                    session.changed[partition] = None
                    found.append(session)
        return found

    def context(
        self,
        body: FetchRequest,
        version: int,
        name_of: Callable[[bytes], str],
        *,
        is_privileged: bool,
        reads_all: bool = False,
    ) -> FetchContext:
        """Return the context of a request (Kafka: FetchManager.newContext).

        Args:
            body: Request.
            version: Version of the request.
            name_of: Returns the topic name of an id, or an empty string.
            is_privileged: Whether the client is a follower.
            reads_all: Whether all partitions of a session are read, also those without a change.
        """
        by_id = version >= _TOPIC_IDS
        named = _partitions(body, name_of, by_id=by_id)
        if body.session_epoch not in {INITIAL_EPOCH, FINAL_EPOCH}:
            return self._incremental(body, named, name_of, by_id=by_id, reads_all=reads_all)
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

        def select(results: Sequence[PartitionResult]) -> Selected:
            for partition, result in results:
                partition.update(result)
            with self._lock:
                session = self._create(
                    len(partitions), is_privileged=is_privileged, uses_topic_ids=by_id
                )
                if session is None:
                    return Selected(NONE, INVALID_SESSION_ID, results)
                for key, partition in partitions.items():
                    self._add(session, key, partition)
                # What changed since they were read is unknown.
                session.mark_all()
                return Selected(NONE, session.id, results)

        return FullFetch(list(partitions.values()), select)

    def _incremental(
        self,
        body: FetchRequest,
        named: Iterable[tuple[PartitionKey, CachedPartition]],
        name_of: Callable[[bytes], str],
        *,
        by_id: bool,
        reads_all: bool,
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
            session.epoch = next_epoch(session.epoch)
            if reads_all or session.is_privileged:
                session.mark_all()
            self._resolve(session, name_of)
        return IncrementalFetch(session, self._lock)

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
        for key, partition in named:
            known = cached.get(key)
            if known is None:
                self._add(session, key, known := partition)
            known.wanted = partition.wanted
            session.changed[known] = None
        for topic in body.forgotten_topics_data:
            topic_key = topic.topic_id if by_id else topic.topic
            for index in topic.partitions:
                forgotten = cached.pop((topic_key, index), None)
                if forgotten is not None:
                    session.changed.pop(forgotten, None)
                    session.taken.pop(forgotten, None)
                    self._drop(forgotten)

    def _resolve(self, session: FetchSession, name_of: Callable[[bytes], str]) -> None:
        """Name the partitions whose topic id was unknown; each fetch reads them."""
        for partition in (*session.taken, *session.changed):
            if not partition.name:
                name = name_of(partition.topic_id)
                if name:
                    partition.topic_partition = TopicPartition(name, partition.index)
                    self._watched.setdefault(partition.topic_partition, []).append(partition)

    def _add(self, session: FetchSession, key: PartitionKey, partition: CachedPartition) -> None:
        session.add(key, partition)
        self._cached_partitions += 1
        if partition.name:
            self._watched.setdefault(partition.topic_partition, []).append(partition)

    def _drop(self, partition: CachedPartition) -> None:
        partition.session = None
        self._cached_partitions -= 1
        watched = self._watched.get(partition.topic_partition)
        if watched is not None and partition in watched:
            watched.remove(partition)
            if not watched:
                del self._watched[partition.topic_partition]

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
            for partition in session.partitions.values():
                self._drop(partition)


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
                part.log_start_offset,
            )
            topic_partition = TopicPartition(name, part.partition)
            named.append(
                ((key, part.partition), CachedPartition(topic_partition, topic_id, wanted))
            )
    return named
