"""The same seed gives the same trace in each interpreter and with each hash seed."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from kclient import Consumer, Producer
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

ROOT = Path(__file__).parents[3]
TOPICS = ["east", "west", "north", "south"]
COUNT = 40
CONFIG = {"bootstrap.servers": "broker:9092"}


def produce(process: VirtualProcess) -> None:
    with Producer(CONFIG, runtime=process.runtime) as producer:
        for number in range(COUNT):
            producer.send(TOPICS[number % len(TOPICS)], b"%d" % number)
            process.sleep(0.01)


def consume(process: VirtualProcess, taken: list[object]) -> None:
    settings = {**CONFIG, "group.id": "g", "auto.offset.reset": "earliest"}
    with Consumer(settings, runtime=process.runtime) as consumer:
        consumer.subscribe(TOPICS)
        while len(taken) < COUNT:
            taken += [record.value for record in consumer.poll(1.0)]


def eventful_run(seed: int) -> str:
    """A broker that crashes, two consumers that share, a line that breaks; returns the hash."""
    taken: list[object] = []
    with VirtualWorld(seed) as world:
        broker = VirtualBroker(world)
        sender = world.machine("sender").process("sender")
        readers = [world.machine(name).process(name) for name in ("one", "two")]
        tasks = [sender.spawn("send", lambda: produce(sender))]
        tasks += [reader.spawn("read", partial(consume, reader, taken)) for reader in readers]
        world.run(timeout_ms=200)
        broker.kill()
        world.run(timeout_ms=100)
        broker.start()
        world.net.cut("sender", "broker")
        world.run(until=lambda: all(task.over for task in tasks))
        assert len(taken) >= COUNT
        return world.trace.digest()


def test_same_seed_gives_same_trace() -> None:
    first = eventful_run(7)
    assert eventful_run(7) == first
    assert eventful_run(8) != first


def test_hash_seed_does_not_change_the_trace() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.testing.virtual.test_same_seed_same_trace"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},  # this interpreter's own is another
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert made.stdout.strip() == eventful_run(7)


if __name__ == "__main__":
    sys.stdout.write(eventful_run(7) + "\n")
