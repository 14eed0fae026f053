"""Allocation of producer ids from blocks, with a controller that the test controls."""

import threading
from collections.abc import Callable
from typing import cast

import pytest

from kclient.broker.server.controller_channel import ControllerChannel
from kclient.broker.server.producer_id_manager import ProducerIdManager
from kclient.common.broker_errors import NotControllerError
from kclient.common.errors import KafkaError
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

Outcome = AllocateProducerIdsResponse | KafkaError


def block(start: int, size: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=size)


class Controller:
    """Controller that keeps the requests for blocks."""

    def __init__(self) -> None:
        self.requests: list[Callable[[Outcome], None]] = []

    def send(self, request: object, on_done: Callable[[Outcome], None]) -> None:
        assert isinstance(request, AllocateProducerIdsRequest)
        assert (request.broker_id, request.broker_epoch) == (3, 8)
        self.requests.append(on_done)

    def complete(self, outcome: Outcome) -> None:
        self.requests.pop(0)(outcome)


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def manager(controller: Controller) -> ProducerIdManager:
    return ProducerIdManager(
        3, lambda: 8, cast("ControllerChannel", controller), threading.Condition()
    )


def test_ids_of_a_block_are_allocated_in_order(
    manager: ProducerIdManager, controller: Controller
) -> None:
    ids: list[int | KafkaError] = []
    manager.generate(ids.append)
    controller.complete(block(1_000, 3))
    manager.generate(ids.append)
    manager.generate(ids.append)
    assert ids == [1_000, 1_001, 1_002]
    assert controller.requests == []


def test_waiting_callers_share_one_request(
    manager: ProducerIdManager, controller: Controller
) -> None:
    ids: list[int | KafkaError] = []
    for _ in range(3):
        manager.generate(ids.append)
    assert (ids, len(controller.requests)) == ([], 1)
    controller.complete(block(10, 2))
    assert (ids, len(controller.requests)) == ([10, 11], 1)  # the third needs another block
    controller.complete(block(20, 2))
    assert (ids, controller.requests) == ([10, 11, 20], [])


def test_failed_request_fails_its_callers_and_the_next_call_repeats_it(
    manager: ProducerIdManager, controller: Controller
) -> None:
    ids: list[int | KafkaError] = []
    manager.generate(ids.append)
    manager.generate(ids.append)
    error = NotControllerError("moved")
    controller.complete(error)
    assert ids == [error, error]
    manager.generate(ids.append)
    controller.complete(block(5, 1))
    assert ids[2:] == [5]


def test_callback_may_request_the_next_id(
    manager: ProducerIdManager, controller: Controller
) -> None:
    """The lock is released before callbacks run."""
    ids: list[int | KafkaError] = []

    def on_done(found: int | KafkaError) -> None:
        ids.append(found)
        if len(ids) < 3:
            manager.generate(on_done)

    manager.generate(on_done)
    controller.complete(block(7, 5))
    assert ids == [7, 8, 9]
