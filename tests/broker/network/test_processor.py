"""Connections of a processor."""

import time

from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import (
    FetchResponse,
)
from tests.support.clients.wire import Wire, batch, fetch_request


def test_responses_keep_request_order(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"a"]))
    began = time.monotonic()
    long_poll = wire.send(fetch_request(topic, 1, max_wait_ms=300), 12)
    quick = wire.send(ApiVersionsRequest(), 0)
    assert wire.receive(FetchResponse, 12)[0] == long_poll
    assert time.monotonic() - began >= 0.3
    assert wire.receive(ApiVersionsResponse, 0)[0] == quick
