"""One producer per worker process and configuration."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from kclient.common.errors import FatalError, IllegalStateError, KafkaTimeoutError
from kclient.common.runtime import Runtime, Task
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer
from kclient.spark.sink.delivery import RowSender
from kclient.spark.sink.producer_settings import ProducerSettings

_log = logging.getLogger(__name__)

_IDLE_MS = 300_000.0


class SinkProducer(RowSender, Protocol):
    """A producer, as far as the cache and the deliveries know it."""

    def flush(self, timeout: float | None = None) -> None:
        """Send what is queued without delay, and wait until each record has its outcome."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Let go of threads and connections; None sends everything first."""
        ...


MakeProducer = Callable[[Mapping[str, object]], SinkProducer]


class _Entry:
    """A producer in the cache.

    Attributes:
        producer: The producer.
        users: How many tasks use it at present.
        retired: Whether no further task may have it.
        idle_since_ms: When its last user left.
    """

    __slots__ = ("idle_since_ms", "producer", "retired", "users")

    def __init__(self, producer: SinkProducer) -> None:
        self.producer = producer
        self.users = 0
        self.retired = False
        self.idle_since_ms = 0.0


class ProducerCache:
    """The producers of one process, by the digest of their configuration.

    Spark's workers run one task after the other: a producer that stays saves each of them the
    connections, the look-up of the topic, and the thread. It is closed when nobody has used it for
    a while, and replaced when it is broken or a task with it has failed.
    """

    def __init__(
        self,
        runtime: Runtime,
        make: MakeProducer = Producer,
        idle_ms: float = _IDLE_MS,
    ) -> None:
        """Create an empty cache; a thread that closes the idle starts with the first of them.

        Args:
            runtime: Door to clock and threads.
            make: Makes a producer of its configuration.
            idle_ms: How long a producer may lie idle.
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
    def lease(self, settings: ProducerSettings) -> Iterator[SinkProducer]:
        """Lend the producer of a configuration for the length of a block.

        A block that ends with an error gives the producer up, with what it has not sent: the task
        will be run again and send everything anew.

        Raises:
            KafkaError: The producer could not be made.
        """
        entry = self._take(settings)
        try:
            yield entry.producer
        except BaseException:
            self._give_back(settings.digest, entry, failed=True)
            raise
        self._give_back(settings.digest, entry, failed=False)

    def close(self) -> None:
        """Close every producer that nobody uses, and the others when their users leave."""
        with self._state:
            entries = list(self._entries.values())
            self._entries.clear()
            for entry in entries:
                entry.retired = True
            self._state.notify_all()
        for entry in entries:
            self._close_if_free(entry, None)

    def _take(self, settings: ProducerSettings) -> _Entry:
        while True:
            entry = self._take_present(settings)
            if entry is None:
                made = _Entry(self._make(settings.config()))
                entry = self._add(settings.digest, made)
                if entry is not made:  # another thread was quicker
                    made.producer.close(0)
            if _is_usable(entry.producer):
                return entry
            self._give_back(settings.digest, entry, failed=True)

    def _take_present(self, settings: ProducerSettings) -> _Entry | None:
        with self._state:
            entry = self._entries.get(settings.digest)
            if entry is not None:
                entry.users += 1
            return entry

    def _add(self, digest: str, made: _Entry) -> _Entry:
        with self._state:
            entry = self._entries.setdefault(digest, made)
            entry.users += 1
            return entry

    def _give_back(self, digest: str, entry: _Entry, *, failed: bool) -> None:
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
        """Close what has been idle for long enough, then wait for the next; False: none is left."""
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
            _log.debug("closing a producer that nobody has used for %.0f s", self._idle_ms / 1000)
            entry.producer.close()
        return True

    def _left_ms(self, entry: _Entry, now_ms: float) -> float:
        if entry.users:
            return self._idle_ms
        return entry.idle_since_ms + self._idle_ms - now_ms


def _is_usable(producer: SinkProducer) -> bool:
    """Return whether a producer is neither closed, nor broken, nor another process's."""
    try:
        producer.flush(0)
    except KafkaTimeoutError:
        return True  # another task's records are on their way
    except (FatalError, IllegalStateError) as error:
        _log.warning("a cached producer is replaced: %s", error)
        return False
    return True


_caches: dict[int, ProducerCache] = {}


def worker_cache() -> ProducerCache:
    """Return this process's cache; a forked child has its own, and leaves its parent's alone."""
    runtime = system_runtime()
    pid = runtime.tasks.process_id()
    found = _caches.get(pid)
    # No lock: it might be held for ever in a child that was forked meanwhile.
    return _caches.setdefault(pid, ProducerCache(runtime)) if found is None else found
