"""First moments of a process: import of a client, first record acknowledged, first record read.

Run by hand: ``make bench-start BENCH_ARGS="--rounds 20"``.
Each figure is that of a new process; the clients take turns. CPU time is that of all threads,
without the interpreter's own start.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import target
from integration.harness.discovery import NEWEST
from tests.support.checks.waiting import HarnessError

_PROJECT = Path(__file__).parents[2]
_TIMEOUT = 60.0

# Every program ends with the outcome: a lost record fails the run.
_PROGRAM = """
import sys, time
bootstrap, topic = sys.argv[1:]
began, began_cpu = time.perf_counter(), time.process_time()
{part}
print(time.perf_counter() - began, time.process_time() - began_cpu)
"""

IMPORT, SEND, POLL = "import", "first send", "first poll"
PARTS = {
    ("kclient", IMPORT): "from kclient import Producer",
    ("confluent-kafka", IMPORT): "from confluent_kafka import Producer",
    ("kafka-python", IMPORT): "from kafka import KafkaProducer",
    ("kclient", SEND): """
from kclient import Producer
producer = Producer(bootstrap_servers=bootstrap)
producer.send(topic, b"x" * 100).result(30)
""",
    ("confluent-kafka", SEND): """
from confluent_kafka import Producer
outcomes = []
producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
producer.produce(topic, b"x" * 100, on_delivery=lambda error, _: outcomes.append(error))
while not outcomes: producer.poll(30)
assert outcomes == [None]
""",
    ("kafka-python", SEND): """
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
producer.send(topic, b"x" * 100).get(30)
""",
    ("kclient", POLL): """
from kclient import Consumer, TopicPartition
consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
consumer.assign([TopicPartition(topic, 0)])
while not len(consumer.poll(30)): pass
""",
    ("confluent-kafka", POLL): """
from confluent_kafka import Consumer, OFFSET_BEGINNING, TopicPartition
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
assert consumer.poll(30).value() == b"x" * 100
""",
    ("kafka-python", POLL): """
from kafka import KafkaConsumer, TopicPartition
consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
consumer.assign([TopicPartition(topic, 0)])
while not consumer.poll(30_000): pass
""",
}
"""Program of a part, by client and part."""

CLIENTS = ("kclient", "confluent-kafka", "kafka-python")


class Start(NamedTuple):
    """Milliseconds of wall time and of CPU."""

    wall_ms: float
    cpu_ms: float


def measure(client: str, part: str, bootstrap: str, topic: str) -> Start:
    """Do a part in a new process.

    Raises:
        HarnessError: It failed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(part=PARTS[client, part]), bootstrap, topic],
            check=False,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            cwd=_PROJECT,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{part} of {client}: not done after {_TIMEOUT:.0f} s"
        raise HarnessError(msg) from error
    if done.returncode:
        msg = f"{part} of {client} failed:\n{done.stderr[-2000:]}"
        raise HarnessError(msg)
    wall, cpu = done.stdout.split()
    return Start(1000 * float(wall), 1000 * float(cpu))


def fill(bootstrap: str, topic: str) -> None:
    """Store the record that is read."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x" * 100)
    if producer.flush(_TIMEOUT):
        msg = "the record to read was not stored"
        raise HarnessError(msg)


def line(part: str, client: str, starts: Sequence[Start], peer: Sequence[Start]) -> str:
    """Return a line of the table; ratios to the peer are those of each round."""
    wall = Spread.of(start.wall_ms for start in starts)
    cpu = Spread.of(start.cpu_ms for start in starts)
    ratio = Spread.of(a.cpu_ms / b.cpu_ms for a, b in zip(starts, peer, strict=True))
    return (
        f"{part:<11} {client:<16} {wall.median:>7.1f} {wall.range_text('.1f'):>14}"
        f" {cpu.median:>7.1f} {cpu.range_text('.1f'):>14} {ratio.median:>6.2f}"
        f" {ratio.range_text('.2f'):>12}"
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.start",
        description="Times the first moments of a process with a client.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    chosen = parser.parse_args(given)
    with target(chosen.version) as kafka:
        topic = kafka.create_topic(1)
        fill(kafka.bootstrap, topic)
        print(
            f"{'part':<11} {'client':<16} {'ms':>7} {'range':>14} {'CPU ms':>7} {'range':>14}"
            f" {'ratio':>6} {'range':>12}"
        )
        for part in (IMPORT, SEND, POLL):
            for client in CLIENTS:  # writes the bytecode files, and wakes the broker
                measure(client, part, kafka.bootstrap, topic)
            starts: dict[str, list[Start]] = {client: [] for client in CLIENTS}
            for _ in range(chosen.rounds):
                for client in CLIENTS:
                    starts[client].append(measure(client, part, kafka.bootstrap, topic))
            for client in CLIENTS:
                print(line(part, client, starts[client], starts["confluent-kafka"]), flush=True)


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(f"\n{error}")
