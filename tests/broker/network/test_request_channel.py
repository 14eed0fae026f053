import logging
import threading
from typing import cast

import pytest

from kclient.broker.network.request_channel import (
    RequestChannel,
    Response,
)
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.virtual.loose_request import Sink, request


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
