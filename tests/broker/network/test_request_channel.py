import logging
import threading
from typing import cast

import pytest

from kclient.broker.network.kafka_request_handler_pool import KafkaRequestHandlerPool
from kclient.broker.network.request_channel import (
    ConnectionContext,
    Request,
    RequestChannel,
    Response,
)
from kclient.common.system_tasks import SystemTasks
from kclient.network.authenticator import ANONYMOUS
from kclient.network.memory_pool import SimpleMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class Sink:
    def __init__(self) -> None:
        self.responses: list[Response] = []

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


def request(sink: Sink | None = None, version: int = 1) -> Request:
    header = RequestHeader(ApiKey.LIST_OFFSETS, version, 7, "test")
    receive = NetworkReceive("connection", 100, SimpleMemoryPool(100, threading.RLock()))
    connection = ConnectionContext("connection", "127.0.0.1", "PLAINTEXT", ANONYMOUS)
    return Request(sink or Sink(), receive, connection, header, None, 0.0)


def test_queue_is_bounded_and_keeps_order() -> None:
    channel = RequestChannel(2, threading.Condition())
    first, second = request(), request()
    assert channel.send_request(first)
    assert channel.send_request(second)
    assert not channel.send_request(request())
    assert channel.size() == 2
    assert channel.receive_request(0.0) is first
    assert channel.receive_request(0.0) is second
    assert channel.receive_request(1.0) is None


def test_closed_channel_refuses_requests_and_wakes_handlers() -> None:
    channel = RequestChannel(2, threading.Condition())
    channel.send_request(request())
    channel.close()
    assert not channel.send_request(request())
    assert channel.receive_request(1e9) is not None
    assert channel.receive_request(1e9) is None


def test_pool_handles_requests_and_shuts_down() -> None:
    channel = RequestChannel(100, threading.Condition())
    handled: list[Request] = []
    done = threading.Event()

    def handle(given: Request) -> None:
        handled.append(given)
        if len(handled) == 50:
            done.set()

    pool = KafkaRequestHandlerPool(channel, handle, 3)
    pool.start(SystemTasks())
    requests = [request() for _ in range(50)]
    for each in requests:
        assert channel.send_request(each)
    assert done.wait(5)
    pool.shutdown(5.0)
    assert set(handled) == set(requests)
    assert not [t for t in threading.enumerate() if t.name.startswith("kclient-request-handler")]


def test_handler_survives_failed_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = RequestChannel(100, threading.Condition())
    sink = Sink()
    failing, completed, later = request(sink), request(), request()
    completed.complete_without_response()
    done = threading.Event()

    def handle(given: Request) -> None:
        if given is not later:
            raise RuntimeError("no")
        done.set()

    pool = KafkaRequestHandlerPool(channel, handle, 1)
    pool.start(SystemTasks())
    for each in (failing, completed, later):
        assert channel.send_request(each)
    assert done.wait(5)
    pool.shutdown(5.0)
    assert sink.responses == [Response("connection", close=True)]
    assert caplog.text.count("could not be handled") == 2


def test_second_response_is_discarded(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    given = request(sink)
    given.complete_without_response()
    given.close_connection()
    assert sink.responses == [Response("connection")]
    assert "got a second response" in caplog.text


def test_response_that_cannot_be_encoded_closes_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Sink()
    part = ListOffsetsPartitionResponse(leader_epoch=3)  # not in version 1
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[part])])
    with caplog.at_level(logging.ERROR):
        request(sink).respond(response)
    assert sink.responses == [Response("connection", close=True)]
    assert "leader_epoch" in caplog.text


def test_response_carries_correlation_id() -> None:
    sink = Sink()
    request(sink).respond(ListOffsetsResponse())
    (response,) = sink.responses
    assert response.parts is not None
    assert cast("bytes", response.parts[0])[:4] == b"\0\0\0\7"
