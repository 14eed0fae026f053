"""Request handler threads."""

import threading

import pytest

from kclient.broker.network.kafka_request_handler_pool import KafkaRequestHandlerPool
from kclient.broker.network.request_channel import (
    Request,
    RequestChannel,
    Response,
)
from kclient.common.system_tasks import SystemTasks
from tests.support.virtual.loose_request import Sink, request


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
