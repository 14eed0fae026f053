import logging
import threading
import time
from typing import Any, cast

import pytest

from kclient.broker.network.request_channel import (
    ConnectionContext,
    Request,
    RequestChannel,
    Response,
)
from kclient.broker.server.kafka_apis import KafkaApis
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import NotCoordinatorError
from kclient.network.authenticator import ANONYMOUS
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader, decode_response
from kclient.protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.log_offsets import ListOffsetsRequest, ListOffsetsResponse
from tests.support.clients.wire import joined

SERVICES = cast("BrokerServices", None)
CONNECTION = ConnectionContext("c", "", "PLAINTEXT", ANONYMOUS)


class Sink:
    def __init__(self) -> None:
        self.responses: list[Response] = []

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


class LoggedReceive(NetworkReceive):
    """Received frame that records the number of queued responses at its release."""

    def __init__(self, sink: Sink) -> None:
        super().__init__("c", 100, UnlimitedMemoryPool())
        self._sink = sink
        self.released_after: list[int] = []

    def release(self) -> None:
        self.released_after.append(len(self._sink.responses))


def handled(api: ServedApi, body: Any) -> Response | None:
    """Dispatch a request; return the response, or None."""
    return handled_with_memory(api, body)[0]


def handled_with_memory(api: ServedApi, body: Any) -> tuple[Response | None, list[int]]:
    """Handle a request; return the response and the number of responses at its release."""
    sink = Sink()
    key = api.request_type.api_key
    receive = LoggedReceive(sink)
    header = RequestHeader(key, api.versions.stop - 1, 5, None)
    long_requests = RequestChannel(1, threading.Condition())
    KafkaApis(SERVICES, {key: api}, long_requests, time.monotonic_ns).handle(
        Request(sink, receive, CONNECTION, header, body)
    )
    assert len(sink.responses) <= 1
    return sink.responses[0] if sink.responses else None, receive.released_after


def error_code(response: Response | None) -> int:
    assert response is not None
    assert response.parts is not None
    _, message = decode_response(joined(response.parts), HeartbeatResponse, 4)
    return message.error_code


def test_kafka_errors_become_error_codes(caplog: pytest.LogCaptureFixture) -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        raise NotCoordinatorError

    with caplog.at_level(logging.WARNING):
        assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == 16
    assert caplog.records == []


def test_unexpected_errors_get_response_and_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        raise ZeroDivisionError("the cause")

    assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == -1
    assert "the cause" in caplog.text


def test_connection_closes_if_response_has_no_error_code() -> None:
    def handle(services: BrokerServices, request: Request, body: ListOffsetsRequest) -> None:
        raise ZeroDivisionError

    api = ServedApi(ListOffsetsRequest, handle)
    assert handled(api, ListOffsetsRequest()) == Response("c", close=True)


def test_error_response_of_the_api_is_used() -> None:
    def handle(services: BrokerServices, request: Request, body: ListOffsetsRequest) -> None:
        raise ZeroDivisionError

    def on_error(body: ListOffsetsRequest, code: int) -> ListOffsetsResponse:
        return ListOffsetsResponse()

    response = handled(ServedApi(ListOffsetsRequest, handle, on_error), ListOffsetsRequest())
    assert response is not None
    assert not response.close


def test_failure_after_response_is_only_logged() -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        request.respond(HeartbeatResponse(error_code=3))
        raise ZeroDivisionError

    assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == 3


@pytest.mark.parametrize("error", [None, NotCoordinatorError(), ZeroDivisionError()])
def test_memory_is_released_before_the_response_wakes_the_network(error: Exception | None) -> None:
    """Requests that wait for memory are read when the response is sent, not a poll later."""

    def handle(
        services: BrokerServices, request: Request, body: HeartbeatRequest
    ) -> HeartbeatResponse:
        if error is not None:
            raise error
        return HeartbeatResponse()

    response, released = handled_with_memory(
        ServedApi(HeartbeatRequest, handle), HeartbeatRequest()
    )
    assert response is not None
    assert released == [0]


def test_delayed_request_releases_memory_at_once() -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None: ...

    api = ServedApi(HeartbeatRequest, handle)
    assert handled_with_memory(api, HeartbeatRequest()) == (None, [0])


def test_delayed_response() -> None:
    kept: list[Request] = []

    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        kept.append(request)

    assert handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest()) is None
    assert kept[0].header.api_key is ApiKey.HEARTBEAT


def test_versions_served() -> None:
    def handle(services: BrokerServices, request: Request, body: object) -> None:
        return None

    assert ServedApi(HeartbeatRequest, handle).versions == range(5)
    assert ServedApi(HeartbeatRequest, handle, max_version=2).versions == range(3)
