"""The nodes of a cluster in processes of their own, which a test can kill."""

import re
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from kclient.cli.cluster.directory import ClusterNode
from kclient.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from tests.support.clients.wire import Wire
from tests.support.processes.child_process import WAIT_S, ChildProcess

_READY = re.compile(r"^bootstrap\.servers=", re.MULTILINE)
_STOP_S = 30.0
_QUORUM = DescribeQuorumRequest(
    topics=[
        DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata",
            partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
        )
    ]
)


class ClusterProcesses:
    """Runs ``kclient broker`` for each node; leaving the block kills all.

    Attributes:
        bootstrap: Addresses of all nodes, whether they run or not.
        addresses: Address for clients, by node id.
        running: Ids of the nodes that were active and are not killed; for any thread.
    """

    def __init__(self, nodes: Sequence[ClusterNode], settings: Mapping[str, str]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._settings = settings
        self._processes: dict[int, ChildProcess] = {}
        self.addresses = {
            node.id: node.config.listener_config().listeners[0].address for node in nodes
        }
        self.bootstrap = ",".join(self.addresses.values())
        self.running: frozenset[int] = frozenset()

    def start(self, node: int) -> None:
        """Start a node; it is not active yet."""
        found = self._nodes[node]
        command = [sys.executable, "-m", "kclient", "broker", "--properties", str(found.properties)]
        for name, value in self._settings.items():
            command += ["--config", f"{name}={value}"]
        self._processes[node] = ChildProcess(command, found.directory, name=f"node-{node}")

    def await_running(self, node: int, timeout: float = WAIT_S) -> None:
        """Wait until a started node is active."""
        self._processes[node].wait_for(_READY, timeout)
        self.running |= {node}

    def kill(self, node: int) -> None:
        """Kill a node with SIGKILL."""
        self.running -= {node}
        self._processes.pop(node).__exit__(None, None, None)

    def stop(self) -> None:
        """Stop all nodes in an orderly way."""
        self.running = frozenset()
        for each in self._processes.values():
            each.terminate()
        for each in self._processes.values():
            each.finish(timeout=_STOP_S)

    def active_controller(self) -> int | None:
        """Return the id of the node with the active controller; None during an election."""
        for node in sorted(self.running):
            controller = self._nodes[node].config.listener_config().controllers[0]
            try:
                with Wire(controller.address) as wire:
                    response = wire.ask(_QUORUM, 2, DescribeQuorumResponse)
            except (OSError, EOFError):
                continue
            if response.error_code == 0 and response.topics[0].partitions[0].error_code == 0:
                return node
        return None

    def __enter__(self) -> Self:
        try:
            for node in self._nodes:
                self.start(node)
            for node in self._nodes:
                self.await_running(node)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            if error is not None:
                error.add_note(f"{process.name}: {process.report()}")
            process.__exit__(None, None, None)
