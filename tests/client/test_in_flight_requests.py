"""Requests in flight: their order, limits, deadlines and outcomes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.client.client_request import ClientRequest, SimpleBuilder
from kclient.client.in_flight_requests import InFlightRequest, InFlightRequests, not_sent
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaError
from kclient.network.network_send import NetworkSend
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse


def client_request(
    node_id: str = "1", number: int = 0, *, timeout_ms: float = 1000.0, internal: bool = False
) -> ClientRequest:
    return ClientRequest(
        node_id,
        SimpleBuilder(MetadataRequest(topics=[])),
        number,
        created_ms=5.0,
        expect_response=True,
        request_timeout_ms=timeout_ms,
        internal=internal,
    )


def sent(
    node_id: str = "1",
    number: int = 0,
    *,
    sent_ms: float = 0.0,
    timeout_ms: float = 1000.0,
    internal: bool = False,
    written: bool = True,
) -> InFlightRequest:
    send = NetworkSend(node_id, [b"x"])
    if written:
        send.write_to(Written())  # type: ignore[arg-type]  # the one method that is called
    request = client_request(node_id, number, timeout_ms=timeout_ms, internal=internal)
    return InFlightRequest(request, 12, send, sent_ms)


class Written:
    """A transport that takes everything."""

    def write(self, parts: list[bytes]) -> int:
        return sum(map(len, parts))

    def wants_write(self) -> bool:
        return False


@pytest.fixture
def in_flight() -> InFlightRequests:
    return InFlightRequests(2)


def test_requests_of_a_node_are_completed_in_order(in_flight: InFlightRequests) -> None:
    first, second, other = sent(number=0), sent(number=1), sent("2")
    for request in (first, second, other):
        in_flight.add(request)
    assert (in_flight.count(), in_flight.count("1"), in_flight.count("3")) == (3, 2, 0)
    assert in_flight.oldest("1") is first
    assert in_flight.complete_next("1") is first
    assert in_flight.complete_next("1") is second
    assert in_flight.complete_next("1") is None
    assert (in_flight.oldest("1"), in_flight.oldest("9")) == (None, None)
    assert in_flight.count() == 1


def test_request_without_response_is_completed_by_its_frame(in_flight: InFlightRequests) -> None:
    requests = first, second, third = sent(number=0), sent(number=1), sent(number=2)
    for request in requests:
        in_flight.add(request)
    assert in_flight.complete_sent(second.send) is second
    assert in_flight.complete_sent(third.send) is third
    assert (in_flight.oldest("1"), in_flight.count("1")) == (first, 1)
    with pytest.raises(IllegalStateError, match="node 1: the request is not in flight"):
        in_flight.complete_sent(third.send)


def test_next_request_waits_until_the_last_frame_is_written(in_flight: InFlightRequests) -> None:
    assert in_flight.can_send_more("1")
    in_flight.add(sent(written=False))
    assert not in_flight.can_send_more("1")
    assert not in_flight.can_send_more("1", internal=True)
    assert in_flight.can_send_more("2")


def test_limit_does_not_count_internal_requests(in_flight: InFlightRequests) -> None:
    in_flight.add(sent())
    in_flight.add(sent(internal=True))
    assert in_flight.can_send_more("1")
    in_flight.add(sent())
    assert not in_flight.can_send_more("1")
    assert in_flight.can_send_more("1", internal=True)


def test_request_with_the_earliest_deadline_is_overdue(in_flight: InFlightRequests) -> None:
    assert in_flight.next_deadline_ms == math.inf
    slow, fast = sent(timeout_ms=900), sent(number=1, sent_ms=100, timeout_ms=300)
    other = sent("2", timeout_ms=500)
    for request in (slow, fast, other):
        in_flight.add(request)
    assert in_flight.next_deadline_ms == 400
    assert in_flight.overdue(399) == []
    assert in_flight.overdue(450) == [fast]
    assert in_flight.overdue(500) == [fast, other]
    in_flight.clear_all("1")
    assert in_flight.overdue(450) == []
    assert in_flight.next_deadline_ms == 500


def test_cleared_requests_are_returned_oldest_first(in_flight: InFlightRequests) -> None:
    requests = [sent(number=number) for number in range(3)]
    for request in requests:
        in_flight.add(request)
    in_flight.add(sent("2"))
    assert list(in_flight.clear_all("1")) == requests
    assert list(in_flight.clear_all("1")) == []
    assert in_flight.count() == 1
    in_flight.clear()
    assert (in_flight.count(), in_flight.next_deadline_ms) == (0, math.inf)


@given(st.lists(st.sampled_from(["add 1", "add 2", "next 1", "next 2", "last 1", "clear 2"])))
def test_count_is_the_sum_of_all_nodes(steps: list[str]) -> None:
    in_flight = InFlightRequests(5)
    for number, step in enumerate(steps):
        action, node_id = step.split()
        if action == "add":
            in_flight.add(sent(node_id, number))
        elif action == "next":
            in_flight.complete_next(node_id)
        elif action == "last" and (oldest := in_flight.oldest(node_id)):
            in_flight.complete_sent(oldest.send)
        elif action == "clear":
            in_flight.clear_all(node_id)
        assert in_flight.count() == in_flight.count("1") + in_flight.count("2")


def test_outcomes_have_the_facts_of_the_request() -> None:
    request, response = sent("7", 3, sent_ms=10.0), MetadataResponse()
    assert (request.api_name, request.deadline_ms) == ("METADATA", 1010.0)
    completed = request.completed(response, 60.0)
    assert (completed.destination, completed.correlation_id, completed.api_version) == ("7", 3, 12)
    assert (completed.response, completed.latency_ms) == (response, 55.0)
    assert not completed.was_disconnected
    lost = DisconnectedError("gone")
    failed = request.failed(lost, 60.0, timed_out=True)
    assert (failed.error, failed.was_disconnected, failed.timed_out) == (lost, True, True)
    assert failed.response is None


def test_request_that_was_not_sent_was_not_disconnected() -> None:
    mismatch = UnsupportedVersionError("too old")
    outcome = not_sent(client_request(), mismatch, 60.0)
    assert (outcome.error, outcome.version_mismatch) == (mismatch, mismatch)
    assert not outcome.was_disconnected
    assert not_sent(client_request(), KafkaError("x"), 60.0).version_mismatch is None


def test_throttle_time_extends_the_timeouts_of_the_node() -> None:
    in_flight = InFlightRequests(5)
    for node_id, number in (("1", 0), ("1", 1), ("2", 2)):
        in_flight.add(sent(node_id, number, timeout_ms=1000))
    in_flight.throttle("1", 5000)
    in_flight.throttle("1", 2000)
    in_flight.throttle("3", 9000)
    assert [each.request.destination for each in in_flight.overdue(1000)] == ["2"]
    in_flight.clear_all("2")
    assert in_flight.overdue(7999) == []
    assert in_flight.next_deadline_ms == 8000
    assert [each.request.correlation_id for each in in_flight.overdue(8000)] == [0]
