"""Tasks that share one producer while its broker fails, and tasks that read its records.

With any interleaving of their statements, each record arrives once, in the order of the task that
sent it, and is reported once.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from random import Random

from kclient import Consumer, Producer, RecordMetadata, TopicPartition
from kclient.common.errors import KafkaError
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld
from tests.interleaving.preemption import Preemption

TOPIC = "t"
PARTITIONS = 3
SENDERS = 4
RECORDS = 50
_SEND_MS = 300_000.0
_READ_MS = 60_000.0


@dataclass
class Shared:
    """State shared by the tasks."""

    producer: Producer
    process: VirtualProcess
    reported: dict[bytes, RecordMetadata | KafkaError | None] = field(default_factory=dict)

    def report(
        self, value: bytes, metadata: RecordMetadata | None, error: KafkaError | None
    ) -> None:
        assert value not in self.reported, f"{value!r} is reported twice"
        self.reported[value] = error or metadata


def play(seed: int, preemption: Preemption | None = None) -> None:
    """Play one seed.

    Raises:
        AssertionError: An invariant was violated.
        SimulationError: The seed did not end.
    """
    with VirtualWorld(seed, switch_probability=0.2) as world:
        if preemption is not None:
            preemption.begin(world.random("preemption").random, world.scheduler.preempt)
        try:
            _play(world)
        finally:
            if preemption is not None:
                preemption.end()


def _play(world: VirtualWorld) -> None:
    lot = world.random("scenario")
    broker = VirtualBroker(world, {"num.partitions": PARTITIONS})
    process = world.machine("app").process("app")
    config = {"bootstrap.servers": broker.bootstrap_servers, **_config(lot)}
    shared = Shared(Producer(config, runtime=process.runtime), process)
    tasks = [
        process.spawn(f"sender {number}", partial(_send, shared, number, world.random(f"{number}")))
        for number in range(SENDERS)
    ]
    world.run(timeout_ms=lot.uniform(0, 100))
    for _ in range(lot.randint(0, 2)):
        _disrupt(world, broker, lot)
    world.run(until=lambda: all(task.over for task in tasks), timeout_ms=_SEND_MS)
    closing = process.spawn("close", shared.producer.close)
    world.run(until=lambda: closing.over, timeout_ms=_SEND_MS)
    reader = world.machine("reader").process("reader")
    reading = reader.spawn("read", partial(_read, reader, broker.bootstrap_servers))
    world.run(until=lambda: reading.over, timeout_ms=_READ_MS)
    _check(shared, reading.result)


def _config(lot: Random) -> dict[str, object]:
    return {
        "batch.size": lot.choice([200, 1000]),
        "linger.ms": lot.choice([0, 1, 10]),
        "buffer.memory": lot.choice([4000, 33_554_432]),
        "compression.type": lot.choice(["none", "gzip", "lz4"]),
    }


def _send(shared: Shared, number: int, lot: Random) -> None:
    producer, futures = shared.producer, []
    for index in range(RECORDS):
        value = b"%d:%d" % (number, index)
        futures.append(
            producer.send(
                TOPIC,
                value,
                partition=number % PARTITIONS,
                on_delivery=partial(shared.report, value),
            )
        )
        what = lot.random()
        if what < 0.1:
            futures[-1].result(60)
        elif what < 0.2:
            producer.flush(60)
        elif what < 0.3:
            shared.process.sleep(lot.uniform(0, 0.02))
    offsets = [future.result(120).offset for future in futures]
    assert offsets == sorted(offsets), f"sender {number} was reordered: {offsets}"


def _disrupt(world: VirtualWorld, broker: VirtualBroker, lot: Random) -> None:
    what = lot.choice(["kill", "cut", "partition"])
    if what == "kill":
        broker.kill()
        world.run(timeout_ms=lot.uniform(0, 500))
        broker.start()
    elif what == "cut":
        world.net.cut("app", "broker", reset=lot.random() < 0.5)
    else:
        world.net.partition("app", "broker")
        world.run(timeout_ms=lot.uniform(0, 3000))
        world.net.heal()
    world.run(timeout_ms=lot.uniform(0, 100))


def _read(process: VirtualProcess, servers: str) -> dict[int, list[bytes]]:
    taken: defaultdict[int, list[bytes]] = defaultdict(list)
    config = {"bootstrap.servers": servers, "auto.offset.reset": "earliest"}
    with Consumer(config, runtime=process.runtime) as consumer:
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(1.0):
                taken[record.partition].append(record.value or b"")
    return dict(taken)


def _check(shared: Shared, taken: object) -> None:
    assert isinstance(taken, dict)
    for number in range(SENDERS):
        mark = b"%d:" % number
        mine = [value for value in taken[number % PARTITIONS] if value.startswith(mark)]
        assert mine == [mark + b"%d" % index for index in range(RECORDS)]
    failed = [each for each in shared.reported.values() if not isinstance(each, RecordMetadata)]
    assert failed == []
    assert len(shared.reported) == SENDERS * RECORDS
