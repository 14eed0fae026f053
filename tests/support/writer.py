"""A producer as a program, which writes numbered records until its input ends.

It says each second, a line of JSON each, how far it is; and at the end what became of everything:
see tests.support.writer_process.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from typing import Any

from kclient import Producer, RecordMetadata
from kclient.common.errors import KafkaError
from tests.support.audit import seal
from tests.support.load import value_of

_TICK_S = 0.02
_TELL_S = 1.0
_AHEAD = 5_000  # records that wait for a broker that is away; bounds the memory
_FLUSH_S = 120.0


class Writer:
    """Sends ``<name>-key-0:0, <name>-key-1:0, …`` at a steady rate."""

    def __init__(self, producer: Producer, topic: str, name: str, rate: int) -> None:
        self._producer = producer
        self._topic = topic
        self._name = name
        self._rate = rate
        self._sent = self._acknowledged = 0
        self._failures: list[str] = []
        self._seals: Counter[int] = Counter()
        self._last = time.monotonic()
        self._pause = 0.0

    def run(self) -> None:
        """Write until the standard input ends, and tell of it."""
        os.set_blocking(0, False)
        tick = threading.Event()
        due, told = 0.0, time.monotonic()
        while not _input_ended():
            tick.wait(_TICK_S)
            due = min(due + self._rate * _TICK_S, self._rate)
            while due >= 1 and self._sent - self._settled() < _AHEAD:
                self._send(self._sent)
                self._sent += 1
                due -= 1
            if time.monotonic() > told + _TELL_S:
                told = time.monotonic()
                self._tell(done=False)
        self._producer.flush(_FLUSH_S)
        self._tell(done=True)

    def _settled(self) -> int:
        return self._acknowledged + len(self._failures)

    def _send(self, number: int) -> None:
        value = value_of(number, f"{self._name}-".encode())

        def delivered(at: RecordMetadata | None, error: KafkaError | None) -> None:
            if at is None:
                self._failures.append(f"{value!r}: {error!r}")
                return
            now = time.monotonic()
            self._pause, self._last = max(self._pause, now - self._last), now
            self._acknowledged += 1
            self._seals[at.partition] += seal(at.partition, at.offset, value)

        self._producer.send(self._topic, value, value.partition(b":")[0], on_delivery=delivered)

    def _tell(self, *, done: bool) -> None:
        """Tell the state, and the longest time without an acknowledgement since the last time."""
        state: dict[str, Any] = {
            "sent": self._sent,
            "acknowledged": self._acknowledged,
            "failures": len(self._failures),
            "first_failures": self._failures[:5],
            "pause": round(self._pause, 3),
            "done": done,
        }
        if done:
            state["seals"] = dict(self._seals)
        self._pause = 0.0
        sys.stdout.write(json.dumps(state) + "\n")
        sys.stdout.flush()


def _input_ended() -> bool:
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


def main() -> None:
    """Run the writer that the command line describes."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rate", type=int, required=True)
    given = parser.parse_args()
    producer = Producer(
        bootstrap_servers=given.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        batch_size=2_000,  # small ones: more of them are on their way when a broker goes
        delivery_timeout_ms=600_000,
    )
    with producer:
        Writer(producer, given.topic, given.name, given.rate).run()


if __name__ == "__main__":
    main()
