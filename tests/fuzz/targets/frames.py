"""Received frames of client and broker: sizes, fragments, headers, and other protocols.

The first byte of an input selects the reading side and its size limit; the second, the fragments
in which the bytes arrive.
"""

import struct
from collections.abc import Iterator
from random import Random

from kclient.broker.network.request_channel import ConnectionContext, Response
from kclient.broker.server.kafka_apis import API_TABLE, version_spans
from kclient.broker.server.request_parser import ApiVersionManager, RequestParser
from kclient.network.authenticator import ANONYMOUS
from kclient.network.network_receive import NetworkReceive
from kclient.network.selector import Selector
from kclient.protocol.headers import (
    decode_response,
    encode_request,
    encode_response,
    peek_correlation_id,
)
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import MEBIBYTE, Target
from tests.support.clients.wire import joined
from tests.support.virtual.virtual_home import IP, VirtualHome

_ADDRESS = ("10.0.0.1", 9092)
_CONNECTION = ConnectionContext("fuzz", "10.9.9.9", "PLAINTEXT", ANONYMOUS)
_SIZE = struct.Struct(">i")
_MAX_POLLS = 100_000
_PARSER = RequestParser(ApiVersionManager(version_spans(API_TABLE)))


class _NoSink:
    def enqueue_response(self, response: Response) -> None:
        raise AssertionError("this peer sends no response")


class _Talker:
    """Peer that sends a stream to each new connection, and closes it."""

    def __init__(self, stream: bytes, random: Random) -> None:
        self._stream = stream
        self._random = random

    def connected(self, socket: VirtualSocket) -> None:
        say(socket, self._stream, self._random)

    def received(self, socket: VirtualSocket, data: bytes) -> None: ...


def say(socket: VirtualSocket, stream: bytes, random: Random) -> None:
    """Send bytes in a few fragments, then the end of the stream."""
    half = random.randrange(len(stream) + 1)
    for piece in (stream[:half], stream[half:]):
        if piece:
            socket.deliver(piece)
    socket.end()


def run(data: bytes) -> None:
    """Receive a stream; compare the frames with the expected ones."""
    if len(data) < 2:
        return
    is_server, max_size = bool(data[0] & 1), 256 << (data[0] >> 1 & 15)
    random = Random(data[1])
    home = VirtualHome()
    runtime = home.runtime
    selector = Selector(runtime.net, runtime.clock, max_receive_size=max_size)
    small = 1 + data[1] % 7
    if data[1] < 100:
        home.net.rechunk(IP, _ADDRESS[0], 1, small)
        home.net.rechunk(IP, IP, 1, small)
    if is_server:
        _accept(home, selector, data[2:], random)
    else:
        home.net.peers[_ADDRESS] = lambda: _Talker(data[2:], random)
        selector.connect("peer", _ADDRESS)
    received = _receive_all(selector)
    selector.close()
    assert [bytes(frame.payload) for frame in received] == expected_frames(data[2:], max_size)
    for frame in received:
        _parse(frame, is_server=is_server)


def _accept(home: VirtualHome, selector: Selector, stream: bytes, random: Random) -> None:
    net = home.runtime.net
    listener = net.listen((IP, _ADDRESS[1]), 1)
    near = net.connect((IP, _ADDRESS[1]), -1, -1)
    assert isinstance(near, VirtualSocket)
    home.sleep(10)
    selector.register("peer", listener.accept())
    say(near, stream, random)


def _receive_all(selector: Selector) -> list[NetworkReceive]:
    received: list[NetworkReceive] = []
    now_ms = 0.0
    for _ in range(_MAX_POLLS):
        selector.poll(100.0, now_ms)
        received += selector.completed_receives
        if selector.disconnected:
            return received
    raise AssertionError("the connection is not closed")


def expected_frames(stream: bytes, max_size: int) -> list[bytes]:
    """Return the frames of a stream, up to the first that is truncated or has an invalid size."""
    frames = []
    position = 0
    while position + _SIZE.size <= len(stream):
        (size,) = _SIZE.unpack_from(stream, position)
        position += _SIZE.size
        if not 0 <= size <= max_size or position + size > len(stream):
            break
        frames.append(stream[position : position + size])
        position += size
    return frames


def _parse(receive: NetworkReceive, *, is_server: bool) -> None:
    with refusals():
        if is_server:
            _PARSER.parse(_NoSink(), receive, _CONNECTION)
        else:
            peek_correlation_id(receive.payload)
            decode_response(receive.payload, ApiVersionsResponse, 4)
    with refusals():
        if not is_server:
            decode_response(receive.payload, MetadataResponse, 12)


def seeds() -> Iterator[bytes]:
    """Yield streams of requests, of responses, and of other protocols."""
    requests = [
        joined(encode_request(ApiVersionsRequest(), version, 7, "client")) for version in (0, 3, 4)
    ]
    requests += [joined(encode_request(MetadataRequest(), 12, 8, None))]
    responses = [joined(encode_response(ApiVersionsResponse(), 4, 7))]
    responses += [joined(encode_response(MetadataResponse(), 12, 8))]
    other_protocols = (b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x46", b"SSH-2.0-x\r\n")
    for options in (bytes([7, 3]), bytes([7, 200]), bytes([31, 99])):
        yield options + b"".join(map(framed, requests))
        yield bytes([options[0] - 1]) + options[1:] + b"".join(map(framed, responses))
    for words in other_protocols:
        yield b"\x1f\xff" + words
        yield b"\x1e\xff" + words
    yield b"\x1f\xff" + framed(bytes(150_000))


def framed(payload: bytes) -> bytes:
    """Return a payload after its size."""
    return _SIZE.pack(len(payload)) + payload


def mutate(data: bytes, random: Random) -> bytes:
    """Change one frame with its size, or random bytes."""
    frames = expected_frames(data[2:], 1 << 30)
    if not frames or random.random() < 0.4:
        return spoil(data, random)
    place = random.randrange(len(frames))
    frames[place] = spoil(frames[place], random)
    if random.random() < 0.2:
        frames.insert(place, frames[place])
    options = random.randbytes(2) if random.random() < 0.2 else data[:2]
    return options + b"".join(map(framed, frames))


# The virtual network holds several copies of a stream.
TARGET = Target(run, seeds, mutate, lambda size: MEBIBYTE + 32 * size)
