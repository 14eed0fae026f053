"""Connections of a processor."""

import time
from collections.abc import Iterator

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import Request
from kclient.broker.network.request_metrics import RequestMetrics
from kclient.broker.server.kafka_apis import API_TABLE, version_spans
from kclient.broker.server.request_parser import ApiVersionManager, RequestParser
from kclient.network.selector import Selector
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import (
    FetchResponse,
)
from tests.support.clients.wire import Wire, batch, fetch_request

HOST = "127.0.0.1"


class OneConnection:
    """A processor without a thread, which responds to each request at once, and its client."""

    def __init__(self) -> None:
        runtime = system_runtime()
        tasks = runtime.tasks
        self.now_ms = 1_000_000.0
        self.throttle_ms = 0
        self.metrics = RequestMetrics(lambda: int(self.now_ms * 1e6), tasks.lock())
        quotas = ConnectionQuotas(10, 10, CreationRate(10), tasks.condition())
        parser = RequestParser(ApiVersionManager(version_spans(API_TABLE)))
        self.processor = Processor(
            0,
            "PLAINTEXT",
            Selector(runtime.net, runtime.clock),
            quotas,
            parser.parse,
            self.respond,
            tasks.condition(),
            self.metrics,
        )
        listener = runtime.net.listen((HOST, 0), 1)
        self.wire = Wire(f"{HOST}:{listener.local_address()[1]}")
        self.wire.socket.setblocking(False)
        quotas.reserve(0.0)
        quotas.try_add(HOST)
        self.processor.accept(listener.accept(), HOST)
        listener.close()

    def respond(self, request: Request) -> bool:
        request.meter(lambda _request, _bytes: self.throttle_ms)
        request.respond(ApiVersionsResponse())
        return True

    def run_once(self) -> None:
        self.processor.run_once(self.now_ms, 1000.0)

    def responds(self) -> bool:
        """Send a request; return whether the next iteration responds to it."""
        sent = self.wire.send(ApiVersionsRequest(), 1)
        self.processor.run_once(self.now_ms, 0.0)
        try:
            return self.wire.receive(ApiVersionsResponse, 1)[0] == sent
        except BlockingIOError:
            return False


@pytest.fixture
def connection() -> Iterator[OneConnection]:
    made = OneConnection()
    yield made
    made.processor.close()
    made.wire.close()


def test_response_is_written_by_the_iteration_that_received_the_request(
    connection: OneConnection,
) -> None:
    connection.run_once()  # registers the connection
    for _ in range(3):
        sent = connection.wire.send(ApiVersionsRequest(), 0)
        connection.run_once()
        assert connection.wire.receive(ApiVersionsResponse, 0)[0] == sent


def test_throttled_connection_is_read_after_the_throttle_time(connection: OneConnection) -> None:
    connection.run_once()  # registers the connection
    connection.throttle_ms = 500
    sent = connection.wire.send(ApiVersionsRequest(), 1)
    connection.run_once()
    correlation_id, response = connection.wire.receive(ApiVersionsResponse, 1)
    assert (correlation_id, response.throttle_time_ms) == (sent, 500)
    assert connection.metrics.snapshot()["ApiVersions"]["ThrottleTimeMs"].maximum == 500
    connection.now_ms += 499
    assert not connection.responds()
    assert connection.processor.idle_ms(connection.now_ms) == 1
    connection.now_ms += 1
    connection.throttle_ms = 0
    connection.run_once()
    assert connection.wire.receive(ApiVersionsResponse, 1)[1].throttle_time_ms == 0
    assert connection.responds()


def test_throttled_connection_that_was_closed_is_forgotten(connection: OneConnection) -> None:
    connection.run_once()
    connection.throttle_ms = 500
    connection.wire.send(ApiVersionsRequest(), 1)
    connection.run_once()
    connection.wire.close()
    connection.now_ms += 500
    connection.run_once()
    assert connection.processor.idle_ms(connection.now_ms) == float("inf")


def test_responses_keep_request_order(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"a"]))
    began = time.monotonic()
    long_poll = wire.send(fetch_request(topic, 1, max_wait_ms=300), 12)
    quick = wire.send(ApiVersionsRequest(), 0)
    assert wire.receive(FetchResponse, 12)[0] == long_poll
    assert time.monotonic() - began >= 0.3
    assert wire.receive(ApiVersionsResponse, 0)[0] == quick
