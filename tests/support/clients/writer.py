"""Program of a producer that writes numbered records until its input ends.

Each second, and at its end, it prints its state as a line of JSON: see
`WriterProcess`. With a journal it continues when records fail, and writes the
outcome of each record, a line each, with the time by the monotonic clock in seconds:

    acked <time> <number> <partition> <offset>
    failed <time> <number> <1 if it may be in the log, else 0> <class of the error>
"""

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from kclient import Producer, RecordMetadata
from kclient.common.errors import KafkaError
from tests.support.checks.audit import seal
from tests.support.clients.load import value_of

_TICK_S = 0.02
_REPORT_S = 1.0
_FLUSH_S = 120.0
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Writing:
    """Records of a writer, and the configuration of its producer.

    Attributes:
        bootstrap: Address of the brokers.
        topic: Topic of the records.
        name: Prefix of the records' keys.
        rate: Records per second.
        acks: As in the producer's configuration.
        idempotence: As in the producer's configuration.
        in_flight: Requests in flight to one broker.
        delivery_ms: ``delivery.timeout.ms``.
        request_ms: ``request.timeout.ms``.
        block_ms: ``max.block.ms``.
        ahead: Number of unacknowledged records at which the writer pauses.
    """

    bootstrap: str
    topic: str
    name: str
    rate: int
    acks: Literal["all", "1"] = "all"
    idempotence: bool = True
    in_flight: int = 5
    delivery_ms: int = 600_000
    request_ms: int = 30_000
    block_ms: int = 60_000
    ahead: int = 5_000

    def arguments(self) -> list[str]:
        """Return the arguments that `parsed` reads."""
        given = [f"--{name}={getattr(self, name.replace('-', '_'))}" for name in _TEXTS + _NUMBERS]
        return given if self.idempotence else [*given, "--plain"]

    def producer(self) -> Producer:
        """Return a producer with this configuration."""
        acks: Any = self.acks
        return Producer(
            bootstrap_servers=self.bootstrap,
            acks=acks,
            enable_idempotence=self.idempotence,
            max_in_flight_requests_per_connection=self.in_flight,
            linger_ms=5,
            batch_size=2_000,  # small, so that several are in flight when a broker ends
            delivery_timeout_ms=self.delivery_ms,
            request_timeout_ms=self.request_ms,
            max_block_ms=self.block_ms,
        )


_TEXTS = ["bootstrap", "topic", "name", "acks"]
_NUMBERS = ["rate", "in-flight", "delivery-ms", "request-ms", "block-ms", "ahead"]


def parsed(arguments: argparse.Namespace) -> Writing:
    """Return the writing that the command line describes."""
    names = [name.replace("-", "_") for name in _TEXTS + _NUMBERS]
    given = {name: getattr(arguments, name) for name in names}
    return Writing(idempotence=not arguments.plain, **given)


class Writer:
    """Sends ``<name>-key-0:0, <name>-key-1:0, …`` at a steady rate."""

    def __init__(self, producer: Producer, writing: Writing, journal: BinaryIO | None) -> None:
        self._producer = producer
        self._writing = writing
        self._journal = journal
        self._sent = self._acknowledged = self._failed = 0
        self._first_failures: list[str] = []
        self._seals: Counter[int] = Counter()
        self._last = time.monotonic()
        self._pause = 0.0

    def run(self) -> None:
        """Write until the standard input ends, and report the state."""
        os.set_blocking(0, False)
        tick = threading.Event()
        due, reported, rate = 0.0, time.monotonic(), self._writing.rate
        while not _input_ended():
            tick.wait(_TICK_S)
            due = min(due + rate * _TICK_S, rate)
            while due >= 1 and self._sent - self._settled() < self._writing.ahead:
                self._send(self._sent)
                self._sent += 1
                due -= 1
            if time.monotonic() > reported + _REPORT_S:
                reported = time.monotonic()
                self._report(done=False)
        self._producer.flush(_FLUSH_S)
        self._report(done=True)

    def _settled(self) -> int:
        return self._acknowledged + self._failed

    def _send(self, number: int) -> None:
        value = value_of(number, f"{self._writing.name}-".encode())

        def delivered(at: RecordMetadata | None, error: KafkaError | None) -> None:
            if at is not None:
                self._note_acknowledged(number, at, value)
            elif error is not None:
                self._note_failed(number, error)

        key = value.partition(b":")[0]
        try:
            self._producer.send(self._writing.topic, value, key, on_delivery=delivered)
        except KafkaError as error:
            if self._journal is None:
                raise
            self._note_failed(number, error)

    def _note_acknowledged(self, number: int, at: RecordMetadata, value: bytes) -> None:
        now = time.monotonic()
        self._pause, self._last = max(self._pause, now - self._last), now
        self._acknowledged += 1
        self._seals[at.partition] += seal(at.partition, at.offset, value)
        if self._journal is not None:
            self._journal.write(b"acked %.3f %d %d %d\n" % (now, number, at.partition, at.offset))

    def _note_failed(self, number: int, error: KafkaError) -> None:
        self._failed += 1
        if len(self._first_failures) < _SHOWN:
            self._first_failures.append(f"record {number}: {error!r}")
        if self._journal is not None:
            kind = type(error).__name__.encode()
            outcome = (time.monotonic(), number, error.possibly_written, kind)
            self._journal.write(b"failed %.3f %d %d %s\n" % outcome)

    def _report(self, *, done: bool) -> None:
        """Print the state, with the longest time without an acknowledgement since the last one."""
        state: dict[str, Any] = {
            "sent": self._sent,
            "acknowledged": self._acknowledged,
            "failures": self._failed,
            "first_failures": self._first_failures,
            "pause": round(self._pause, 3),
            "done": done,
        }
        if done:
            state["seals"] = dict(self._seals)
        self._pause = 0.0
        if self._journal is not None:
            self._journal.flush()
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
    for name in _TEXTS:
        parser.add_argument(f"--{name}", required=True)
    for name in _NUMBERS:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--plain", action="store_true", help="without idempotence")
    parser.add_argument("--journal", type=Path)
    given = parser.parse_args()
    writing = parsed(given)
    with ExitStack() as ending:
        journal = ending.enter_context(given.journal.open("wb")) if given.journal else None
        producer = ending.enter_context(writing.producer())
        Writer(producer, writing, journal).run()


if __name__ == "__main__":
    main()
