"""Records sent for the duration of a test, numbered so that every fault shows."""

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kclient import Producer, RecordMetadata
from kclient.common.errors import KafkaError
from tests.support.checks.waiting import wait_until
from tests.support.clients.background_thread import BackgroundThread
from tests.support.clients.foreign_record import ForeignRecord

_KEYS = 20


class Placed(NamedTuple):
    """A record that was acknowledged."""

    partition: int
    offset: int
    value: bytes


class Load(BackgroundThread):
    """Sends ``key:0, key:1, …`` for each of twenty keys in turn, from its own thread.

    It does not wait for single records, but has at most `ahead` of them unacknowledged, so that it
    stops with a broker that stops. The end of the block stops it.
    """

    def __init__(self, producer: Producer, topic: str, ahead: int = 1000) -> None:
        super().__init__("load", "send()", 30)
        self.failures: list[BaseException] = []
        self.placed: list[Placed] = []
        self._producer = producer
        self._topic = topic
        self._space = threading.Semaphore(ahead)
        self._sent = 0

    @property
    def acknowledged(self) -> int:
        """Number of records acknowledged so far."""
        return len(self.placed)

    def await_more(self, count: int, timeout: float = 60.0) -> None:
        """Return when this many more records than now were acknowledged."""
        goal = self.acknowledged + count
        what = f"{goal} records acknowledged ({self._producer.metrics()})"

        def enough() -> bool:
            self.check()
            assert self.failures == [], "records were not delivered"
            return self.acknowledged >= goal

        wait_until(enough, what, timeout)

    def finish(self, timeout: float = 60.0) -> list[bytes]:
        """Stop, wait for every record's acknowledgement, and return the values sent."""
        self.stop()
        self.check()
        self._producer.flush(timeout)
        assert self.failures == [], f"{len(self.failures)} records were not delivered"
        assert self.acknowledged == self._sent, "a record has neither outcome after flush()"
        return [value_of(number) for number in range(self._sent)]

    def stop(self) -> None:
        self.stopping.set()
        self._space.release()
        super().stop()

    def run(self) -> None:
        while self._space.acquire() and not self.stopping.is_set():
            self._send(self._sent)
            self._sent += 1

    def _send(self, number: int) -> None:
        value = value_of(number)

        def delivered(at: RecordMetadata | None, error: KafkaError | None) -> None:
            if at is not None:
                self.placed.append(Placed(at.partition, at.offset, value))
            elif error is not None:
                self.failures.append(error)
            self._space.release()

        self._producer.send(self._topic, value, value.partition(b":")[0], on_delivery=delivered)


def value_of(number: int, prefix: bytes = b"") -> bytes:
    """Return the value of the record with this number: its key, and its number in the key."""
    return b"%skey-%d:%d" % (prefix, number % _KEYS, number // _KEYS)


def check_intact(sent: Iterable[bytes], found: Iterable[ForeignRecord]) -> None:
    """Fail unless every record was read once, each key in one partition and in order."""
    times = Counter(record.value for record in found)
    lost = [value for value in sent if value not in times]
    assert lost == [], f"{len(lost)} records are lost, the first ones {lost[:5]}"
    doubled = [value for value, count in times.items() if count > 1]
    assert doubled == [], f"{len(doubled)} records are duplicated, the first ones {doubled[:5]}"
    foreign = times.keys() - set(sent)
    assert not foreign, f"records that were not sent: {sorted(map(str, foreign))[:5]}"
    check_order(found)


def check_order(found: Iterable[ForeignRecord]) -> None:
    """Fail unless the records of each key are in one partition, in the order of sending."""
    homes: dict[bytes | None, set[int]] = defaultdict(set)
    order: dict[bytes | None, list[int]] = defaultdict(list)
    for record in sorted(found, key=lambda one: (one.partition, one.offset)):
        homes[record.key].add(record.partition)
        order[record.key].append(int((record.value or b"").partition(b":")[2]))
    astray = {key: places for key, places in homes.items() if len(places) > 1}
    assert astray == {}, f"keys in several partitions: {astray}"
    for key, numbers in order.items():
        turned = [pair for pair in itertools.pairwise(numbers) if pair[0] >= pair[1]]
        assert turned == [], f"{key!r} is out of order: {turned[:5]}"
