"""Invalid bytes on a connection."""

import struct

import pytest

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_response, encode_request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from tests.support.clients.wire import Wire, joined

LIES = {
    "no header": b"",
    "half a header": b"\0\0\0",
    "unknown api": struct.pack(">hhih", 999, 0, 1, -1),
    "api that is not served": struct.pack(">hhih", ApiKey.VOTE, 0, 1, -1),
    "version that is not served": struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1),
    "no body": struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, -1) + b"\0",
    "client id beyond the end": struct.pack(">hhih", ApiKey.METADATA, 1, 1, 500),
    "two billion topics": struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, 2**31 - 1),
    "minus two topics": struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, -2),
    "varint without end": struct.pack(">hhih", ApiKey.METADATA, 12, 1, -1) + b"\0" + b"\xff" * 20,
}


@pytest.mark.fault("B16", "B17")
@pytest.mark.parametrize("frame", LIES.values(), ids=LIES.keys())
def test_malformed_frame_closes_only_its_connection(wire: Wire, other: Wire, frame: bytes) -> None:
    before = wire.ask(MetadataRequest(topics=None), 12, MetadataResponse)
    wire.send_frame(frame)
    assert wire.is_closed_by_peer()
    assert other.ask(MetadataRequest(topics=None), 12, MetadataResponse) == before


@pytest.mark.fault("B16")
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack(">i", -1),
        struct.pack(">i", 104857601),
    ],
    ids=["http", "tls", "negative size", "size over the limit"],
)
def test_foreign_protocol_closes_connection(wire: Wire, other: Wire, data: bytes) -> None:
    wire.send_bytes(data)
    assert wire.is_closed_by_peer()
    assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_fragmented_requests(wire: Wire) -> None:
    frame = joined(encode_request(ApiVersionsRequest(), 0, 5, "slow"))
    for byte in struct.pack(">i", len(frame)) + frame:
        wire.send_bytes(bytes([byte]))
    correlation_id, _ = decode_response(wire.receive_frame(), ApiVersionsResponse, 0)
    assert correlation_id == 5
