"""One or more nodes of Apache Kafka that form a cluster."""

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from integration.harness.free_port import free_port
from integration.harness.kafka_node import START_TIMEOUT, KafkaNode
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.wire_probe import known_brokers
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import HarnessError, wait_until

_HOST = "127.0.0.1"
_FIRST_CONTROLLER = 101


@dataclass(frozen=True, slots=True)
class Listener:
    """An additional listener. Every node has PLAINTEXT for the harness and its peers.

    Attributes:
        name: its name, such as "SASL" or "TLS".
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        advertised: its "host:port" for clients, or its host with the port that is bound; the
            bound address if empty, none if None.
        properties: server properties that belong to it, named as in server.properties without the
            prefix `listener.name.<name>.`.
    """

    name: str
    protocol: str
    advertised: str | None = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of a cluster.

    Attributes:
        nodes: how many brokers.
        controllers: how many nodes are controllers alone; with 0 every broker is a controller too.
            A cluster with separate controllers works while most brokers are down.
        properties: server properties of all nodes; they win over the harness's own.
        listeners: additional listeners.
        format_options: further options of StorageTool's format, such as `--add-scram`.
        heap_mb: Java's -Xmx of each node.
        jvm_options: further options of each node's JVM.
    """

    nodes: int = 1
    controllers: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    listeners: Sequence[Listener] = ()
    format_options: Sequence[str] = ()
    heap_mb: int = 1024
    jvm_options: Sequence[str] = ()


class KafkaCluster(Closing):
    """KRaft nodes; a context manager.

    Attributes:
        nodes: the brokers.
        controllers: the nodes that are controllers alone.
    """

    def __init__(
        self, runtime: KafkaRuntime, directory: Path, options: ClusterOptions | None = None
    ) -> None:
        self.runtime = runtime
        self.directory = directory
        self._options = options or ClusterOptions()
        self.nodes: list[KafkaNode] = []
        self.controllers: list[KafkaNode] = []

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """Returns the addresses of all nodes at `listener`, comma-separated."""
        return ",".join(node.address(listener) for node in self.nodes)

    def start(self) -> None:
        """Formats and starts the nodes, and returns when each of them knows them all."""
        cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        # A leading dash would read as an option of the tool.
        cluster_id = f"K{cluster_id[1:]}"
        self._plan()
        everyone = [*self.controllers, *self.nodes]
        try:
            for node in everyone:
                node.format(cluster_id, self._options.format_options)
                node.launch()
            for node in everyone:
                node.await_ready()
            self.await_brokers()
        except BaseException:
            self.close()
            raise

    def await_brokers(self, timeout: float = START_TIMEOUT) -> None:
        """Returns when each running node knows every running node."""
        running = [node for node in self.nodes if node.running]
        expected = {node.node_id for node in running}
        for node in running:
            wait_until(
                lambda node=node: _knows(node, expected),  # type: ignore[misc]  # mypy cannot infer it
                f"node {node.node_id} knows the brokers {sorted(expected)}",
                timeout,
            )

    def close(self) -> None:
        """Kills the nodes; their data is not needed."""
        for node in [*self.nodes, *self.controllers]:
            node.kill()

    def report(self, lines: int = 30) -> str:
        """Returns the ends of the nodes' logs without their listings, for a test that failed."""
        parts = []
        for node in [*self.nodes, *self.controllers]:
            known = [line for line in node.log_text().splitlines() if not line.startswith("\t")]
            parts += [f"--- node {node.node_id}, {node.directory}", *known[-lines:]]
        return "\n".join(parts)

    def __enter__(self) -> Self:
        self.start()
        return self

    def _plan(self) -> None:
        if self._options.nodes < 1:
            msg = f"nodes: got {self._options.nodes}, expected at least 1"
            raise HarnessError(msg)
        names = ["PLAINTEXT", *(listener.name for listener in self._options.listeners)]
        ids = range(1, self._options.nodes + 1)
        alone = range(_FIRST_CONTROLLER, _FIRST_CONTROLLER + self._options.controllers)
        controllers = {node_id: f"{_HOST}:{free_port()}" for node_id in alone or ids}
        self.controllers = [self._controller(node_id, controllers) for node_id in alone]
        self.nodes = [
            self._broker(node_id, {name: f"{_HOST}:{free_port()}" for name in names}, controllers)
            for node_id in ids
        ]

    def _broker(
        self, node_id: int, addresses: dict[str, str], controllers: dict[int, str]
    ) -> KafkaNode:
        bound = ",".join(f"{name}://{address}" for name, address in addresses.items())
        advertised = {listener.name: listener.advertised for listener in self._options.listeners}
        combined = node_id in controllers
        properties = {
            "process.roles": "broker,controller" if combined else "broker",
            "listeners": bound + (f",CONTROLLER://{controllers[node_id]}" if combined else ""),
            "advertised.listeners": ",".join(
                f"{name}://{_advertised(advertised.get(name), address)}"
                for name, address in addresses.items()
                if advertised.get(name, "") is not None
            ),
            "inter.broker.listener.name": "PLAINTEXT",
        }
        return self._node(node_id, properties, addresses, controllers)

    def _controller(self, node_id: int, controllers: dict[int, str]) -> KafkaNode:
        address = controllers[node_id]
        properties = {"process.roles": "controller", "listeners": f"CONTROLLER://{address}"}
        return self._node(node_id, properties, {"CONTROLLER": address}, controllers)

    def _node(
        self,
        node_id: int,
        roles: Mapping[str, str],
        addresses: Mapping[str, str],
        controllers: Mapping[int, str],
    ) -> KafkaNode:
        """Describes a node.

        Args:
            node_id: its number.
            roles: the properties of its roles and listeners.
            addresses: listener name -> "host:port".
            controllers: the number of each controller -> its "host:port".
        """
        options = self._options
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"}
        protocols |= {listener.name: listener.protocol for listener in options.listeners}
        properties = {
            **roles,
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(f"{key}@{at}" for key, at in controllers.items()),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{key}:{value}" for key, value in protocols.items()
            ),
            # Many tests write records with fixed timestamps, older than the default of seven days.
            # The first check of the retention is 30 s after the start.
            "log.retention.ms": "-1",
        }
        properties |= _replication(options.nodes)
        for listener in options.listeners:
            prefix = f"listener.name.{listener.name.lower()}."
            properties |= {prefix + key: value for key, value in listener.properties.items()}
        properties |= options.properties
        return KafkaNode(
            self.runtime,
            self.directory / f"node-{node_id}",
            properties,
            addresses,
            options.heap_mb,
            options.jvm_options,
        )


def _advertised(given: str | None, bound: str) -> str:
    if not given or ":" in given:
        return given or bound
    return f"{given}:{bound.rpartition(':')[2]}"


def _replication(nodes: int) -> dict[str, str]:
    """Internal topics as safe as the nodes allow, and with few partitions for a quick start."""
    factor, in_sync = str(min(nodes, 3)), str(min(nodes, 2))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
    }


def _knows(node: KafkaNode, expected: set[int]) -> bool:
    try:
        return set(known_brokers(node.address())) == expected
    except OSError:
        return False
