"""Cache of producers: one per worker process and configuration."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kclient.common.errors import FatalError, IllegalStateError, KafkaTimeoutError
from kclient.common.runtime import Runtime, Task
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer
from kclient.spark.sink.producer_settings import ProducerSettings

_log = logging.getLogger(__name__)

_IDLE_MS = 300_000.0


MakeProducer = Callable[[Mapping[str, object]], Producer[bytes, bytes]]


class _Entry:
    """A producer in the cache.

    Attributes:
        producer: The producer.
        users: Number of tasks that use it.
        retired: Whether no further task may use it.
        idle_since_ms: When its last task ended.
    """

    __slots__ = ("idle_since_ms", "producer", "retired", "users")

    def __init__(self, producer: Producer[bytes, bytes]) -> None:
        self.producer = producer
        self.users = 0
        self.retired = False
        self.idle_since_ms = 0.0


class ProducerCache:
    """The producers of one process, by the digest of their configuration.

    Spark's workers run one task after the other: a cached producer saves each of them connections,
    metadata and a thread. It is closed after an idle time, and replaced after a fatal error or
    after a task with it has failed.
    """

    def __init__(
        self,
        runtime: Runtime,
        make: MakeProducer = Producer,
        idle_ms: float = _IDLE_MS,
    ) -> None:
        """Create an empty cache; its thread starts when the first producer becomes idle.

        Args:
            runtime: Clock and tasks.
            make: Creates a producer from its configuration.
            idle_ms: Idle time after which a producer is closed.
        """
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._make = make
        self._idle_ms = idle_ms
        self._state = runtime.tasks.condition()  # guards: all below, and every entry's fields
        self._entries: dict[str, _Entry] = {}
        self._closer: Task | None = None

    def __len__(self) -> int:
        with self._state:
            return len(self._entries)

    @contextmanager
    def lease(self, settings: ProducerSettings) -> Iterator[Producer[bytes, bytes]]:
        """Provide the producer of a configuration for a block.

        If the block fails, the producer is closed and its unsent records are discarded: the retry
        of the task sends all of them again.

        Raises:
            KafkaError: The producer could not be created.
        """
        entry = self._acquire(settings)
        try:
            yield entry.producer
        except BaseException:
            self._release(settings.digest, entry, failed=True)
            raise
        self._release(settings.digest, entry, failed=False)

    def close(self) -> None:
        """Close every producer: those in use when their tasks end."""
        with self._state:
            entries = list(self._entries.values())
            self._entries.clear()
            for entry in entries:
                entry.retired = True
            self._state.notify_all()
        for entry in entries:
            self._close_if_free(entry, None)

    def _acquire(self, settings: ProducerSettings) -> _Entry:
        while True:
            entry = self._acquire_cached(settings)
            if entry is None:
                created = _Entry(self._make(settings.config()))
                entry = self._add(settings.digest, created)
                if entry is not created:  # another thread was faster
                    created.producer.close(0)
            if _is_usable(entry.producer):
                return entry
            self._release(settings.digest, entry, failed=True)

    def _acquire_cached(self, settings: ProducerSettings) -> _Entry | None:
        with self._state:
            entry = self._entries.get(settings.digest)
            if entry is not None:
                entry.users += 1
            return entry

    def _add(self, digest: str, created: _Entry) -> _Entry:
        with self._state:
            entry = self._entries.setdefault(digest, created)
            entry.users += 1
            return entry

    def _release(self, digest: str, entry: _Entry, *, failed: bool) -> None:
        with self._state:
            entry.users -= 1
            entry.idle_since_ms = self._clock.monotonic_ms()
            if failed:
                entry.retired = True
                if self._entries.get(digest) is entry:
                    del self._entries[digest]
            if not entry.retired and self._closer is None:
                self._closer = self._tasks.spawn("kclient-spark-idle", self._close_idle)
        self._close_if_free(entry, 0)

    def _close_if_free(self, entry: _Entry, timeout: float | None) -> None:
        with self._state:
            free = entry.retired and entry.users == 0
        if free:
            entry.producer.close(timeout)

    def _close_idle(self) -> bool:
        """Close the producers that are idle for too long, or wait; False if none is left."""
        with self._state:
            now_ms = self._clock.monotonic_ms()
            overdue = [
                digest
                for digest, entry in self._entries.items()
                if self._left_ms(entry, now_ms) <= 0
            ]
            closing = [self._entries.pop(digest) for digest in overdue]
            if not closing:
                if not self._entries:
                    self._closer = None
                    return False
                waits = [self._left_ms(entry, now_ms) for entry in self._entries.values()]
                self._state.wait(min(waits) / 1000.0)
        for entry in closing:
            _log.debug("closing a producer that was idle for %.0f s", self._idle_ms / 1000)
            entry.producer.close()
        return True

    def _left_ms(self, entry: _Entry, now_ms: float) -> float:
        if entry.users:
            return self._idle_ms
        return entry.idle_since_ms + self._idle_ms - now_ms


def _is_usable(producer: Producer[bytes, bytes]) -> bool:
    """Return whether a producer is open, without fatal error, and of this process."""
    try:
        producer.flush(0)
    except KafkaTimeoutError:
        return True  # records of another task are in flight
    except (FatalError, IllegalStateError) as error:
        _log.warning("replacing a cached producer: %s", error)
        return False
    return True


_caches: dict[int, ProducerCache] = {}


def worker_cache() -> ProducerCache:
    """Return the cache of this process; a forked child gets its own and ignores its parent's."""
    runtime = system_runtime()
    pid = runtime.tasks.process_id()
    found = _caches.get(pid)
    # Without a lock: a child forked while it is held could never acquire it.
    return _caches.setdefault(pid, ProducerCache(runtime)) if found is None else found
