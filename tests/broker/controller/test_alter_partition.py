"""AlterPartition: the order of its checks, and its response."""

from typing import Any

import pytest

from kclient.common.broker_errors import StaleBrokerEpochError
from kclient.protocol.messages.broker_to_controller import BrokerState
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    heartbeat,
    isr_change,
    outcome_of,
)


def partition_result(controller: Any, request: Any) -> Any:
    return outcome_of(controller, request).topics[0].partitions[0]


def test_isr_shrinks_and_expands() -> None:
    controller, _ = controller_with(1, 2, 3)
    create_topic(controller, "t", {0: [1, 2, 3]})
    result = partition_result(controller, isr_change(controller, "t", [1]))
    assert (result.error_code, result.isr, result.partition_epoch) == (0, [1], 1)
    result = partition_result(controller, isr_change(controller, "t", [1, 3]))
    assert (result.error_code, result.isr, result.partition_epoch) == (0, [1, 3], 2)
    assert (result.leader_id, result.leader_epoch) == (1, 0)
    unchanged = partition_result(controller, isr_change(controller, "t", [3, 1]))
    assert (unchanged.error_code, unchanged.isr, unchanged.partition_epoch) == (0, [1, 3], 2)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"partition_index": 7}, 3),
        ({"leader_epoch": 9, "partition_epoch": 9}, 41),
        ({"partition_epoch": 9}, 41),
        ({"leader_epoch": -1, "sender": 2}, 74),
        ({"sender": 2, "partition_epoch": -1}, 42),
        ({"partition_epoch": -1}, 95),
        ({"isr": [1, 1]}, 42),
        ({"isr": [1, 4]}, 42),
        ({"isr": [2]}, 42),
        ({"leader_recovery_state": 1}, 42),
        ({"isr": [1], "leader_recovery_state": 1}, 42),
        ({"leader_recovery_state": 5}, 42),
        ({"isr": [1, 3]}, 107),
    ],
)
def test_refusals(fields: dict[str, Any], code: int) -> None:
    controller, epochs = controller_with(1, 2, 3, 4)
    create_topic(controller, "t", {0: [1, 2, 3]})
    outcome_of(controller, heartbeat(3, epochs[3], want_fence=True))
    given = dict(fields)
    request = isr_change(controller, "t", given.pop("isr", [1, 2]), **given)
    before = controller.image
    assert partition_result(controller, request).error_code == code
    assert controller.image is before


def test_unknown_topic_and_repeated_partition() -> None:
    controller, _ = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    request = isr_change(controller, "t", [1])
    (topic,) = request.topics
    topic.partitions *= 2
    codes = [each.error_code for each in outcome_of(controller, request).topics[0].partitions]
    assert codes == [0, 42]
    request.topics[0].topic_id = b"?" * 16
    assert partition_result(controller, request).error_code == 100


def test_members_of_another_incarnation() -> None:
    controller, epochs = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    for epoch, code in ((epochs[2] - 1, 107), (-1, 0), (epochs[2], 0)):
        states = [
            BrokerState(broker_id=1, broker_epoch=epochs[1]),
            BrokerState(broker_id=2, broker_epoch=epoch),
        ]
        request = isr_change(controller, "t", [1, 2], new_isr_with_epochs=states)
        assert partition_result(controller, request).error_code == code


def test_sender_with_another_epoch() -> None:
    controller, _ = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    request = isr_change(controller, "t", [1])
    request.broker_epoch -= 1
    with pytest.raises(StaleBrokerEpochError, match="Expected broker epoch"):
        outcome_of(controller, request)
    request.broker_id = 9
    with pytest.raises(StaleBrokerEpochError, match="No broker registration"):
        outcome_of(controller, request)
