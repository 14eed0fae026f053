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
        self.clock, tasks = runtime.clock, runtime.tasks
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
            RequestMetrics(time.monotonic_ns, tasks.lock()),
        )
        listener = runtime.net.listen((HOST, 0), 1)
        self.wire = Wire(f"{HOST}:{listener.local_address()[1]}")
        self.wire.socket.setblocking(False)
        quotas.reserve(0.0)
        quotas.try_add(HOST)
        self.processor.accept(listener.accept(), HOST)
        listener.close()

    def respond(self, request: Request) -> bool:
        request.respond(ApiVersionsResponse())
        return True

    def run_once(self) -> None:
        self.processor.run_once(self.clock.monotonic_ms(), 1000.0)


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


def test_responses_keep_request_order(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"a"]))
    began = time.monotonic()
    long_poll = wire.send(fetch_request(topic, 1, max_wait_ms=300), 12)
    quick = wire.send(ApiVersionsRequest(), 0)
    assert wire.receive(FetchResponse, 12)[0] == long_poll
    assert time.monotonic() - began >= 0.3
    assert wire.receive(ApiVersionsResponse, 0)[0] == quick
