"""Real producers, consumers and a broker in one thread, in virtual time."""

import pytest

from kclient import Consumer, Producer
from kclient.common.errors import KafkaError
from kclient.testing import ApiKey
from kclient.testing.virtual import VirtualBroker, VirtualTask, VirtualWorld

COUNT = 50


SERVERS = "broker:9092"


def produce(world: VirtualWorld, count: int = COUNT) -> VirtualTask:
    process = world.machine("sender").process("producer")

    def send() -> None:
        with Producer({"bootstrap.servers": SERVERS}, runtime=process.runtime) as producer:
            for number in range(count):
                producer.send("t", b"%d" % number, partition=0)

    return process.spawn("send", send)


def consume(world: VirtualWorld, count: int = COUNT) -> VirtualTask:
    process = world.machine("reader").process("consumer")
    config = {"bootstrap.servers": SERVERS, "group.id": "g", "auto.offset.reset": "earliest"}

    def read() -> list[bytes | None]:
        taken: list[bytes | None] = []
        with Consumer(config, runtime=process.runtime) as consumer:
            consumer.subscribe(["t"])
            while len(taken) < count:
                taken += [record.value for record in consumer.poll(1.0)]
        return taken

    return process.spawn("read", read)


def test_sent_records_are_read() -> None:
    with VirtualWorld(1) as world:
        VirtualBroker(world)
        tasks = [produce(world), consume(world)]
        world.run(until=lambda: all(task.over for task in tasks))
        assert tasks[1].result == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("end", ["stop", "kill", "power_cut"])
def test_restarted_broker_keeps_its_records(end: str) -> None:
    with VirtualWorld(1) as world:
        # Flushed at each record, so that even a power cut leaves it.
        broker = VirtualBroker(world, {"log.flush.interval.messages": 1})
        sending = produce(world, 10)
        world.run(until=lambda: sending.over)
        {"stop": broker.stop, "kill": broker.kill, "power_cut": broker.power_cut}[end]()
        assert not broker.process.alive
        broker.start()
        sending, reading = produce(world, 10), consume(world, 20)
        world.run(until=lambda: sending.over and reading.over)
        assert reading.result == [b"%d" % number for number in range(10)] * 2


def test_broker_fails_on_request() -> None:
    with VirtualWorld(1) as world:
        broker = VirtualBroker(world)
        lost = broker.faults.drop_response(ApiKey.PRODUCE)
        tasks = [produce(world), consume(world)]
        world.run(until=lambda: all(task.over for task in tasks))
        assert lost.hits == 1
        assert tasks[1].result == [b"%d" % number for number in range(COUNT)]


def test_second_broker_on_the_same_machine_is_refused() -> None:
    with VirtualWorld(1) as world:
        VirtualBroker(world)
        with pytest.raises(KafkaError, match="/data"):
            VirtualBroker(world)
    with VirtualWorld(1) as world:
        world.machine("broker").process("other").runtime.net.listen(("0.0.0.0", 9092), 1)  # noqa: S104 (in memory)
        with pytest.raises(KafkaError, match="in use"):
            VirtualBroker(world)
