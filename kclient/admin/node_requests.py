"""Requests for many items to the nodes that serve them, with a value or an error for each item."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from kclient.admin.requester import Requester, is_final
from kclient.admin.results import Outcomes
from kclient.common.errors import ClosedError, KafkaError, KafkaTimeoutError
from kclient.common.types import Node
from kclient.common.waiting import Steps

K = TypeVar("K")
V = TypeVar("V")

Locate = Callable[[list[K]], Steps[Outcomes[K, Node]]]
"""Looks up the node that serves each item, such as the leader of each partition."""

Ask = Callable[[Node, list[K]], Steps[Outcomes[K, V]]]
"""Asks a node for the items that it serves."""


def ask_nodes(
    requester: Requester, items: Iterable[K], locate: Locate[K], ask: Ask[K, V]
) -> Steps[Outcomes[K, V]]:
    """Ask each node for all its items at once; return the value or the error of each item.

    Items with a retriable error are located and asked for again until the deadline. Those that a
    node omits have no outcome.

    Raises:
        KafkaTimeoutError: The deadline passed, and no item has an outcome.
    """
    call = _Call(list(dict.fromkeys(items)), locate, ask)
    try:
        yield from requester.retried(call.attempt)
    except KafkaError as error:
        if is_final(error) or not call.outcomes:
            raise
        call.give_up(error)
    return call.outcomes


class _Call(Generic[K, V]):
    """Outcomes of a call so far."""

    def __init__(self, items: Sequence[K], locate: Locate[K], ask: Ask[K, V]) -> None:
        self._items = items
        self._locate = locate
        self._ask = ask
        self._failed: dict[K, KafkaError] = {}  # retriable errors of the last attempt
        self.outcomes: Outcomes[K, V] = {}

    def attempt(self) -> Steps[None]:
        """Ask for the items without outcome; raise a retriable error if there is one."""
        waiting = [item for item in self._items if item not in self.outcomes]
        located = yield from self._locate(waiting)
        self._failed.clear()
        by_node: dict[Node, list[K]] = {}
        for item, node in located.items():
            if isinstance(node, KafkaError):
                self._keep(item, node)
            else:
                by_node.setdefault(node, []).append(item)
        for node, served in by_node.items():
            found = yield from self._ask_node(node, served)
            for item in served:
                if item in found:
                    self._keep(item, found[item])
        if self._failed:
            raise next(iter(self._failed.values()))

    def _ask_node(self, node: Node, served: list[K]) -> Steps[Outcomes[K, V]]:
        try:
            return (yield from self._ask(node, served))
        except (KafkaTimeoutError, ClosedError):
            raise
        except KafkaError as error:  # such as a lost connection
            return dict.fromkeys(served, error)

    def _keep(self, item: K, outcome: V | KafkaError) -> None:
        if isinstance(outcome, KafkaError) and not is_final(outcome):
            self._failed[item] = outcome
        else:
            self.outcomes[item] = outcome

    def give_up(self, error: KafkaError) -> None:
        """Set the error of each item without outcome."""
        for item in self._items:
            if item not in self.outcomes:
                failed = self._failed.get(item)
                self.outcomes[item] = error if failed is None else _given_up(failed)


def _given_up(problem: KafkaError) -> KafkaTimeoutError:
    error = KafkaTimeoutError(f"gave up retrying: {problem}")
    error.__cause__ = problem
    return error
