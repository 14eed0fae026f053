"""What went wrong at each address, so that a client which reached nobody can say why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kclient.client.find_coordinator import COORDINATOR_ID_BASE
from kclient.common.errors import BootstrapError, KafkaError
from kclient.common.types import Node


@dataclass(slots=True)
class _Failure:
    """The last failure at an address, and how many there were in a row."""

    node: Node
    cause: KafkaError
    count: int = 1

    def tries(self) -> str:
        """Return the number of attempts in words, where there was more than one."""
        return f" ({self.count} attempts)" if self.count > 1 else ""


class ConnectionFailures:
    """The last failure of each node that was not reached since.

    The network thread writes; others may ask for the error.
    """

    def __init__(self) -> None:
        self._failures: dict[int, _Failure] = {}

    def failed(self, node: Node, cause: KafkaError) -> bool:
        """Note a failure: of the look-up, the connection, or the exchange of versions.

        Returns:
            Whether it is the first of its kind since the node was last reached.
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
        """Discard a node's failures, since it is ready; return how many there were in a row."""
        failure = self._failures.pop(node_id, None)
        return 0 if failure is None else failure.count

    def keep_only(self, node_ids: Iterable[int]) -> None:
        """Forget the failures of nodes that are not part of the cluster any more."""
        wanted = set(node_ids)
        for node_id in [known for known in self._failures if known not in wanted]:
            del self._failures[node_id]

    def as_error(self, pending: Mapping[Node, str]) -> BootstrapError | None:
        """Return an error that names each address with its own cause; None if there is nothing.

        May be called from any thread.

        Args:
            pending: Nodes that were not reached yet, with how far it went.
        """
        failures = list(self._failures.values())
        failed = {failure.node for failure in failures}
        parts = [f"{_in_words(each.node)}: {each.cause}{each.tries()}" for each in failures]
        parts += [
            f"{_in_words(node)}: {state}" for node, state in pending.items() if node not in failed
        ]
        if not parts:
            return None
        error = BootstrapError("no broker could be reached: " + "; ".join(parts))
        error.__cause__ = failures[0].cause if len(parts) == 1 and failures else None
        return error


def address_in_words(node: Node) -> str:
    """Return host and port; brackets set off an IPv6 address."""
    return f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"


def _in_words(node: Node) -> str:
    where = address_in_words(node)
    return f"{where} (advertised by {name_of(node.id)})" if node.id >= 0 else where


def name_of(node_id: int) -> str:
    """Return what a node is called in messages, by its id."""
    if node_id < 0:
        return "bootstrap server"
    # Ids from far above any broker's are those of coordinators' own connections.
    if node_id > COORDINATOR_ID_BASE // 2:
        return f"broker {COORDINATOR_ID_BASE - node_id} as coordinator"
    return f"broker {node_id}"
