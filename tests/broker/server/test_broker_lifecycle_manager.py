"""Registration and heartbeats of a broker, with a controller that the test controls."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_lifecycle_manager import (
    BrokerLifecycleManager,
    BrokerState,
    registration_of,
)
from kclient.common.broker_errors import InconsistentClusterIdError, NotControllerError
from kclient.common.errors import KafkaTimeoutError
from kclient.network.endpoint import Endpoint
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

CONFIG = BROKER_CONFIG.parse({"log.dir": "d", "broker.heartbeat.interval.ms": 700})

TIMEOUT_MS = CONFIG.initial_broker_registration_timeout_ms


class Controller:
    """Controller that keeps requests."""

    def __init__(self) -> None:
        self.sent: list[tuple[object, Callable[[Any], None]]] = []
        self.wakeups = 0
        registration = registration_of(
            3, "cluster", b"i" * 16, (Endpoint("PLAINTEXT", "localhost", 9092),)
        )
        self.broker = BrokerLifecycleManager(
            CONFIG, registration, self.send, lambda: 7, self.wakeup, threading.Condition()
        )

    def send(self, request: object, on_done: Callable[[Any], None]) -> None:
        self.sent.append((request, on_done))

    def wakeup(self) -> None:
        self.wakeups += 1

    def respond(self, outcome: object) -> object:
        request, on_done = self.sent.pop()
        on_done(outcome)
        return request


@pytest.fixture
def controller() -> Controller:
    made = Controller()
    made.broker.start(0)
    return made


def run_until_active(controller: Controller) -> None:
    controller.broker.step(0)
    controller.respond(BrokerRegistrationResponse(broker_epoch=5))
    controller.broker.step(0)
    controller.respond(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))


def test_broker_registers_and_sends_heartbeats_until_it_is_active(controller: Controller) -> None:
    broker = controller.broker
    assert broker.step(0) == TIMEOUT_MS
    assert broker.step(1) == TIMEOUT_MS  # one request at a time
    request = controller.respond(BrokerRegistrationResponse(broker_epoch=5))
    assert isinstance(request, BrokerRegistrationRequest)
    assert [each.port for each in request.listeners] == [9092]
    assert (broker.state, broker.broker_epoch, controller.wakeups) == (BrokerState.RECOVERY, 5, 1)
    broker.step(1)
    controller.respond(BrokerHeartbeatResponse(is_fenced=True))
    assert broker.step(2) == 11
    broker.step(11)
    heartbeat = controller.respond(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert isinstance(heartbeat, BrokerHeartbeatRequest)
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset) == (5, 7)
    assert broker.state is BrokerState.RUNNING


def test_heartbeats_have_an_interval_and_are_retried(controller: Controller) -> None:
    run_until_active(controller)
    broker = controller.broker
    broker.step(100)
    controller.respond(NotControllerError("moved"))
    assert broker.step(101) == 151
    broker.step(151)
    controller.respond(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert broker.step(152) == 151 + CONFIG.broker_heartbeat_interval_ms


def test_refused_registration_is_raised(controller: Controller) -> None:
    controller.broker.step(0)
    controller.respond(InconsistentClusterIdError("another cluster"))
    with pytest.raises(InconsistentClusterIdError):
        controller.broker.step(1)


def test_registration_ends_in_time_while_a_request_is_in_progress(controller: Controller) -> None:
    broker = controller.broker
    broker.step(0)
    broker.step(TIMEOUT_MS - 1)
    with pytest.raises(KafkaTimeoutError, match=r"not registered within 60000 ms"):
        broker.step(TIMEOUT_MS)


def test_error_of_a_step_reaches_waiting_threads_once_it_is_reported(
    controller: Controller,
) -> None:
    broker = controller.broker
    broker.step(0)
    controller.respond(InconsistentClusterIdError("another cluster"))
    with pytest.raises(InconsistentClusterIdError) as refused:
        broker.step(1)
    assert not broker.await_running(0)
    broker.fail(refused.value)
    with pytest.raises(InconsistentClusterIdError):
        broker.await_running(0)


def test_broker_sends_nothing_after_its_shutdown(controller: Controller) -> None:
    run_until_active(controller)
    controller.broker.shutdown()
    controller.broker.step(10_000)
    assert controller.sent == []
