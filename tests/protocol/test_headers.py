import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.files import FileSlice, WirePart
from kclient.protocol import headers
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kclient.protocol.registry import REQUESTS

REQUEST_VERSIONS = [
    (request, version)
    for request in REQUESTS.values()
    for version in range(request.min_version, request.max_version + 1)
]


def whole(parts: list[WirePart]) -> bytes:
    return b"".join(part if not isinstance(part, FileSlice) else part.read() for part in parts)


@pytest.mark.parametrize(("request_type", "version"), REQUEST_VERSIONS)
@pytest.mark.parametrize("client_id", [None, "", "clïent"])
def test_request_header_round_trip(
    request_type: type[Request], version: int, client_id: str | None
) -> None:
    frame = whole(headers.encode_request(request_type(), version, 7, client_id))
    header, position = headers.decode_request_header(frame)
    assert header == (request_type.api_key, version, 7, client_id)
    assert request_type.decode(frame[position:], version) == request_type()


@pytest.mark.parametrize(("request_type", "version"), REQUEST_VERSIONS)
def test_response_header_round_trip(request_type: type[Request], version: int) -> None:
    response_type = request_type.response_type
    frame = whole(headers.encode_response(response_type(), version, -5))
    assert headers.peek_correlation_id(frame) == -5
    assert headers.decode_response(frame, response_type, version) == (-5, response_type())


def test_client_id_is_never_compact() -> None:
    frame = whole(headers.encode_request(HeartbeatRequest(), 4, 1, "me"))
    assert bytes(frame) == bytes.fromhex("000c 0004 00000001 0002 6d65 00  01 00000000 01 00 00")


def test_requests_without_flexible_body_have_no_tags() -> None:
    frame = whole(headers.encode_request(HeartbeatRequest(), 0, 1, None))
    assert bytes(frame) == bytes.fromhex("000c 0000 00000001 ffff  0000 00000000 0000")


def test_response_headers() -> None:
    plain = whole(headers.encode_response(HeartbeatResponse(), 3, 9))
    assert bytes(plain) == bytes.fromhex("00000009  00000000 0000")
    flexible = whole(headers.encode_response(HeartbeatResponse(), 4, 9))
    assert bytes(flexible) == bytes.fromhex("00000009 00  00000000 0000 00")


def test_api_versions_responses_have_header_version_0() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])
    frame = whole(headers.encode_response(response, 3, 9))
    assert bytes(frame) == bytes.fromhex("00000009  0000 02 0012 0000 0004 00 00000000 00")
    assert headers.decode_response(frame, ApiVersionsResponse, 3) == (9, response)


@pytest.mark.parametrize("version", [6, 99, 0x7FFF])
def test_header_of_too_new_api_versions_request_is_decoded(version: int) -> None:
    frame = whole(headers.encode_request(ApiVersionsRequest(), 3, 42, "new"))
    frame = frame[:2] + version.to_bytes(2, "big") + frame[4:]
    header, _position = headers.decode_request_header(frame)
    assert header == (ApiKey.API_VERSIONS, version, 42, "new")


@pytest.mark.parametrize(
    ("key", "version", "text"),
    [
        (18, -1, "API_VERSIONS version -1, expected 0-5"),
        (12, 5, "HEARTBEAT version 5, expected 0-4"),
        (1, 3, "FETCH version 3, expected 4-18"),
        (4, 0, "api key 4"),
        (999, 0, "api key 999"),
        (-1, 0, "api key -1"),
    ],
)
def test_unknown_requests(key: int, version: int, text: str) -> None:
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(6)
    with pytest.raises(UnsupportedVersionError, match=text):
        headers.decode_request_header(frame)


@pytest.mark.fault("P6")
def test_unknown_tags_in_headers_are_skipped() -> None:
    tags = bytes.fromhex("02 00 01 ff 05 02 ffff")
    request = bytes.fromhex("000c 0004 00000001 0002 6d65") + tags
    header, position = headers.decode_request_header(request)
    assert (header.correlation_id, position) == (1, len(request))
    response = bytes.fromhex("00000009") + tags + bytes.fromhex("00000000 0003 00")
    assert headers.decode_response(response, HeartbeatResponse, 4) == (
        9,
        HeartbeatResponse(error_code=3),
    )


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    "frame",
    ["", "000c", "000c 0004 0000", "000c 0004 00000001", "000c 0004 00000001 00",
     "000c 0004 00000001 0009 6d65", "000c 0004 00000001 fffe", "000c 0004 00000001 0002 ff00 00",
     "000c 0004 00000001 ffff 01 00 09", "000c 0004 00000001 ffff"],
)  # fmt: skip
def test_malformed_request_header_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolError, match="request header"):
        headers.decode_request_header(bytes.fromhex(frame))


@pytest.mark.fault("P5")
@pytest.mark.parametrize("frame", ["", "000000", "00000009", "00000009 02 05 00 05 00"])
def test_malformed_response_header_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolError, match="header"):
        headers.decode_response(bytes.fromhex(frame), HeartbeatResponse, 4)


@given(st.binary(max_size=40))
def test_random_bytes_raise_kafka_error(frame: bytes) -> None:
    try:
        header, position = headers.decode_request_header(frame)
    except KafkaError:
        return
    assert position <= len(frame)
    assert header.api_key in REQUESTS


def test_large_record_set_is_not_copied() -> None:
    records = memoryview(bytearray(5000))
    partitions = [PartitionProduceData(records=records), PartitionProduceData(records=b"small")]
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)])
    parts = headers.encode_request(request, 9, 1, "me")
    assert [part is records for part in parts] == [False, True, False]
    frame = whole(parts)
    _header, position = headers.decode_request_header(frame)
    assert ProduceRequest.decode(frame[position:], 9) == request


def test_memoryviews_are_decoded_in_place() -> None:
    frame = bytearray(whole(headers.encode_request(FetchRequest(), 12, 3, "x")))
    header, position = headers.decode_request_header(memoryview(frame))
    assert FetchRequest.decode(memoryview(frame)[position:], header.api_version) == FetchRequest()
