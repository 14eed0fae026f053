"""Real producers, consumers and a broker in one thread, in virtual time."""

from kclient import Consumer, Producer
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


def test_what_is_sent_is_read() -> None:
    with VirtualWorld(1) as world:
        VirtualBroker(world)
        tasks = [produce(world), consume(world)]
        world.run(until=lambda: all(task.over for task in tasks))
        assert tasks[1].result == [b"%d" % number for number in range(COUNT)]
