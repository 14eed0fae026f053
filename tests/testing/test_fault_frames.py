"""Kafka frames in a byte stream, and the requests that responses belong to."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from kclient.protocol.api_keys import ApiKey
from kclient.testing.fault_frames import Conversation, Direction, Frame, FrameSplitter

TO_BROKER, TO_CLIENT = Direction.TO_BROKER, Direction.TO_CLIENT


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(key: int, version: int, correlation_id: int) -> bytes:
    return framed(struct.pack(">hhi", key, version, correlation_id) + b"rest")


def response(correlation_id: int) -> bytes:
    return framed(struct.pack(">i", correlation_id) + b"rest")


@given(st.lists(st.binary(max_size=20), max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_frames_do_not_depend_on_the_pieces_of_the_stream(
    bodies: list[bytes], sizes: list[int]
) -> None:
    stream = b"".join(map(framed, bodies))
    splitter, found = FrameSplitter(), []
    position = 0
    for number in range(len(stream) + 1):
        size = sizes[number % len(sizes)]
        found += splitter.feed(stream[position : position + size])
        position += size
    assert found == [framed(body) for body in bodies]
    assert splitter.rest() == b""


def test_incomplete_frame_is_kept() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(framed(b"whole") + framed(b"half")[:-1]) == [framed(b"whole")]
    assert splitter.rest() == framed(b"half")[:-1]
    assert splitter.rest() == b""


def test_stream_of_another_protocol_is_passed_on_from_its_first_wrong_size() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(framed(b"kafka") + b"\xff\xff\xff\xffGET") == [
        framed(b"kafka"),
        b"\xff\xff\xff\xffGET",
    ]
    assert splitter.feed(b" /") == [b" /"]
    assert FrameSplitter().feed(b"HTTP/1.1") == [b"HTTP/1.1"]


def test_response_has_api_and_version_of_its_request() -> None:
    conversation = Conversation(3)
    asked = request(ApiKey.FETCH, 12, 77)
    assert conversation.name(TO_BROKER, asked) == Frame(
        3, TO_BROKER, ApiKey.FETCH, 12, 77, len(asked)
    )
    returned = response(77)
    expected = Frame(3, TO_CLIENT, ApiKey.FETCH, 12, 77, len(returned))
    assert conversation.name(TO_CLIENT, returned) == expected
    assert conversation.name(TO_CLIENT, returned).api is None  # each request has one response


def test_frames_that_are_not_kafkas_have_no_name() -> None:
    conversation = Conversation(1)
    unknown_api = request(999, 0, 5)
    for direction, data in ((TO_BROKER, b"x"), (TO_BROKER, unknown_api), (TO_CLIENT, b"x")):
        assert conversation.name(direction, data) == Frame(1, direction, None, -1, -1, len(data))
    assert conversation.name(TO_CLIENT, response(5)).api is None


def test_requests_without_response_are_forgotten() -> None:
    conversation = Conversation(1)
    for number in range(20_000):
        conversation.name(TO_BROKER, request(ApiKey.PRODUCE, 9, number))
    assert len(conversation._asked) == 10_000
    assert conversation.name(TO_CLIENT, response(19_999)).api is ApiKey.PRODUCE
    assert conversation.name(TO_CLIENT, response(0)).api is None
