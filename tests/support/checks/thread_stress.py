"""Many threads with one producer, switched at the shortest interval of the interpreter.

`python -m tests.support.checks.thread_stress` prints failures, or nothing,
with the hot path that the environment selects.
"""

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from kclient import Consumer, Producer, TopicPartition
from kclient.testing.embedded_cluster import EmbeddedCluster

THREADS = 8
RECORDS = 150
PARTITIONS = 3
PATIENCE = 60.0


@contextmanager
def switching_all_the_time() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Worker(threading.Thread):
    """Sends numbered records by every method, and waits for them in every way."""

    def __init__(self, producer: Producer, name: int) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self.outcomes: list[int] = []
        self._producer = producer
        self._name = name
        self._dice = random.Random(name)

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 (reported after join())
            self.error = error

    def _work(self) -> None:
        number = 0
        while number < RECORDS:
            deed = self._dice.random()
            if deed < 0.02:
                self._producer.flush(PATIENCE)
            elif deed < 0.1:
                values = [self._value(each) for each in range(number, number + 5)]
                if deed < 0.06:
                    self._producer.send_many("t", values, partition=self._name % PARTITIONS)
                else:
                    places = pa.array([self._name % PARTITIONS] * 5)
                    self._producer.send_arrow("t", pa.table({"value": values, "partition": places}))
                number += 5
            else:
                future = self._producer.send(
                    "t",
                    self._value(number),
                    partition=self._name % PARTITIONS,
                    on_delivery=partial(self._note, number),
                )
                number += 1
                if deed > 0.98:
                    future.result(PATIENCE)

    def _note(self, number: int, metadata: object, error: object) -> None:
        self.outcomes.append(number)

    def _value(self, number: int) -> bytes:
        return b"%d:%06d" % (self._name, number) + bytes(self._dice.randrange(200))


def stored(bootstrap_servers: str) -> dict[bytes, list[int]]:
    """Return each thread's numbers in the order of the log."""
    partitions = [TopicPartition("t", each) for each in range(PARTITIONS)]
    found: dict[bytes, list[int]] = {}
    with Consumer(bootstrap_servers=bootstrap_servers) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(1.0):
                name, _, rest = (record.value or b"").partition(b":")
                found.setdefault(name, []).append(int(rest[:6]))
    return found


def stress() -> list[str]:
    """Return the failures."""
    with EmbeddedCluster(config={"num.partitions": PARTITIONS}) as cluster:
        servers = cluster.bootstrap_servers
        producer = Producer(
            bootstrap_servers=servers, batch_size=1_000, buffer_memory=8_000, linger_ms=1
        )
        with switching_all_the_time():
            workers = [Worker(producer, name) for name in range(THREADS)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(PATIENCE)
            wrong = [f"{worker.name} does not end" for worker in workers if worker.is_alive()]
            wrong += [repr(worker.error) for worker in workers if worker.error is not None]
            producer.close(PATIENCE)
        for worker in workers:
            if worker.outcomes != sorted(set(worker.outcomes)):
                wrong.append(
                    f"{worker.name}: callbacks out of order or repeated: {worker.outcomes}"
                )
        if producer.metrics()["buffer-available-bytes"] != 8_000:
            wrong.append("memory was lost")
        for name, numbers in stored(servers).items():
            at_least = list(range(RECORDS))
            if numbers[:RECORDS] != at_least or numbers != list(range(len(numbers))):
                wrong.append(f"thread {name!r}: {numbers}")
        return wrong


if __name__ == "__main__":
    sys.stdout.write("\n".join(stress()))
