"""What went wrong at each address, so that a client which reached nobody can say why."""

from collections.abc import Iterable
from dataclasses import dataclass

from kclient.common.errors import BootstrapError, KafkaError
from kclient.common.types import Node


@dataclass(slots=True)
class _Failure:
    """The last failure at an address, and how many there were in a row."""

    node: Node
    cause: KafkaError
    count: int = 1


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

    def succeeded(self, node_id: int) -> None:
        """Forget a node's failures: it is ready."""
        self._failures.pop(node_id, None)

    def keep_only(self, node_ids: Iterable[int]) -> None:
        """Forget the failures of nodes that are not part of the cluster any more."""
        wanted = set(node_ids)
        for node_id in [known for known in self._failures if known not in wanted]:
            del self._failures[node_id]

    def as_error(self) -> BootstrapError | None:
        """Return an error that names each address with its own cause; None without failures.

        May be called from any thread.
        """
        failures = list(self._failures.values())
        if not failures:
            return None
        parts = [_in_words(failure) for failure in failures]
        error = BootstrapError("no broker could be reached: " + "; ".join(parts))
        error.__cause__ = failures[0].cause if len(failures) == 1 else None
        return error


def address_in_words(node: Node) -> str:
    """Return host and port; brackets set off an IPv6 address."""
    return f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"


def _in_words(failure: _Failure) -> str:
    node = failure.node
    where = address_in_words(node)
    if node.id >= 0:
        where += f" (advertised by broker {node.id})"
    tries = f" ({failure.count} attempts)" if failure.count > 1 else ""
    return f"{where}: {failure.cause}{tries}"
