"""Requests to the coordinators of groups or transactional ids, one for all ids of each."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kclient.admin.arguments import check_group_ids
from kclient.admin.node_requests import Ask, ask_nodes
from kclient.admin.requester import Requester
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.find_coordinator import CoordinatorType
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.types import Node
from kclient.common.waiting import Steps

P = TypeVar("P")
V = TypeVar("V")

AskForGroups = Callable[[Requester, Node, list[str]], Steps[Outcomes[str, V]]]
"""Asks a coordinator for its groups."""


def call_for_groups(
    requester: Requester,
    call: str,
    group_ids: str | Iterable[str],
    timeout: float | None,
    ask: AskForGroups[V],
) -> Steps[Results[str, V]]:
    """Check the arguments of a call of this name for groups; return its steps.

    Each coordinator is asked for all its groups at once. The error of a single group is raised.
    """
    wanted = check_group_ids(group_ids)
    requester.limit(timeout)

    def steps() -> Steps[Results[str, V]]:
        outcomes = yield from ask_coordinators(
            requester, wanted, lambda node, served: ask(requester, node, served)
        )
        return Results(call, outcomes, wanted)

    return raising_if_single(steps(), group_ids, str)


def ask_coordinators(
    requester: Requester,
    keys: Iterable[str],
    ask: Ask[str, V],
    kind: CoordinatorType = CoordinatorType.GROUP,
) -> Steps[Outcomes[str, V]]:
    """Ask the coordinator of each group or transactional id; see `ask_nodes`."""
    return ask_nodes(
        requester, keys, lambda waiting: requester.find_coordinators(waiting, kind), ask
    )


def read_each(
    what: str, keys: Iterable[str], found: Mapping[str, P], read: Callable[[P], V]
) -> Outcomes[str, V]:
    """Convert the part of a response about each key; return its value, or the error raised.

    Args:
        what: What a key is, for the error of one that the response omits.
        keys: Keys that were asked for.
        found: Part of the response by key.
        read: Converts a part, or raises its error.
    """
    outcomes: Outcomes[str, V] = {}
    for key in keys:
        try:
            outcomes[key] = read(part_of(what, key, found))
        except KafkaError as error:
            outcomes[key] = error
    return outcomes


def part_of(what: str, key: str, found: Mapping[str, P]) -> P:
    """Return the part of a response about a key.

    Raises:
        ProtocolError: The response has none.
    """
    if key not in found:
        raise ProtocolError(f"{what} {key!r}: it is missing in the response")
    return found[key]
