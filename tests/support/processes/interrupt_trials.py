"""Interrupts the waiting calls of a producer at each place, and checks that it stays usable.

`python -m tests.support.processes.interrupt_trials` does so with the hot path that the environment
selects. With a seed and a number of rounds it sends SIGINT at random times instead, during all
calls. Either way it prints the number of interrupts of each call.
"""

import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType

import pyarrow as pa

from kclient import Producer
from kclient.common.errors import ClosedError
from kclient.common.shared_task import SharedTask
from kclient.common.system_tasks import SystemCondition
from kclient.producer import DeliveryFuture
from kclient.producer.hot_path import SendPath
from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.checks.interrupts import Interruption, at_every_place
from tests.support.checks.waiting import wait_until

IN_TIME = 20.0
BATCH = 500
_WAITS = (SystemCondition.wait.__code__, SharedTask._perform.__code__)


def elsewhere(check: Callable[[], None], place: str) -> None:
    """Check in another thread, which a lock kept by the interrupted thread would block."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            check()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(IN_TIME)
    assert not thread.is_alive(), f"it hangs after an interrupt at {place}"
    if raised:
        raise AssertionError(f"after an interrupt at {place}") from raised[0]


def _wait_of(thread: int) -> CodeType | None:
    """Return the function in which a thread waits: for a condition, or in the sender's place."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code in _WAITS:
            return frame.f_code
        frame = frame.f_back
    return None


class Trials:
    """One producer for all interruptions, so that damage accumulates."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._servers = cluster.bootstrap_servers
        self._faults = cluster.faults
        self._numbers = iter(range(1 << 30))
        self._topic = "interrupted"
        self.reported: Counter[bytes] = Counter()
        self.waited_in: set[CodeType | None] = set()
        self.futures: list[DeliveryFuture] = []
        self.producer = self.make()
        self.send_arrow()  # imports pyarrow

    def make(self, linger_ms: int = 60_000) -> Producer:
        producer = Producer(
            bootstrap_servers=self._servers,
            batch_size=BATCH,
            linger_ms=linger_ms,
            buffer_memory=8 * BATCH,
        )
        producer.partitions_for(self._topic)
        return producer

    def value(self, size: int = 0) -> bytes:
        return b"%08d" % next(self._numbers) + bytes(size)

    def send(self, size: int = 0, topic: str | None = None) -> None:
        value = self.value(size)
        self.futures.append(
            self.producer.send(
                topic or self._topic, value, on_delivery=partial(self._report, value)
            )
        )

    def _report(self, value: bytes, metadata: object, error: object) -> None:
        self.reported[value] += 1

    def send_each(self, count: int, size: int = 0) -> None:
        for _ in range(count):
            self.send(size)

    def send_many(self) -> None:
        self.producer.send_many(self._topic, [self.value(100) for _ in range(8)], partition=0)

    def send_arrow(self) -> None:
        values = [self.value(100) for _ in range(8)]
        keys = [b"a", None, b"b", b"c"] * 2
        self.producer.send_arrow(self._topic, pa.table({"value": values, "key": keys}))

    def wait_for_result(self) -> None:
        self.futures[-1].result(IN_TIME)

    def check(self) -> None:
        """Check that the producer is as if there had been no interrupt."""
        producer, accumulator = self.producer, self.producer._core._accumulator
        marker = producer.send(self._topic, b"marker", partition=0)
        producer.flush(IN_TIME)
        assert marker.result(0).offset >= 0
        assert all(future.done() for future in self.futures)
        assert set(self.reported.values()) <= {1}
        assert not accumulator.drainer.has_due()
        assert accumulator.pool.queued() == 0
        assert not accumulator._flushes
        # The sender frees the last batch's memory just after its outcome.
        pool = accumulator.pool
        wait_until(
            lambda: not len(accumulator.incomplete) and pool.available() == pool.total,
            "all memory is free",
            timeout=5,
        )
        self.futures.clear()
        self.reported.clear()

    def try_at(
        self, call: Callable[[], object], prepare: Callable[[], None], interruption: Interruption
    ) -> bool:
        self._faults.mute()
        prepare()
        with self._unmuted_during_wait():
            interrupted = interruption.during(call)
        elsewhere(self.check, interruption.place)
        return interrupted

    @contextmanager
    def _unmuted_during_wait(self) -> Iterator[None]:
        """Unmute the broker once this thread waits, or at the end: the call has to wait before."""
        caller, has_ended = threading.get_ident(), threading.Event()

        def unmute() -> None:
            try:
                wait_until(
                    lambda: has_ended.is_set() or _wait_of(caller) is not None,
                    "the call waits or ends",
                )
                self.waited_in.add(_wait_of(caller))
            finally:
                self._faults.unmute()

        thread = threading.Thread(target=unmute, daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join(IN_TIME)

    def go_through(
        self, call: Callable[[], object], prepare: Callable[[], None] = lambda: None
    ) -> int:
        return at_every_place(partial(self.try_at, call, prepare))

    def close_at(self, interruption: Interruption) -> bool:
        self.producer = self.make()
        self.send()
        interrupted = interruption.during(self.producer.close)
        elsewhere(self._check_closed, interruption.place)
        return interrupted

    def _check_closed(self) -> None:
        self.producer.close(IN_TIME)
        task = self.producer._core._task
        assert task is not None
        assert not task.is_alive()
        assert all(future.exception(0) is None for future in self.futures)
        assert set(self.reported.values()) <= {1}
        try:
            self.producer.send(self._topic, b"late")
        except ClosedError:
            return
        raise AssertionError("a closed producer took a record")

    def fill_memory(self) -> None:
        for _ in range(8):
            self.send(350)


def go_through_all(trials: Trials) -> dict[str, int]:
    """Try all calls; return the number of places of each call."""
    topics = iter(range(1 << 30))
    tried = {
        "send to a new topic": trials.go_through(lambda: trials.send(topic=f"new-{next(topics)}")),
        "send into full memory": trials.go_through(lambda: trials.send(350), trials.fill_memory),
        "flush": trials.go_through(trials.producer.flush, trials.send),
    }
    trials.producer.close(IN_TIME)
    trials.producer = trials.make(linger_ms=0)
    tried["result"] = trials.go_through(trials.wait_for_result, trials.send)
    assert SharedTask._perform.__code__ in trials.waited_in, "no caller ran the sender"
    trials.producer.close(IN_TIME)
    tried["close"] = at_every_place(trials.close_at)
    return tried


class Storm:
    """SIGINT at random times, until each call was interrupted many times.

    Attributes:
        struck: Number of interrupts of each call.
        took: Seconds from each signal to the handler of the exception in the caller.
    """

    def __init__(self, trials: Trials, dice: random.Random) -> None:
        self._trials = trials
        self._dice = dice
        self._armed: list[bool] = []
        self._raised_at = 0.0
        self.struck: Counter[str] = Counter()
        self.took: list[float] = []

    def rage(self, rounds: int) -> None:
        producer = self._trials.producer
        calls: dict[str, Callable[[], object]] = {
            "send": lambda: self._trials.send_each(20),
            "send in a new batch": lambda: self._trials.send_each(4, 480),
            "send_many": self._trials.send_many,
            "send_arrow": self._trials.send_arrow,
            "flush": producer.flush,
        }
        before = signal.signal(signal.SIGALRM, self._strike)
        try:
            for _ in range(rounds):
                name = self._dice.choice(list(calls))
                if name == "flush":
                    self._trials.send()
                self._strike_within(name, calls[name])
                elsewhere(self._trials.check, name)
        finally:
            signal.signal(signal.SIGALRM, before)

    def _strike(self, number: int, frame: object) -> None:
        if self._armed:
            self._armed.clear()
            self._raised_at = time.monotonic()
            signal.raise_signal(signal.SIGINT)

    def _strike_within(self, name: str, call: Callable[[], object]) -> None:
        self._armed.append(True)
        try:
            signal.setitimer(signal.ITIMER_REAL, self._dice.uniform(1e-6, 300e-6), 0.01)
            call()
            name = "too late"
            while True:
                signal.pause()
        except KeyboardInterrupt:
            self.took.append(time.monotonic() - self._raised_at)
            self.struck[name] += 1
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(storm_seed: str = "", rounds: str = "0") -> None:
    with EmbeddedCluster() as cluster:
        trials = Trials(cluster)
        if storm_seed:
            storm = Storm(trials, random.Random(int(storm_seed)))
            storm.rage(int(rounds))
            trials.producer.close(IN_TIME)
            found: object = {**storm.struck, "late": sum(took > IN_TIME for took in storm.took)}
        else:
            found = go_through_all(trials)
    sys.stdout.write(json.dumps({"hot path": SendPath.__module__, "struck": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
