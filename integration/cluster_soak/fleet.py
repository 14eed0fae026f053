"""The brokers of a run: their states, and the operations on them."""

import threading
import time

from integration.harness.kafka_cluster import KafkaCluster
from integration.harness.kafka_node import KafkaNode
from integration.harness.wire_probe import partition_states
from tests.support.checks.waiting import HarnessError, wait_until

_START_S = 120.0


class Fleet:
    """Stops, kills, suspends and starts the brokers of a cluster, and knows which ones work."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._working = {node.node_id: time.monotonic() for node in cluster.nodes}

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap()

    def working(self) -> list[KafkaNode]:
        """Returns the brokers that run and are not suspended, the longest working one first."""
        with self._lock:
            since = dict(self._working)
        nodes = [node for node in self._cluster.nodes if node.node_id in since]
        return sorted(nodes, key=lambda node: since[node.node_id])

    def stop(self, node: KafkaNode) -> None:
        """Ends a broker by SIGTERM, and by SIGKILL where the controlled shutdown does not end."""
        self._leave(node)
        try:
            node.stop()
        except HarnessError:
            node.kill()

    def kill(self, node: KafkaNode) -> None:
        self._leave(node)
        node.kill()

    def suspend(self, node: KafkaNode) -> None:
        self._leave(node)
        node.suspend()

    def resume(self, node: KafkaNode) -> None:
        node.resume()
        self._join(node)

    def start(self, *nodes: KafkaNode) -> None:
        """Starts brokers at the same time and returns once each of them responds."""
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready(_START_S)
            self._join(node)

    def restart_controller(self, away_s: float, pause: threading.Event) -> None:
        """Kills the controller and starts it again after `away_s` seconds."""
        controller = self._cluster.controllers[0]
        controller.kill()
        pause.wait(away_s)
        controller.launch()
        controller.await_ready(_START_S)

    def await_in_sync(self, topics: list[str], replicas: int) -> None:
        """Returns when every partition of `topics` has a leader and all its replicas in sync."""
        wait_until(lambda: self._in_sync(topics, replicas), f"{topics} are in sync", _START_S, 0.25)

    def _in_sync(self, topics: list[str], replicas: int) -> bool:
        try:
            states = partition_states(self.working()[0].address(), topics)
        except OSError:
            return False
        complete = all(one.leader >= 0 and len(one.isr) == replicas for one in states.values())
        return complete and {topic for topic, _ in states} == set(topics)

    def _leave(self, node: KafkaNode) -> None:
        with self._lock:
            self._working.pop(node.node_id, None)

    def _join(self, node: KafkaNode) -> None:
        with self._lock:
            self._working[node.node_id] = time.monotonic()
