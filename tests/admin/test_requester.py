"""Requests of the admin client: choice of the broker, retries and deadlines, in virtual time."""

import math
from collections.abc import Iterator

import pytest

from kclient.admin.requester import Requester, final_item_error, item_error
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    NotControllerError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.types import Node
from kclient.common.waiting import Steps
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import TIMEOUT_MS, AdminWorld

ERRORS: dict[int, KafkaError] = {
    3: UnknownTopicOrPartitionError("no such topic"),
    15: CoordinatorNotAvailableError("not yet"),
    41: NotControllerError("moved"),
}


def world(*codes: int, brokers: int = 1) -> AdminWorld:
    """Return a cluster that responds to ListGroups with these error codes, then without one."""
    made = AdminWorld(brokers)
    left: Iterator[int] = iter(codes)

    def response(_: ScriptedBroker, __: Request) -> Response:
        return ListGroupsResponse(error_code=next(left, 0))

    made.respond(ApiKey.LIST_GROUPS, response, high=3)
    return made


def read(response: ListGroupsResponse) -> str:
    if response.error_code:
        raise ERRORS[response.error_code]
    return "read"


BUILDER = SimpleBuilder(ListGroupsRequest())


def anywhere(requester: Requester, *, timeout: float | None = None) -> Steps[str]:
    requester.limit(timeout)
    return requester.send_to_least_loaded(BUILDER, ListGroupsResponse, read)


def test_retriable_error_is_retried_after_a_backoff() -> None:
    made = world(15, 15)
    started_ms = made.clock.now_ms
    assert made.run(anywhere) == "read"
    assert len(made.requests(ListGroupsRequest)) == 3
    assert made.clock.now_ms - started_ms >= 100


def test_missing_topic_is_not_retried_although_producers_do() -> None:
    made = world(3)
    with pytest.raises(UnknownTopicOrPartitionError):
        made.run(anywhere)
    assert len(made.requests(ListGroupsRequest)) == 1


def test_deadline_ends_the_retries_with_the_last_failure() -> None:
    made = world(*[15] * 1_000)
    started_ms = made.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match="gave up retrying: not yet") as caught:
        made.run(anywhere, timeout=1.0)
    assert isinstance(caught.value.__cause__, CoordinatorNotAvailableError)
    assert made.clock.now_ms - started_ms <= 1_000


def test_silent_broker_times_out_with_its_name() -> None:
    made = world()
    made.run(anywhere)
    made.brokers[0].silent = True
    with pytest.raises(KafkaTimeoutError, match=r"LIST_GROUPS at .*10\.0\.0\.1:9092.*no resp"):
        made.run(anywhere, timeout=0.5)


def test_unreachable_brokers_are_reported_with_their_error() -> None:
    made = AdminWorld()
    made.brokers[0].silent = True
    with pytest.raises(BootstrapError, match="LIST_GROUPS: no response in time; ") as caught:
        made.run(anywhere, timeout=0.5)
    assert isinstance(caught.value.__cause__, BootstrapError)


def test_controller_is_chosen_again_after_it_moved() -> None:
    made = world(brokers=2)
    nodes = [broker.node for broker in made.brokers]

    def moved(broker: ScriptedBroker, _: Request) -> Response:
        if broker.node is nodes[1]:
            return ListGroupsResponse()
        for each in made.brokers:
            each.brokers = [nodes[1], nodes[0]]  # later metadata has the other controller
        return ListGroupsResponse(error_code=41)

    made.respond(ApiKey.LIST_GROUPS, moved, high=3)
    controlled = made.run(
        lambda requester: requester.send_to_controller(BUILDER, ListGroupsResponse, read)
    )
    assert controlled == "read"
    assert len(made.requests(ListGroupsRequest, 1)) == 1
    assert len(made.requests(ListGroupsRequest, 2)) == 1


def test_coordinator_is_looked_up_for_each_attempt() -> None:
    made = world(15, brokers=2)
    made.coordinate("g", 2)
    seen: list[Node] = []

    def with_node(node: Node, response: ListGroupsResponse) -> str:
        seen.append(node)
        return read(response)

    result = made.run(
        lambda requester: requester.send_to_coordinator("g", BUILDER, ListGroupsResponse, with_node)
    )
    assert result == "read"
    assert seen == [made.brokers[1].node] * 2
    lookups = made.versions(ApiKey.FIND_COORDINATOR, 1) + made.versions(ApiKey.FIND_COORDINATOR, 2)
    assert lookups == [4, 4]


def test_closed_core_closes_its_connections() -> None:
    made = world()
    made.run(anywhere)
    assert made.open_sockets > 0
    made.core.close()
    assert made.open_sockets == 0


def test_remaining_time_fits_into_a_request() -> None:
    made = AdminWorld()

    def call(requester: Requester, timeout: float) -> Steps[int]:
        requester.limit(timeout)
        yield from ()
        return requester.remaining_ms()

    assert made.run(call, 2.5) == 2_500
    assert made.run(call, 0) == 1
    assert made.run(call, math.inf) == 2**31 - 1


def test_call_without_a_timeout_has_the_default_one() -> None:
    made = AdminWorld()

    def call(requester: Requester) -> Steps[float]:
        yield from ()
        requester.limit(None)
        return requester.deadline_ms - made.clock.now_ms

    assert made.run(call) == TIMEOUT_MS


def test_error_of_an_item_has_its_name() -> None:
    error = item_error("topic 'a'", 36, None)
    assert isinstance(error, TopicExistsError)
    assert str(error).startswith("topic 'a': ")
    assert item_error("topic 'a'", 0, None) is None


def test_retriable_error_of_an_item_is_raised() -> None:
    with pytest.raises(CoordinatorNotAvailableError, match="group 'g': "):
        final_item_error("group 'g'", 15, None)
    missing = final_item_error("topic 'a'", 3, None)  # retriable for producers alone
    assert isinstance(missing, UnknownTopicOrPartitionError)
    assert final_item_error("topic 'a'", 0, None) is None
