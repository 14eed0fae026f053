"""Three nodes on machines of their own, each broker and controller."""

from collections.abc import Mapping
from random import Random

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.replication.partition import Partition
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.testing.virtual import VirtualProcess, VirtualWorld

IDS = (1, 2, 3)
PORT, CONTROLLER_PORT = 9092, 9093
SERVERS = ",".join(f"node-{number}:{PORT}" for number in IDS)
SESSION_MS = 2_000
FETCH_TIMEOUT_MS = 1_000
LAG_MS = 3_000

_RETRY_MS = 300.0


def settings(node_id: int, more: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a node."""
    name = f"node-{node_id}"
    return {
        "node.id": node_id,
        "log.dir": "/data",
        "cluster.id": "three",
        "listeners": f"PLAINTEXT://{name}:{PORT},CONTROLLER://{name}:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{each}@node-{each}:{CONTROLLER_PORT}" for each in IDS
        ),
        "allow.unauthenticated.listeners": True,
        "auto.create.topics.enable": False,
        "default.replication.factor": 3,
        "offsets.topic.replication.factor": 3,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.num.partitions": 1,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        "min.insync.replicas": 2,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
        "controller.quorum.election.timeout.ms": 300,
        "controller.quorum.fetch.timeout.ms": FETCH_TIMEOUT_MS,
        "controller.quorum.request.timeout.ms": 1_000,
        "controller.quorum.append.linger.ms": 2,
        "metadata.max.idle.interval.ms": 0,
        "broker.heartbeat.interval.ms": 300,
        "broker.session.timeout.ms": SESSION_MS,
        "replica.fetch.wait.max.ms": 100,
        "replica.socket.timeout.ms": 2_000,
        "controller.socket.timeout.ms": 5_000,
        "replica.lag.time.max.ms": LAG_MS,
        "replica.high.watermark.checkpoint.interval.ms": 700,
        "log.index.size.max.bytes": 240,
        **more,
    }


class ClusterNode:
    """A node: its machine, and the broker of its present process.

    Attributes:
        id: Node id.
        machine: Its machine, whose disk is kept.
        server: The broker of the present life, or None.
        life: Number of its starts.
        failures: Starts and lives that ended by an error.
        lost_disk: Number of times that it has lost unflushed data.
        lost_epoch: Broker epoch of the life that ended so last.
        may_have_lost: Whether the cluster does not know yet that it has lost data.
        ended_cleanly: Whether the last life ended by an orderly stop.
        is_paused: Whether its process is suspended.
    """

    def __init__(self, world: VirtualWorld, node_id: int, more: Mapping[str, object]) -> None:
        self.id = node_id
        self.machine = world.machine(f"node-{node_id}")
        self.server: BrokerServer | None = None
        self.life = 0
        self.failures: list[str] = []
        self.lost_disk = 0
        self.lost_epoch = -1
        self.may_have_lost = False
        self.ended_cleanly = False
        self.is_paused = False
        self._world = world
        self._config = BROKER_CONFIG.parse(settings(node_id, more))
        self._process: VirtualProcess | None = None
        self._wanted = True

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, paused or not."""
        return self._process is not None and self._process.alive

    @property
    def runtime_files(self) -> object:
        """Files of its present process."""
        return None if self._process is None else self._process.runtime.files

    @property
    def running(self) -> BrokerServer | None:
        """The broker, once it has opened its data in this life."""
        server = self.server
        return server if self.is_alive and server is not None and server.is_running else None

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has published."""
        server = self.running
        return MetadataImage() if server is None else server.services.metadata.image

    @property
    def broker_epoch(self) -> int:
        """Epoch of its registration in this life, -1 before."""
        server = self.running
        return -1 if server is None else server._broker_epoch

    @property
    def is_active(self) -> bool:
        """Whether the broker serves, and the cluster knows it."""
        known = self.image.broker(self.id)
        return known is not None and known.is_active and not self.is_paused

    def partition(self, where: TopicPartition) -> Partition | None:
        """Return the replica of a partition, or None."""
        server = self.running
        if server is None:
            return None
        return server.services.replica_manager.hosted.table.get(where)

    def start(self) -> None:
        """Start it in a new process; a start that fails is repeated."""
        self._wanted = True
        if self.is_alive:
            return  # it starts again when it has stopped
        self.is_paused = False
        self.life += 1
        process = self._process = self.machine.process(f"node-{self.id}.{self.life}")
        self.server = server = BrokerServer(self._config, process.runtime)
        process.spawn("main", lambda: self._serve(server, process))

    def kill(self) -> None:
        """Kill it, as kill -9 does: bytes written to the system are kept."""
        self._wanted = False
        if self._process is not None and self.is_alive:
            self.ended_cleanly = False
            self._process.kill()

    def power_cut(self, broker_epoch: int) -> None:
        """Cut its power: bytes that were not flushed are lost, or torn.

        Args:
            broker_epoch: Its epoch in the committed metadata.
        """
        self._wanted = self.ended_cleanly = False
        self.lost_disk += 1
        self.lost_epoch, self.may_have_lost = broker_epoch, True
        self.machine.power_cut()

    def note_committed(self, image: MetadataImage) -> None:
        """Note the committed metadata: a new registration follows the loss of data."""
        broker = image.broker(self.id)
        epoch = -1 if broker is None else broker.epoch
        if self.may_have_lost and epoch != self.lost_epoch:
            self.may_have_lost = False

    def stop(self) -> None:
        """Stop it in an orderly way."""
        process, server = self._process, self.server
        if process is None or server is None or not self.is_alive or self.is_paused:
            return
        self._wanted = False

        def end() -> None:
            server.stop()
            self.ended_cleanly = True
            self._world.clock.after(1.0, self._try_again)
            process.kill()

        process.spawn("stop", end)

    def pause(self) -> None:
        """Suspend its process."""
        if self._process is not None and self.is_alive and not self.is_paused:
            self.is_paused = True
            self._process.pause()

    def resume(self) -> None:
        """Continue its process."""
        if self._process is not None and self.is_alive and self.is_paused:
            self.is_paused = False
            self._process.resume()

    def _serve(self, server: BrokerServer, process: VirtualProcess) -> None:
        try:
            server.start()
            while not server.await_running(1_000.0):
                pass
            while server.failure is None:
                process.sleep(1.0)
            raise server.failure
        except (KafkaError, OSError) as error:
            self.failures.append(f"life {self.life}: {type(error).__name__}: {error}")
        self._world.clock.after(_RETRY_MS, self._try_again)
        self.ended_cleanly = False
        process.kill()

    def _try_again(self) -> None:
        if self._wanted and not self.is_alive:
            self.start()


class Nodes:
    """All nodes of a world."""

    def __init__(self, world: VirtualWorld, lot: Random) -> None:
        more = {
            "log.flush.interval.messages": lot.choice((1, 2**63 - 1, 2**63 - 1)),
            "log.segment.bytes": 1 << 20,
            "num.replica.fetchers": lot.choice((1, 2)),
            "replica.fetch.max.bytes": lot.choice((200, 5_000, 1 << 20)),
        }
        self.all = {each: ClusterNode(world, each, more) for each in IDS}

    def start(self) -> None:
        """Start all nodes."""
        for node in self.all.values():
            node.start()

    def running(self) -> list[ClusterNode]:
        """Return the nodes with a broker."""
        return [node for node in self.all.values() if node.running is not None]

    def newest_image(self) -> MetadataImage:
        """Return the newest metadata that any broker has published."""
        return max((node.image for node in self.all.values()), key=lambda image: image.offset)

    def are_active(self) -> bool:
        """Return whether every broker serves in its present life, and all of them know it."""
        epochs = {(each, node.broker_epoch) for each, node in self.all.items()}
        return all(
            node.running is not None
            and not node.is_paused
            and epochs == {(each.id, each.epoch) for each in node.image.live_brokers()}
            for node in self.all.values()
        )
