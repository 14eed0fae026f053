"""Faults of a simulated cluster, drawn from the seed of a run."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.testing.virtual import VirtualWorld
from tests.cluster_simulation.nodes import IDS, ClusterNode, Nodes

_FAULTS: dict[str, int] = {
    "kill": 6,
    "kill leader": 4,
    "kill controller": 4,
    "power cut": 6,
    "stop": 3,
    "pause": 4,
    "part": 5,
    "one-way part": 3,
    "slow link": 2,
    "kill all": 1,
    "clock jump": 1,
}
"""Kinds of faults with their weights."""


class Nemesis:
    """Injects faults until `stop`.

    Attributes:
        done: Number of faults by kind.
    """

    def __init__(self, world: VirtualWorld, nodes: Nodes, lot: Random) -> None:
        self._world = world
        self._nodes = nodes
        self._lot = lot
        self._stopping = False
        self._parts = 0
        self._mean_ms = lot.choice((400.0, 1_000.0, 2_500.0))
        self._acts: dict[str, Callable[[ClusterNode, float], bool]] = {
            "kill": self._kill,
            "kill leader": self._kill_leader,
            "kill controller": self._kill_controller,
            "power cut": self._cut_power,
            "stop": self._stop,
            "pause": self._pause,
            "part": partial(self._part, False),
            "one-way part": partial(self._part, True),
            "slow link": self._slow,
            "kill all": self._kill_all,
            "clock jump": self._jump,
        }
        self.done: Counter[str] = Counter()

    def start(self) -> None:
        """Inject the first fault later."""
        self._world.clock.after(self._lot.expovariate(1.0 / self._mean_ms), self._act)

    def stop(self) -> None:
        """Inject nothing any more, and repair everything."""
        self._stopping = True
        self._world.net.heal()
        for node in self._nodes.all.values():
            node.resume()
            node.start()

    def _act(self) -> None:
        if self._stopping:
            return
        if any(node.may_have_lost for node in self._nodes.all.values()):
            self.start()
            return
        kind = self._lot.choices(list(_FAULTS), list(_FAULTS.values()))[0]
        node = self._nodes.all[self._lot.choice(IDS)]
        lasts_ms = self._lot.choice((50.0, 300.0, 1_500.0, 4_000.0)) * self._lot.uniform(0.5, 1.5)
        if self._acts[kind](node, lasts_ms):
            self.done[kind] += 1
            self._world.note("fault", f"{kind} {node.id} {lasts_ms:.0f}")
        self.start()

    def _later(self, delay_ms: float, do: Callable[[], object]) -> None:
        def act() -> None:
            if not self._stopping:
                do()

        self._world.clock.after(delay_ms, act)

    def _latest(self) -> MetadataImage:
        """Return the newest metadata of any controller, also if it is not committed yet."""
        images = [
            server.storage.raft.controller._view.image
            for node in self._nodes.all.values()
            if (server := node.running) is not None
        ]
        return max(images, key=lambda image: image.offset, default=MetadataImage())

    def _kill(self, node: ClusterNode, lasts_ms: float) -> bool:
        if not node.is_alive:
            return False
        node.kill()
        self._later(lasts_ms, node.start)
        return True

    def _kill_leader(self, _node: ClusterNode, lasts_ms: float) -> bool:
        topic = self._latest().topics.get("t")
        leader = -1 if topic is None else topic.partitions[0].leader
        return leader > 0 and self._kill(self._nodes.all[leader], lasts_ms)

    def _kill_controller(self, _node: ClusterNode, lasts_ms: float) -> bool:
        for node in self._nodes.running():
            server = node.running
            if server is not None and server.storage.raft.controller.is_active:
                return self._kill(node, lasts_ms)
        return False

    def _cut_power(self, node: ClusterNode, lasts_ms: float) -> bool:
        """Cut the power of a node, unless the only copy of a record could be lost by that.

        Without eligible leader replicas (KIP-966), as in Apache Kafka, the others have to stay in
        the in-sync replicas until the controller knows of the loss by the next registration: else
        the node could be the last member, and lead without its records.
        """
        if self._parts or not self._nodes.are_active():
            return False
        image = self._latest()
        for topic in image.topics.values():
            for each in topic.partitions:
                if len(each.replicas) > 1 and set(each.isr) <= {node.id}:
                    return False
        broker = image.broker(node.id)
        node.power_cut(-1 if broker is None else broker.epoch)
        self._later(lasts_ms, node.start)
        return True

    def _stop(self, node: ClusterNode, lasts_ms: float) -> bool:
        if not node.is_active:
            return False
        node.stop()
        self._later(lasts_ms + 3_000.0, node.start)
        return True

    def _pause(self, node: ClusterNode, lasts_ms: float) -> bool:
        if not node.is_alive or node.is_paused:
            return False
        node.pause()
        self._later(lasts_ms, node.resume)
        return True

    def _part(self, one_way: bool, node: ClusterNode, lasts_ms: float) -> bool:
        others = [f"node-{each}" for each in IDS if each != node.id]
        name = node.machine.name
        for other in self._lot.sample(others, self._lot.choice((1, 2, 2))):
            ends = (name, other) if self._lot.random() < 0.5 else (other, name)
            self._world.net.partition(*ends, one_way=one_way)
            self._parts += 1
            self._later(lasts_ms, partial(self._heal, name, other))
        return True

    def _heal(self, one: str, other: str) -> None:
        self._parts -= 1
        self._world.net.heal(one, other)

    def _slow(self, node: ClusterNode, lasts_ms: float) -> bool:
        other = self._lot.choice([f"node-{each}" for each in IDS if each != node.id])
        name = node.machine.name
        self._world.net.slow(name, other, self._lot.choice((2_000.0, 20_000.0)))
        self._parts += 1
        self._later(lasts_ms, partial(self._heal, name, other))
        return True

    def _kill_all(self, _node: ClusterNode, lasts_ms: float) -> bool:
        for each in self._nodes.all.values():
            self._kill(each, lasts_ms * self._lot.uniform(0.1, 1.0))
        return True

    def _jump(self, node: ClusterNode, _lasts_ms: float) -> bool:
        node.machine.clock.wall_shift_ms = self._lot.randint(-3_600_000, 3_600_000)
        return True
