"""Decoding of frames into requests, and the versions served."""

import struct

import pytest

from kclient.broker.network.request_channel import ConnectionContext, Request, Response
from kclient.broker.server.request_parser import ApiVersionManager, RequestParser, VersionSpan
from kclient.common.broker_errors import InvalidRequestError, UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.network.authenticator import ANONYMOUS
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import encode_request
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.group_membership import HeartbeatRequest
from kclient.protocol.messages.produce import ProduceRequest
from tests.support.clients.wire import joined

SPANS = {
    ApiKey.HEARTBEAT: VersionSpan(1, 3),
    ApiKey.API_VERSIONS: VersionSpan(0, 3),
    ApiKey.PRODUCE: VersionSpan(3, 9),
}
VERSIONS = ApiVersionManager(SPANS)
CONNECTION = ConnectionContext("c", "10.0.0.7", "EXTERNAL", ANONYMOUS)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")


class Sink:
    def enqueue_response(self, response: Response) -> None:
        raise AssertionError(response)


def parsed(frame: bytes, limit: int = 1_000) -> Request:
    receive = NetworkReceive("c", 1 << 20, UnlimitedMemoryPool())
    receive.payload = memoryview(frame)
    return RequestParser(VERSIONS, limit).parse(Sink(), receive, CONNECTION)


def frame_of(version: int, request: HeartbeatRequest | ProduceRequest = HEARTBEAT) -> bytes:
    return joined(encode_request(request, version, 77, "client"))


def test_request_has_header_body_and_connection() -> None:
    request = parsed(frame_of(3))
    assert request.body == HEARTBEAT
    header = request.header
    assert (header.api_key, header.api_version) == (ApiKey.HEARTBEAT, 3)
    assert (header.correlation_id, header.client_id) == (77, "client")
    assert (request.client_address, request.listener_name) == ("10.0.0.7", "EXTERNAL")
    assert request.connection_id == "c"


@pytest.mark.parametrize("version", [0, 4])
def test_version_that_is_not_served_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"HEARTBEAT version {version} is not served"):
        parsed(frame_of(version))


def test_api_that_is_not_served_is_refused() -> None:
    frame = joined(encode_request(FetchRequest(), 12, 77, "client"))
    with pytest.raises(UnsupportedVersionError, match="FETCH version 12 is not served"):
        parsed(frame)


def test_api_versions_of_unknown_version_has_no_body() -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0 anything"
    request = parsed(frame)
    assert request.body is None
    assert (request.header.api_version, request.header.correlation_id) == (99, 7)


def test_only_produce_may_exceed_the_limit_of_control_requests() -> None:
    frame = frame_of(3)
    assert parsed(frame, len(frame)).body == HEARTBEAT
    with pytest.raises(InvalidRequestError, match=rf"got {len(frame)} bytes, .*control\.request"):
        parsed(frame, len(frame) - 1)
    produce = ProduceRequest(acks=1)
    assert parsed(frame_of(9, produce), 1).body == produce


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_truncated_request_is_malformed(cut: int) -> None:
    with pytest.raises(ProtocolError):
        parsed(frame_of(3)[:-cut])


@pytest.mark.parametrize(
    ("key", "version", "served"),
    [
        (ApiKey.HEARTBEAT, 0, False),
        (ApiKey.HEARTBEAT, 1, True),
        (ApiKey.HEARTBEAT, 3, True),
        (ApiKey.HEARTBEAT, 4, False),
        (ApiKey.FETCH, 4, False),
    ],
)
def test_served_versions(key: ApiKey, version: int, *, served: bool) -> None:
    assert VERSIONS.is_served(key, version) is served


def test_spans_are_ordered_by_api() -> None:
    assert list(VERSIONS.spans) == [ApiKey.PRODUCE, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS]
