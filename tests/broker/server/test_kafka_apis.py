import logging
import threading
from typing import Any, cast

import pytest

from kclient.broker.network.request_channel import Request, RequestChannel, Response
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.kafka_apis import KafkaApis, LongRequests
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import NotCoordinatorError
from kclient.network.memory_pool import SimpleMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader, decode_response
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tests.support.wire import joined

SERVICES = cast("BrokerServices", None)


class Sink:
    def __init__(self) -> None:
        self.responses: list[Response] = []

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


def handled(api: ServedApi, body: Any) -> Response | None:
    """Let the dispatch table handle a request; return what was answered, if anything was."""
    sink = Sink()
    key = api.request_type.api_key
    receive = NetworkReceive("c", 100, SimpleMemoryPool(100))
    header = RequestHeader(key, api.versions.stop - 1, 5, None)
    long_requests = LongRequests(*(RequestChannel(1, threading.Condition()) for _ in range(2)))
    KafkaApis(SERVICES, {key: api}, long_requests).handle(
        Request(sink, receive, "", header, body, 0.0)
    )
    assert len(sink.responses) <= 1
    return sink.responses[0] if sink.responses else None


def error_code(response: Response | None) -> int:
    assert response is not None
    assert response.parts is not None
    _, answer = decode_response(joined(response.parts), HeartbeatResponse, 4)
    return answer.error_code


def test_kafkas_own_errors_become_their_codes(caplog: pytest.LogCaptureFixture) -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        raise NotCoordinatorError

    with caplog.at_level(logging.WARNING):
        assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == 16
    assert caplog.records == []


def test_unexpected_errors_are_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        raise ZeroDivisionError("the cause")

    assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == -1
    assert "the cause" in caplog.text


def test_where_no_answer_can_tell_the_connection_is_closed() -> None:
    def handle(services: BrokerServices, request: Request, body: ListOffsetsRequest) -> None:
        raise ZeroDivisionError

    api = ServedApi(ListOffsetsRequest, handle)
    assert handled(api, ListOffsetsRequest()) == Response("c", close=True)


def test_an_answer_of_its_own_for_failures() -> None:
    def handle(services: BrokerServices, request: Request, body: ListOffsetsRequest) -> None:
        raise ZeroDivisionError

    def on_error(body: ListOffsetsRequest, code: int) -> ListOffsetsResponse:
        return ListOffsetsResponse()

    answered = handled(ServedApi(ListOffsetsRequest, handle, on_error), ListOffsetsRequest())
    assert answered is not None
    assert not answered.close


def test_answered_before_it_failed() -> None:
    def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> None:
        request.respond(HeartbeatResponse(error_code=3))
        raise ZeroDivisionError

    assert error_code(handled(ServedApi(HeartbeatRequest, handle), HeartbeatRequest())) == 3


def test_later_answers() -> None:
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
