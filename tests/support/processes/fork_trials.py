"""A program that forks while other threads hold every lock of its producer.

`python -m tests.support.processes.fork_trials BOOTSTRAP TOPIC` prints, as JSON lines, the result of
each call in the child, and the outcomes of the records in the parent.
"""

import faulthandler
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from kclient import Producer
from kclient.common.errors import ForkedClientError
from kclient.producer import BatchDelivery, DeliveryFuture

PATIENCE = 80.0
"""Seconds after which a call is taken for blocked.

The complete exit of the child takes 0.7 s of CPU time, on a loaded machine more than 20 s.
"""


def locks_of(producer: Any, future: Any) -> Iterable[Any]:
    """Return all locks that a thread may hold when the process forks, in lock order."""
    accumulator, client = producer._core._accumulator, producer._core._sender._client
    topics = accumulator.topics()
    yield from (queue.lock for info in topics for queue in info.queues)
    yield from (info._lock for info in topics)
    yield from (accumulator._lock, accumulator.drainer._lock)
    yield from (accumulator.incomplete._lock, accumulator.pool._lock)
    yield producer._core._sender._metadata._condition._lock
    yield future._result._lock
    metrics = producer._core._sender._metrics
    registry = metrics.registry
    yield from (metrics._lock, registry._lock, *(sensor._lock for sensor in registry._sensors))
    yield producer._core._task._state._lock
    yield client._selector._poller._bell._lock


class Holder(threading.Thread):
    """Holds locks until it is released."""

    def __init__(self, locks: Iterable[Any]) -> None:
        super().__init__(daemon=True)
        self.locks = list(locks)
        self.taken, self.release = threading.Event(), threading.Event()
        self.start()
        if not self.taken.wait(PATIENCE):
            raise TimeoutError("not every lock could be acquired")

    def run(self) -> None:
        with ExitStack() as held:
            for lock in self.locks:
                held.enter_context(lock)
            self.taken.set()
            self.release.wait(PATIENCE)


def calls(
    producer: Producer, topic: str, future: DeliveryFuture, many: BatchDelivery
) -> dict[str, Callable[[], object]]:
    return {
        "send": lambda: producer.send(topic, b"child"),
        "send with care": lambda: producer.send(topic, bytearray(b"child"), headers=[("h", b"")]),
        "send_many": lambda: producer.send_many(topic, [b"child"]),
        "send_arrow": lambda: producer.send_arrow(topic, pa.table({"value": [b"child"]})),
        "partitions_for": lambda: producer.partitions_for(topic),
        "flush": producer.flush,
        "metrics": producer.metrics,
        "with": producer.__enter__,
        "result": future.result,
        "exception": future.exception,
        "add_done_callback": lambda: future.add_done_callback(print),
        "result of many": many.result,
    }


def results_in_child(to_try: dict[str, Callable[[], object]]) -> dict[str, str]:
    reported = {}
    for name, call in to_try.items():
        try:
            reported[name] = f"returned {call()!r}"
        except ForkedClientError as error:
            reported[name] = str(error)
    return reported


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(bootstrap_servers: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=bootstrap_servers, client_id="forking", linger_ms=60_000)
    producer.send(topic, b"first")
    producer.flush(PATIENCE)
    future = producer.send(topic, b"pending")
    many = producer.send_many(topic, [b"many"])
    holder = Holder(locks_of(producer, future))
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        say(child=results_in_child(calls(producer, topic, future, many)))
        producer.close()
        return  # the interpreter exits completely: exit handlers, finalizers
    status = os.waitpid(child, 0)[1]
    holder.release.set()
    producer.flush(PATIENCE)
    last = producer.send(topic, b"last")
    producer.close(PATIENCE)
    say(
        parent=[future.result(0).offset, many.result(0), last.result(0).offset],
        pid=os.getpid(),
        child_ended=os.waitstatus_to_exitcode(status),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
