"""Registration, heartbeats and removal of nodes."""

from typing import Any

import pytest

from kclient.broker.controller.cluster_control import (
    BrokerControlState,
    HeartbeatFacts,
    next_state,
)
from kclient.common.broker_errors import (
    BrokerIdNotRegisteredError,
    DuplicateBrokerRegistrationError,
    InconsistentClusterIdError,
    InvalidRegistrationError,
    StaleBrokerEpochError,
    UnsupportedVersionError,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.broker_to_controller import AllocateProducerIdsRequest
from kclient.protocol.messages.node_registration import (
    BrokerRegistrationFeature,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
)
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    directory_of,
    heartbeat,
    isr_change,
    levels,
    outcome_of,
    registration,
)

FENCED, UNFENCED = BrokerControlState.FENCED, BrokerControlState.UNFENCED
SHUTDOWN, STOP = BrokerControlState.CONTROLLED_SHUTDOWN, BrokerControlState.SHUTDOWN_NOW


@pytest.mark.parametrize(
    ("current", "facts", "expected"),
    [
        # want_fence, want_shut_down, is_caught_up, leads, may_stop
        (FENCED, (False, True, True, False, False), STOP),
        (FENCED, (False, False, True, False, False), UNFENCED),
        (FENCED, (False, False, False, False, False), FENCED),
        (FENCED, (True, False, True, False, False), FENCED),
        (UNFENCED, (False, False, True, True, False), UNFENCED),
        (UNFENCED, (True, False, True, True, False), FENCED),
        (UNFENCED, (True, True, True, True, False), STOP),
        (UNFENCED, (False, True, True, True, False), SHUTDOWN),
        (UNFENCED, (False, True, True, False, False), STOP),
        (SHUTDOWN, (False, True, True, True, True), SHUTDOWN),
        (SHUTDOWN, (False, True, True, False, False), SHUTDOWN),
        (SHUTDOWN, (False, True, True, False, True), STOP),
        (SHUTDOWN, (False, False, True, False, False), SHUTDOWN),
    ],
)
def test_states(
    current: BrokerControlState, facts: tuple[bool, ...], expected: BrokerControlState
) -> None:
    assert next_state(current, HeartbeatFacts(*facts)) is expected


def test_broker_epoch_is_the_offset_of_the_registration() -> None:
    controller, _ = controller_with()
    first = outcome_of(controller, registration(1)).broker_epoch
    assert first == controller.image.offset
    assert controller.image.brokers[1].fenced
    assert outcome_of(controller, registration(1, rack="r")).broker_epoch == first
    assert controller.image.brokers[1].rack == "r"
    response = outcome_of(controller, heartbeat(1, first, first - 1))
    assert (response.is_caught_up, response.is_fenced) == (False, True)
    response = outcome_of(controller, heartbeat(1, first, first))
    assert (response.is_caught_up, response.is_fenced) == (True, False)
    assert outcome_of(controller, registration(1)).broker_epoch == first
    assert not controller.image.brokers[1].fenced


NO_VERSION: list[BrokerRegistrationFeature] = []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "other"}, InconsistentClusterIdError),
        ({"is_migrating_zk_broker": True}, BrokerIdNotRegisteredError),
        ({"log_dirs": []}, InvalidRegistrationError),
        ({"log_dirs": [b"d" * 16] * 2}, InvalidRegistrationError),
        ({"log_dirs": [bytes(15) + b"\1"]}, InvalidRegistrationError),
        ({"log_dirs": [directory_of(1)]}, InvalidRegistrationError),
        ({"features": NO_VERSION}, InvalidRegistrationError),
    ],
)
def test_refused_registrations(fields: dict[str, Any], error: type[KafkaError]) -> None:
    controller, _ = controller_with(1)
    with pytest.raises(error):
        outcome_of(controller, registration(2, **fields))
    assert 2 not in controller.image.brokers


def test_registration_without_a_finalized_level() -> None:
    bootstrap = levels(metadata_version=25, group_version=1)
    controller, _ = controller_with(bootstrap=bootstrap)
    with pytest.raises(UnsupportedVersionError, match=r"finalized version 1 of group\.version"):
        outcome_of(controller, registration(1))


def test_another_process_with_the_id() -> None:
    controller, epochs = controller_with(1)
    with pytest.raises(DuplicateBrokerRegistrationError):
        outcome_of(controller, registration(1, 2))
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    assert outcome_of(controller, registration(1, 2)).broker_epoch > epochs[1]
    with pytest.raises(StaleBrokerEpochError):
        outcome_of(controller, heartbeat(1, epochs[1]))


def test_silent_broker_is_fenced_and_returns_with_the_same_epoch() -> None:
    controller, epochs = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    clock: Any = controller._clock
    for elapsed, fenced in ((8_000, False), (1_000, True)):
        clock.now += elapsed
        outcome_of(controller, heartbeat(2, epochs[2]))
        controller.poll()
        assert controller.image.brokers[1].fenced is fenced
    part = controller.image.topics["t"].partitions[0]
    assert (part.leader, part.isr) == (2, (2,))
    assert not outcome_of(controller, heartbeat(1, epochs[1])).is_fenced
    assert controller.image.brokers[1].epoch == epochs[1]


def test_controlled_shutdown() -> None:
    controller, epochs = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    for broker, epoch in epochs.items():
        outcome_of(controller, heartbeat(broker, epoch, controller.image.offset))
    response = outcome_of(controller, heartbeat(1, epochs[1], 5, want_shut_down=True))
    assert (response.should_shut_down, response.is_fenced) == (False, False)
    part = controller.image.topics["t"].partitions[0]
    assert (part.leader, part.isr) == (2, (2,))
    assert controller.image.brokers[1].in_controlled_shutdown
    stopping = heartbeat(1, epochs[1], 5, want_shut_down=True)
    outcome_of(controller, heartbeat(2, epochs[2], controller.image.offset))
    assert outcome_of(controller, stopping).should_shut_down
    assert controller.image.brokers[1].fenced
    assert outcome_of(controller, registration(1, 2, previous_epoch=epochs[1]))


def test_unclean_restart_with_eligible_leader_replicas() -> None:
    bootstrap = levels(metadata_version=26, eligible_leader_replicas_version=1)
    for clean in (True, False):
        controller, epochs = controller_with(
            1, 2, bootstrap=bootstrap, defaults={"min.insync.replicas": "2"}
        )
        create_topic(controller, "t", {0: [1, 2]})
        outcome_of(controller, heartbeat(2, epochs[2], want_fence=True))
        assert controller.image.topics["t"].partitions[0].elr == (2,)
        previous = epochs[2] if clean else epochs[2] - 1
        outcome_of(controller, registration(2, 2, previous_epoch=previous))
        assert controller.image.topics["t"].partitions[0].elr == ((2,) if clean else ())


def test_offline_directory() -> None:
    controller, _ = controller_with(1)
    directories = [b"a" * 16, b"b" * 16]
    epoch = outcome_of(controller, registration(2, log_dirs=directories)).broker_epoch
    outcome_of(controller, heartbeat(2, epoch))
    create_topic(controller, "t", {0: [2, 1]})
    outcome_of(controller, heartbeat(2, epoch, offline_log_dirs=[b"b" * 16]))
    assert controller.image.brokers[2].directories == (b"a" * 16,)
    assert controller.image.topics["t"].partitions[0].leader == 2
    offset = controller.image.offset
    outcome_of(controller, heartbeat(2, epoch, offline_log_dirs=[b"b" * 16]))
    assert controller.image.offset == offset


def test_unregistration() -> None:
    controller, _ = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    outcome_of(controller, UnregisterBrokerRequest(broker_id=1))
    part = controller.image.topics["t"].partitions[0]
    assert (part.replicas, part.isr, part.leader) == ((1, 2), (2,), 2)
    assert 1 not in controller.image.brokers
    with pytest.raises(BrokerIdNotRegisteredError):
        outcome_of(controller, UnregisterBrokerRequest(broker_id=1))
    refused = isr_change(controller, "t", [2])
    assert outcome_of(controller, refused).topics[0].partitions[0].error_code == 0


def test_producer_ids() -> None:
    controller, epochs = controller_with(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epochs[1])
    blocks = [outcome_of(controller, request) for _ in range(2)]
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [
        (0, 1000),
        (1000, 1000),
    ]
    request.broker_epoch -= 1
    with pytest.raises(StaleBrokerEpochError):
        outcome_of(controller, request)


def test_registration_of_a_controller() -> None:
    request = ControllerRegistrationRequest(controller_id=7, incarnation_id=b"i" * 16)
    controller, _ = controller_with()
    outcome_of(controller, request)
    assert controller.image.controllers[7].incarnation_id == b"i" * 16
    old, _ = controller_with(bootstrap=levels(metadata_version=14))
    with pytest.raises(UnsupportedVersionError):
        outcome_of(old, request)
