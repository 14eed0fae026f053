"""Queued requests: sending, completion, failure, and the polls of the heartbeat task."""

from collections.abc import Callable

import pytest

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.client.find_coordinator import CoordinatorType, FindCoordinator
from kclient.common.errors import (
    BootstrapError,
    DisconnectedError,
    KafkaError,
    KafkaTimeoutError,
    WakeupError,
)
from kclient.common.types import Node
from kclient.consumer.consumer_core import ConsumerCore
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.consumer.conftest import ConsumerWorld


class Requests:
    """The network client of a consumer that knows its broker."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.core: ConsumerCore = world.core(request_timeout_ms=1000, reconnect_backoff_ms=100)
        self.network = self.core.network
        self.node = world.broker.node
        self.poll_until(lambda: not self.core.network.metadata.cluster().is_bootstrap)
        connected = self.send()
        self.poll_until(lambda: connected.done)

    def poll(self, timeout_ms: float = 100.0) -> None:
        self.network.poll(timeout_ms, self.world.clock.now_ms)

    def poll_until(self, done: Callable[[], bool], within_ms: float = 10_000) -> None:
        deadline_ms = self.world.clock.now_ms + within_ms
        while not done():
            assert self.world.clock.now_ms < deadline_ms, "it took too long"
            self.poll()

    def send(self, timeout_ms: float | None = None) -> RequestFuture[ClientResponse]:
        builder = SimpleBuilder(MetadataRequest(topics=[]))
        return self.network.send(self.node, builder, timeout_ms=timeout_ms)

    def find(self) -> RequestFuture[ClientResponse]:
        return self.network.send(self.node, FindCoordinator(["g"], CoordinatorType.GROUP))

    def sent(self, api_key: ApiKey) -> int:
        return self.world.broker.asked_for(api_key)


@pytest.fixture
def requests(world: ConsumerWorld) -> Requests:
    return Requests(world)


def test_request_is_sent_by_the_next_poll(requests: Requests) -> None:
    before = requests.sent(ApiKey.METADATA)
    future = requests.send()
    assert requests.network.has_pending(requests.node)
    assert requests.sent(ApiKey.METADATA) == before
    requests.poll_until(lambda: future.done)
    assert future.value.body(MetadataResponse).cluster_id == "cluster"
    assert not requests.network.has_pending(requests.node)


def test_requests_are_sent_in_order(requests: Requests) -> None:
    done: list[RequestFuture[ClientResponse]] = []
    sent = [requests.send() for _ in range(3)]
    for future in sent:
        future.on_done(done.append)
    requests.poll_until(lambda: len(done) == 3)
    assert done == sent


def test_listener_may_send_the_next_request(requests: Requests) -> None:
    futures: list[RequestFuture[ClientResponse]] = []
    requests.send().on_done(lambda _: futures.append(requests.send()))
    requests.poll_until(lambda: bool(futures) and futures[0].done)
    assert futures[0].succeeded


def test_request_to_an_unreachable_broker_fails(requests: Requests) -> None:
    unknown = Node(9, "10.0.0.9", 9092)
    future = requests.network.send(unknown, SimpleBuilder(MetadataRequest(topics=[])))
    requests.poll_until(lambda: future.done)
    assert isinstance(future.error, DisconnectedError)
    assert not requests.network.has_pending(unknown)


def test_request_that_cannot_be_sent_fails_at_its_timeout(requests: Requests) -> None:
    requests.world.broker.silent = True
    coordinator = requests.node._replace(id=77)  # a connection of its own, never ready
    builder = SimpleBuilder(MetadataRequest(topics=[]))
    future = requests.network.send(coordinator, builder, timeout_ms=300)
    requests.poll_until(lambda: future.done)
    assert isinstance(future.error, KafkaTimeoutError)
    assert "could not be sent within 300 ms" in str(future.error)


def test_request_to_a_silent_broker_times_out(requests: Requests) -> None:
    requests.world.broker.silent = True
    began_ms = requests.world.clock.now_ms
    future = requests.send(timeout_ms=300)
    requests.poll_until(lambda: future.done)
    assert isinstance(future.error, DisconnectedError)
    assert "no response to METADATA within 300 ms" in str(future.error)
    assert 300 <= requests.world.clock.now_ms - began_ms < 600
    assert requests.network.known_errors()[0] is future.error
    requests.network.clear_last_error()
    assert future.error not in requests.network.known_errors()


def test_disconnect_fails_queued_and_sent_requests(requests: Requests) -> None:
    requests.world.broker.silent = True
    sent = requests.send()
    requests.poll(0.0)
    queued = requests.send()
    requests.network.disconnect(requests.node)
    requests.poll_until(lambda: sent.done and queued.done)
    assert isinstance(sent.error, DisconnectedError)
    assert str(queued.error) == f"connection to {requests.node} was given up"
    requests.world.broker.silent = False
    requests.world.sleep(1000.0)  # the reconnect backoff
    again = requests.send()
    requests.poll_until(lambda: again.done)
    assert again.succeeded


def test_broker_is_unavailable_during_its_reconnect_backoff(requests: Requests) -> None:
    assert not requests.network.is_unavailable(requests.node)
    requests.world.net.stop(("10.0.0.1", 9092))
    future = requests.send()
    requests.poll_until(lambda: future.done)
    assert future.failed
    assert requests.network.is_unavailable(requests.node)
    requests.world.sleep(1000.0)
    assert not requests.network.is_unavailable(requests.node)


def test_heartbeat_task_completes_membership_requests_only(requests: Requests) -> None:
    metadata, find = requests.send(), requests.find()
    for _ in range(20):
        requests.network.poll_membership(requests.world.clock.now_ms)
        requests.world.sleep(1.0)
    assert (find.done, metadata.done) == (True, False)
    requests.poll(0.0)
    assert metadata.succeeded


def test_poll_does_not_wait_while_outcomes_are_unreported(requests: Requests) -> None:
    future = requests.send()
    for _ in range(20):
        requests.network.poll_membership(requests.world.clock.now_ms)
        requests.world.sleep(1.0)
    before_ms = requests.world.clock.now_ms
    requests.poll(5000.0)
    assert future.done
    assert requests.world.clock.now_ms == before_ms


def test_response_callback_precedes_the_future(requests: Requests) -> None:
    calls: list[str] = []
    requests.network.on_response(lambda response: calls.append(response.api_key.name))
    requests.find().on_done(lambda _: calls.append("done"))
    requests.poll_until(lambda: len(calls) == 2)
    assert calls == ["FIND_COORDINATOR", "done"]


def test_wakeup_is_raised_once(requests: Requests) -> None:
    requests.network.maybe_raise_wakeup()
    requests.network.wakeup()
    before_ms = requests.world.clock.now_ms
    requests.poll(5000.0)
    assert requests.world.clock.now_ms == before_ms
    with pytest.raises(WakeupError):
        requests.network.maybe_raise_wakeup()
    requests.network.maybe_raise_wakeup()
    requests.network.wakeup()
    requests.network.forget_wakeup()
    requests.network.maybe_raise_wakeup()


def test_unsupported_version_fails_the_request(requests: Requests) -> None:
    future = requests.network.send(
        requests.node, SimpleBuilder(MetadataRequest(topics=[]), oldest=90, latest=91)
    )
    requests.poll_until(lambda: future.done)
    assert future.error is not None
    assert "METADATA" in str(future.error)
    assert not future.error.retriable


def test_known_errors_end_with_the_bootstrap_error(world: ConsumerWorld) -> None:
    world.net.stop(("10.0.0.1", 9092))
    network = world.core().network
    error = KafkaError("of a retried request")
    network.record_error(error)
    for _ in range(20):
        network.poll(100.0, world.clock.now_ms)
    known = network.known_errors()
    assert known[0] is error
    assert isinstance(known[1], BootstrapError)


def test_closed_client_has_no_requests(requests: Requests) -> None:
    future = requests.send()
    requests.network.close()
    assert not requests.network.has_pending(requests.node)
    assert not future.done
