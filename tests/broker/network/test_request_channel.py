import logging
import threading
from typing import cast

import pytest

from kclient.broker.network.kafka_request_handler_pool import KafkaRequestHandlerPool
from kclient.broker.network.request_channel import Request, RequestChannel, Response
from kclient.common.system_tasks import SystemTasks
from kclient.network.memory_pool import SimpleMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.messages.list_offsets import (
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
    return Request(sink or Sink(), receive, "127.0.0.1", header, None, 0.0)


def test_the_queue_is_bounded_and_keeps_order() -> None:
    channel = RequestChannel(2, threading.Condition())
    first, second = request(), request()
    assert channel.send_request(first)
    assert channel.send_request(second)
    assert not channel.send_request(request())
    assert channel.size() == 2
    assert channel.receive_request(0.0) is first
    assert channel.receive_request(0.0) is second
    assert channel.receive_request(1.0) is None


def test_a_closed_channel_takes_nothing_and_lets_go_of_handlers() -> None:
    channel = RequestChannel(2, threading.Condition())
    channel.send_request(request())
    channel.close()
    assert not channel.send_request(request())
    assert channel.receive_request(1e9) is not None
    assert channel.receive_request(1e9) is None


def test_the_pool_handles_and_ends() -> None:
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


def test_a_request_whose_handling_fails_costs_no_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = RequestChannel(100, threading.Condition())
    sink = Sink()
    failing, completed, later = request(sink), request(), request()
    completed.respond_nothing()
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


def test_a_second_answer_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    asked = request(sink)
    asked.respond_nothing()
    asked.close_connection()
    assert sink.responses == [Response("connection")]
    assert "answered twice" in caplog.text


def test_an_answer_that_cannot_be_encoded_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Sink()
    part = ListOffsetsPartitionResponse(leader_epoch=3)  # not in version 1
    answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[part])])
    with caplog.at_level(logging.ERROR):
        request(sink).respond(answer)
    assert sink.responses == [Response("connection", close=True)]
    assert "leader_epoch" in caplog.text


def test_answers_carry_the_correlation_id() -> None:
    sink = Sink()
    request(sink).respond(ListOffsetsResponse())
    (response,) = sink.responses
    assert response.parts is not None
    assert cast("bytes", response.parts[0])[:4] == b"\0\0\0\7"
