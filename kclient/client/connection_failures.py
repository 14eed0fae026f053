"""Connection failures by node, for the error of a client that reaches no broker."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kclient.client.find_coordinator import COORDINATOR_ID_BASE
from kclient.common.errors import BootstrapError, KafkaError
from kclient.common.types import Node


@dataclass(slots=True)
class _Failure:
    """Last failure of a node, and the number of failures in a row."""

    node: Node
    cause: KafkaError
    count: int = 1

    def attempts(self) -> str:
        """Return the number of attempts as text; empty for one."""
        return f" ({self.count} attempts)" if self.count > 1 else ""


class ConnectionFailures:
    """Last failure of each node that was not ready since.

    The network thread writes; other threads may call `as_error`.
    """

    def __init__(self) -> None:
        self._failures: dict[int, _Failure] = {}

    def failed(self, node: Node, cause: KafkaError) -> bool:
        """Record a failure: of the look-up, the connection, or the API versions request.

        Returns:
            Whether it differs from the last failure since the node was ready.
        """
        known = self._failures.get(node.id)
        if known is None or known.node != node:
            self._failures[node.id] = _Failure(node, cause)
            return True
        is_new = str(known.cause) != str(cause)
        known.cause = cause
        known.count += 1
        return is_new

    def succeeded(self, node_id: int) -> int:
        """Discard the failures of a node that is ready; return their number."""
        failure = self._failures.pop(node_id, None)
        return 0 if failure is None else failure.count

    def retain(self, node_ids: Iterable[int]) -> None:
        """Discard the failures of nodes that are no longer in the cluster."""
        kept = set(node_ids)
        for node_id in [known for known in self._failures if known not in kept]:
            del self._failures[node_id]

    def as_error(self, pending: Mapping[Node, str]) -> BootstrapError | None:
        """Return an error with the cause for each address; None if there is none.

        May be called from any thread.

        Args:
            pending: Nodes with a connection attempt in progress, with its state.
        """
        failures = list(self._failures.values())
        failed = {failure.node for failure in failures}
        parts = [f"{_describe(each.node)}: {each.cause}{each.attempts()}" for each in failures]
        parts += [
            f"{_describe(node)}: {state}" for node, state in pending.items() if node not in failed
        ]
        if not parts:
            return None
        error = BootstrapError("no broker could be reached: " + "; ".join(parts))
        error.__cause__ = failures[0].cause if len(parts) == 1 and failures else None
        return error


def format_address(node: Node) -> str:
    """Return ``host:port``, with brackets around an IPv6 address."""
    return f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"


def _describe(node: Node) -> str:
    address = format_address(node)
    return f"{address} (advertised by {name_of(node.id)})" if node.id >= 0 else address


def name_of(node_id: int) -> str:
    """Return the name of a node for messages, by its id."""
    if node_id < 0:
        return "bootstrap server"
    # Ids far above those of brokers belong to the connections to coordinators.
    if node_id > COORDINATOR_ID_BASE // 2:
        return f"broker {COORDINATOR_ID_BASE - node_id} as coordinator"
    return f"broker {node_id}"
