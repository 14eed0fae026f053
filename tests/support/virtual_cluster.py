"""A broker on a machine of its own, for tests in virtual time."""

from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_server import BrokerServer
from kclient.testing.virtual import VirtualProcess, VirtualWorld

SERVERS = "broker:9092"


def start_broker(world: VirtualWorld, **settings: object) -> VirtualProcess:
    """Start the broker, again after it ended, on the machine "broker"; return its process."""
    process = world.machine("broker").process("broker")
    config = BrokerConfig(
        {
            "listeners": SERVERS,
            "allow.unauthenticated.listeners": True,
            "log.dir": "/data",
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.num.partitions": 1,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    started = process.spawn("start", lambda: BrokerServer(config, process.runtime).start())
    world.run(until=lambda: started.over)
    return process
