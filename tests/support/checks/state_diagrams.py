"""State diagrams of the tables that the code checks its changes of state with."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import NamedTuple, TypeVar

from kclient.broker.coordinator.group.classic_group import PREVIOUS, GroupState
from kclient.consumer.classic.member import TRANSITIONS as MEMBER_TRANSITIONS
from kclient.consumer.classic.member import MemberState
from kclient.consumer.topic_partition_state import NEXT_STATES, FetchState
from kclient.network.kafka_channel import MUTE_TRANSITIONS, ChannelMuteState
from kclient.producer.batch_state import (
    ATTEMPT_OUTCOMES,
    BatchState,
    EarlierAttempts,
)
from kclient.producer.batch_state import TRANSITIONS as BATCH_TRANSITIONS
from kclient.producer.transaction_state import TRANSITIONS as PRODUCER_TRANSITIONS
from kclient.producer.transaction_state import State as ProducerState

StateT = TypeVar("StateT", bound=Enum)
EventT = TypeVar("EventT", bound=Enum)


class Transition(NamedTuple):
    """Change of state; without an event, the table has only the states."""

    state: Enum
    following: Enum
    event: Enum | None = None


class StateMachine(NamedTuple):
    """State machine of a table.

    Attributes:
        title: Its name.
        module: Module of the table.
        note: What the states are of.
        start: First state.
        transitions: The changes of state of the table.
    """

    title: str
    module: str
    note: str
    start: Enum
    transitions: list[Transition]


def by_event(table: Mapping[tuple[StateT, EventT], StateT]) -> list[Transition]:
    """Return the transitions of a table by state and event."""
    return [Transition(state, following, event) for (state, event), following in table.items()]


def by_state(table: Mapping[StateT, AbstractSet[StateT]]) -> list[Transition]:
    """Return the transitions of a table of following states."""
    return [
        Transition(state, following)
        for state, all_following in table.items()
        for following in in_order(all_following)
    ]


def by_following(table: Mapping[StateT, AbstractSet[StateT]]) -> list[Transition]:
    """Return the transitions of a table of previous states."""
    return [
        Transition(state, following)
        for following, all_previous in table.items()
        for state in in_order(all_previous)
    ]


def in_order(states: AbstractSet[StateT]) -> Iterator[StateT]:
    """Return states in the order of their definition."""
    for kind in {type(state) for state in states}:
        yield from (state for state in kind if state in states)


def state_machines() -> list[StateMachine]:
    """Return the state machines of the code."""
    fatal = ProducerState.FATAL_ERROR
    return [
        StateMachine(
            "Group",
            "kclient/broker/coordinator/group/classic_group.py",
            "A group of the classic protocol, in the coordinator.",
            GroupState.EMPTY,
            by_following(PREVIOUS),
        ),
        StateMachine(
            "Group member",
            "kclient/consumer/classic/member.py",
            "A consumer as a member of a group of the classic protocol.",
            MemberState.UNJOINED,
            by_event(MEMBER_TRANSITIONS),
        ),
        StateMachine(
            "Position of a partition",
            "kclient/consumer/topic_partition_state.py",
            "The fetch position of an assigned partition.",
            FetchState.INITIALIZING,
            by_state(NEXT_STATES),
        ),
        StateMachine(
            "Batch",
            "kclient/producer/batch_state.py",
            "A batch of a producer, from its first record to its outcome.",
            BatchState.NEW,
            by_event(BATCH_TRANSITIONS),
        ),
        StateMachine(
            "Earlier attempts of a batch",
            "kclient/producer/batch_state.py",
            "Whether the requests of a batch that have ended may have written it. SPLIT leads to "
            "the state of the parts. An event without a transition changes nothing.",
            EarlierAttempts.NOT_WRITTEN,
            by_event(ATTEMPT_OUTCOMES),
        ),
        StateMachine(
            "Producer",
            "kclient/producer/transaction_state.py",
            "A producer and its transaction. Without a transactional id it has four of the states.",
            ProducerState.UNINITIALIZED,
            [
                *by_state(PRODUCER_TRANSITIONS),
                *(Transition(state, fatal) for state in ProducerState if state is not fatal),
            ],
        ),
        StateMachine(
            "Muting of a channel",
            "kclient/network/kafka_channel.py",
            "Why a connection of the broker is not read: one of its requests is processed, or its "
            "client is throttled. In MUTED, reading can be resumed.",
            ChannelMuteState.MUTED,
            by_event(MUTE_TRANSITIONS),
        ),
    ]


def diagram(machine: StateMachine) -> str:
    """Return a state machine as a Mermaid diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {machine.start.name}"]
    for state, following, event in machine.transitions:
        label = f" : {event.name}" if event is not None else ""
        lines.append(f"    {state.name} --> {following.name}{label}")
    return "\n".join(lines)


def state_machines_page() -> str:
    """Return the page of all state machines."""
    parts = [
        "# State machines\n",
        (
            "The code has these tables, and raises `IllegalStateError` for a change of state that"
            " its table does not have.\n"
        ),
    ]
    for machine in state_machines():
        parts.append(f"## {machine.title}\n")
        parts.append(f"{machine.note} Table: `{machine.module}`.\n")
        parts.append(f"```mermaid\n{diagram(machine)}\n```\n")
    return "\n".join(parts)
