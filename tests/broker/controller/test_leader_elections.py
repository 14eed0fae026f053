"""ElectLeaders, and elections by the periodic tasks."""

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.common.broker_errors import InvalidRequestError
from kclient.protocol.messages.leaders_and_reassignments import (
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
)
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    controller_with,
    create_topic,
    heartbeat,
    isr_change,
    outcome_of,
    start_broker,
)


def elect(controller: QuorumController, kind: int, **topics: list[int]) -> dict[str, list[int]]:
    """Elect leaders; return the error codes of each topic. No topics for all."""
    named = [ElectLeadersTopicPartitions(topic=t, partitions=p) for t, p in topics.items()]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named or None)
    results = outcome_of(controller, request).replica_election_results
    return {each.topic: [part.error_code for part in each.partition_result] for each in results}


def test_preferred_election() -> None:
    controller, epochs = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2], 1: [2, 1]})
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    assert [part.leader for part in controller.image.topics["t"].partitions] == [2, 2]
    outcome_of(controller, heartbeat(1, epochs[1]))
    assert elect(controller, 0, t=[0, 1, 7], absent=[0]) == {"t": [80, 84, 3], "absent": [3]}
    outcome_of(controller, isr_change(controller, "t", [2, 1]))
    assert elect(controller, 0) == {"t": [0]}
    assert controller.image.topics["t"].partitions[0].leader == 1
    assert elect(controller, 0) == {}


def test_unclean_election() -> None:
    controller, epochs = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    outcome_of(controller, isr_change(controller, "t", [1]))
    assert elect(controller, 1, t=[0]) == {"t": [84]}
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    assert controller.image.topics["t"].partitions[0].leader == -1
    assert elect(controller, 0, t=[0]) == {"t": [80]}
    assert elect(controller, 1, t=[0]) == {"t": [0]}
    part = controller.image.topics["t"].partitions[0]
    assert (part.leader, part.isr, part.recovery_state) == (2, (2,), 1)
    outcome_of(controller, heartbeat(2, epochs[2], want_fence=True))
    assert elect(controller, 1, t=[0]) == {"t": [83]}
    with pytest.raises(InvalidRequestError, match="election type 7"):
        elect(controller, 7)


def test_preferred_leaders_are_elected_periodically() -> None:
    quorum, clock = MemoryQuorum(), ManualClock()
    controller = controller_of(quorum, 100, clock)
    quorum.elect(100)
    epochs = {broker: start_broker(controller, broker) for broker in (1, 2)}
    create_topic(controller, "t", {0: [1, 2]})
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    outcome_of(controller, heartbeat(1, epochs[1]))
    outcome_of(controller, isr_change(controller, "t", [2, 1]))
    for elapsed, leader in ((290_000, 2), (10_000, 1)):
        clock.now += elapsed
        for broker, epoch in epochs.items():
            outcome_of(controller, heartbeat(broker, epoch))
        controller.poll()
        assert controller.image.topics["t"].partitions[0].leader == leader


def test_unclean_leaders_are_elected_where_a_topic_allows_it() -> None:
    defaults = {"unclean.leader.election.enable": "true"}
    controller, epochs = controller_with(1, 2, defaults=defaults)
    create_topic(controller, "t", {0: [1, 2]})
    outcome_of(controller, isr_change(controller, "t", [1]))
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    part = controller.image.topics["t"].partitions[0]
    assert (part.leader, part.isr, part.recovery_state) == (2, (2,), 1)
