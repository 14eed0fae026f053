"""Clients and brokers killed during calls cause no warning and keep no resources."""

import contextlib
import gc
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.common.errors import KafkaError
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

SERVERS = {"bootstrap.servers": "broker:9092"}


def produce(process: VirtualProcess) -> None:
    with Producer({**SERVERS, "linger.ms": 10}, runtime=process.runtime) as producer:
        while True:
            producer.send("t", bytes(100))
            process.sleep(0.001)


def consume(process: VirtualProcess) -> None:
    config = {**SERVERS, "group.id": "g"}
    with Consumer(config, runtime=process.runtime) as consumer:
        consumer.subscribe(["t"])
        while True:
            with contextlib.suppress(KafkaError):
                consumer.poll(0.1)


def administer(process: VirtualProcess) -> None:
    with AdminClient(SERVERS, runtime=process.runtime) as admin:
        for number in range(1_000_000):
            try:
                admin.create_topics([NewTopic(f"topic-{number}", 1)]).raise_for_errors()
            except KafkaError:
                process.sleep(0.1)


WORK: list[Callable[[VirtualProcess], None]] = [produce, consume, administer]


@pytest.mark.parametrize("seed", range(6))
def test_killed_clients_cause_no_warning_or_unraisable_error(
    seed: int, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with VirtualWorld(seed) as world:
        broker = VirtualBroker(world)
        processes = [world.machine(work.__name__).process(work.__name__) for work in WORK]
        for work, process in zip(WORK, processes, strict=True):
            process.spawn("main", partial(work, process))
        chance = world.random("when")
        for victim in chance.sample([*processes, broker.process], 3):
            world.run(timeout_ms=chance.uniform(0, 300))
            victim.kill()
        gc.collect()  # while others live on
        world.run(timeout_ms=1000)
        left = [end for process in processes if not process.alive for end in process.net.sockets()]
        assert left == []
    gc.collect()
    assert complaints == []
    assert [str(warning.message) for warning in recwarn] == []


def test_killed_task_that_catches_all_errors_ends() -> None:
    turns = SimpleNamespace(count=0)

    def stubborn(process: VirtualProcess) -> None:
        with Producer(SERVERS, runtime=process.runtime) as producer:
            while True:
                turns.count += 1
                with contextlib.suppress(Exception):  # as applications do
                    producer.send("t", b"x").result(0.1)

    with VirtualWorld(1) as world:
        process = world.machine("m").process("p")
        process.spawn("main", partial(stubborn, process))
        world.run(timeout_ms=1000)
        process.kill()
        before = turns.count
    assert turns.count == before > 0
