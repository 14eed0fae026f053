"""Cost of a record by the number of partitions and of brokers.

Run by hand: ``make bench-scale BENCH_ARGS="--partitions 1 100 10000 --nodes 1 10"``.
The brokers are those of `integration.benchmarks.scale_nodes`. Batches have the same size in every
case: the producer fills the partitions in turn, a hundred records each, with a batch to follow in
the same partition only after all others; each fetch response has fifty such batches of successive
partitions. So the work for a record and for a batch is the same, and the cost grows only with what
a client does for partitions and nodes that have nothing to do. CPU time of all threads of the
client's process; cases take turns, medians and ranges of rounds.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from integration.benchmarks.scale_nodes import RECORDS_PER_BATCH, TOPIC, VALUE_BYTES
from integration.benchmarks.spread import Spread
from kclient import Consumer, Producer, TopicPartition
from tests.support.checks.waiting import HarnessError

_PROJECT = Path(__file__).parents[2]
_DEADLINE = 60.0
_WINDOW = 50
_VALUES = [b"v" * VALUE_BYTES] * RECORDS_PER_BATCH
_HEAD = f"{'':<9} {'partitions':>10} {'nodes':>5} {'CPU µs/record':>14} {'range':>14} {'ratio':>6}"


class Case(NamedTuple):
    """A number of partitions and of nodes."""

    partitions: int
    nodes: int


@contextmanager
def nodes_of(case: Case, records_per_batch: int = RECORDS_PER_BATCH) -> Iterator[str]:
    """Start the nodes, and yield the address of one."""
    command = [sys.executable, "-m", "integration.benchmarks.scale_nodes"]
    command += [str(case.nodes), str(case.partitions), str(records_per_batch)]
    with subprocess.Popen(
        command, cwd=_PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            if not port:
                msg = "the nodes did not start"
                raise HarnessError(msg)
            yield f"127.0.0.1:{port}"
        finally:
            process.stdin.close()


class Producing:
    """A producer that fills the partitions in turn."""

    def __init__(self, bootstrap: str, case: Case) -> None:
        self._case = case
        self._next = 0
        self._producer = Producer(bootstrap_servers=bootstrap, linger_ms=5)
        self.move(max(case.partitions, 50) * RECORDS_PER_BATCH)  # connects to all nodes

    def move(self, records: int) -> int:
        """Produce at least so many records; return how many were acknowledged."""
        acknowledged = 0
        while acknowledged < records:
            acknowledged += self._window()
        return acknowledged

    def _window(self) -> int:
        """Produce batches that fit into the cache of a CPU core, and await them."""
        sent = []
        for _ in range(_WINDOW):
            partition = self._next % self._case.partitions
            sent.append(self._producer.send_many(TOPIC, _VALUES, partition=partition))
            self._next += 1
        return sum(delivery.result(_DEADLINE) for delivery in sent)

    def close(self) -> None:
        self._producer.close()


class Consuming:
    """A consumer that is assigned to all partitions."""

    def __init__(self, bootstrap: str, case: Case) -> None:
        self._consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        partitions = [TopicPartition(TOPIC, number) for number in range(case.partitions)]
        self._consumer.assign(partitions)
        for partition in partitions:
            self._consumer.seek(partition, 0)
        self.move(50 * RECORDS_PER_BATCH * case.nodes)

    def move(self, records: int) -> int:
        """Read at least so many records; return how many there were."""
        until = time.monotonic() + _DEADLINE
        seen = 0
        while seen < records:
            seen += len(self._consumer.poll(1.0))
            if time.monotonic() > until:
                msg = f"got {seen} records in {_DEADLINE:.0f} s, expected {records}"
                raise HarnessError(msg)
        return seen

    def close(self) -> None:
        self._consumer.close()


CLIENTS: dict[str, Callable[[str, Case], Producing | Consuming]] = {
    "produce": Producing,
    "consume": Consuming,
}


def microseconds(client: Producing | Consuming, records: int) -> float:
    """Return the CPU microseconds of a record."""
    began = time.process_time()
    moved = client.move(records)
    return (time.process_time() - began) / moved * 1e6


def measure(
    client: Callable[[str, Case], Producing | Consuming], case: Case, records: int
) -> float:
    """Return the CPU microseconds of a record, in this process, with nodes of its own."""
    with nodes_of(case) as bootstrap:
        running = client(bootstrap, case)
        try:
            return microseconds(running, records)
        finally:
            running.close()


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.scale",
        description="Measures the CPU time of a record by the number of partitions and brokers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 100, 1000, 10_000])
    parser.add_argument("--nodes", nargs="+", type=int, default=[1, 10, 100])
    parser.add_argument("--records", type=int, default=1_000_000, help="of a case and round")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(given)
    cases = [
        Case(partitions, nodes)
        for nodes in chosen.nodes
        for partitions in chosen.partitions
        if partitions >= nodes
    ]
    print(_HEAD)
    for name in chosen.clients:
        costs: dict[Case, list[float]] = {case: [] for case in cases}
        for _ in range(chosen.rounds):
            for case in cases:
                costs[case].append(measure(CLIENTS[name], case, chosen.records))
        for case in cases:
            cost = Spread.of(costs[case])
            ratio = Spread.of(a / b for a, b in zip(costs[case], costs[cases[0]], strict=True))
            print(
                f"{name:<9} {case.partitions:>10,} {case.nodes:>5} {cost.median:>14.3f}"
                f" {cost.range_text('.3f'):>14} {ratio.median:>6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(f"\n{error}")
