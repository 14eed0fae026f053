"""Request and response headers, and complete frames without their size prefix.

A flexible body has a flexible header: version 2 for requests, 1 for responses. There are two
exceptions: the client id of a request header is never compact, so that any broker can decode the
start of any request; and an ApiVersions response always has header version 0, since the client
does not know the broker's versions yet (KIP-511).
"""

from functools import lru_cache
from importlib import import_module
from struct import Struct as Layout
from typing import NamedTuple, TypeVar

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.common.files import WireBytes, WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.types import encode_nullable_string, read_nullable_string, skip_tags

R = TypeVar("R", bound=Response)

_REQUEST_FRONT = Layout(">hhi")
_INT16 = Layout(">h")
_CORRELATION_ID = Layout(">i")
NO_TAGS = b"\x00"
"""Tagged fields of a flexible header without any."""

encode_correlation_id = _CORRELATION_ID.pack
"""Return the correlation id that starts a response, as four bytes."""

# Cached, since a client sends the same id in each request.
_encode_client_id = lru_cache(maxsize=128)(encode_nullable_string)


class RequestHeader(NamedTuple):
    """Header of a request.

    Attributes:
        api_key: API.
        api_version: Version of the bodies of request and response.
        correlation_id: Correlation id, returned with the response.
        client_id: Client id, or None.
    """

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


def encode_request(
    request: Request, version: int, correlation_id: int, client_id: str | None
) -> list[WirePart]:
    """Return header and body in parts, as `Message.encode` does; raises what that raises."""
    header = _REQUEST_FRONT.pack(request.api_key, version, correlation_id)
    header += _encode_client_id(client_id)
    if _has_flexible_header(type(request), version):
        header += NO_TAGS
    return _with_header(header, request.encode(version))


def decode_request_header(buffer: WireBytes) -> tuple[RequestHeader, int]:
    """Decode the header of a request; return it with the position of the body.

    An ApiVersions request is accepted in any version from 0 on, so that the broker can respond to
    one that is too new.

    Raises:
        UnsupportedVersionError: The API or its version is unknown.
        ProtocolError: The bytes are malformed.
    """
    view = memoryview(buffer).cast("B")
    if len(view) < _REQUEST_FRONT.size:
        raise ProtocolError(
            f"request header: got {len(view)} bytes, expected at least {_REQUEST_FRONT.size}"
        )
    key, version, correlation_id = _REQUEST_FRONT.unpack_from(view)
    request, is_flexible = _request_format(key, version)
    position = _REQUEST_FRONT.size
    try:
        (length,) = _INT16.unpack_from(view, position) if len(view) > position + 1 else (0,)
        field = bytes(view[position : position + _INT16.size + max(length, 0)])
        client_id = _decode_client_id(field)
        position += len(field)
        if is_flexible:
            position = _skip_tags(view, position)
    except ProtocolError as error:
        raise ProtocolError(f"{request.api_key.name} request header: {error}") from None
    return RequestHeader(request.api_key, version, correlation_id, client_id), position


@lru_cache(maxsize=128)
def _decode_client_id(field: bytes) -> str | None:
    return read_nullable_string(memoryview(field), 0)[0]


@lru_cache(maxsize=512)
def _request_format(key: int, version: int) -> tuple[type[Request], bool]:
    """Return the class of a request, and whether its header is flexible."""
    # The registry imports the messages of all APIs, which a client does not need.
    registry = import_module("kclient.protocol.registry")
    request: type[Request] | None = registry.REQUESTS.get(key)
    if request is None:
        raise UnsupportedVersionError(f"request header: got api key {key}, which is not served")
    if version not in request.valid_versions and not (
        key == ApiKey.API_VERSIONS and version > request.max_version
    ):
        raise UnsupportedVersionError(
            f"request header: got {request.api_key.name} version {version},"
            f" expected {request.valid_versions}"
        )
    return request, request.is_flexible(version)


def encode_response(response: Response, version: int, correlation_id: int) -> list[WirePart]:
    """Return header and body in parts, as `Message.encode` does; raises what that raises."""
    header = _CORRELATION_ID.pack(correlation_id)
    if _has_flexible_response_header(type(response), version):
        header += NO_TAGS
    return _with_header(header, response.encode(version))


def decode_response(buffer: WireBytes, response_type: type[R], version: int) -> tuple[int, R]:
    """Decode a response; return its correlation id and its body.

    Raises:
        UnsupportedVersionError: The message has no such version.
        ProtocolError: The bytes are malformed.
    """
    return peek_correlation_id(buffer), decode_response_body(buffer, response_type, version)


def decode_response_body(buffer: WireBytes, response_type: type[R], version: int) -> R:
    """Decode a response whose correlation id is known; raises what `decode_response` does."""
    view = memoryview(buffer).cast("B")
    position = _CORRELATION_ID.size
    if _has_flexible_response_header(response_type, version):
        try:
            position = _skip_tags(view, position)
        except ProtocolError as error:
            raise ProtocolError(f"{response_type.__name__} header: {error}") from None
    return response_type.decode(view[position:], version)


def _skip_tags(view: memoryview, position: int) -> int:
    if view[position : position + 1] == NO_TAGS:  # as in almost all headers
        return position + 1
    return skip_tags(view, position)


def peek_correlation_id(buffer: WireBytes) -> int:
    """Return the correlation id of a response.

    Raises:
        ProtocolError: There are fewer than four bytes.
    """
    if len(buffer) < _CORRELATION_ID.size:
        raise ProtocolError(
            f"response header: got {len(buffer)} bytes, expected at least {_CORRELATION_ID.size}"
        )
    correlation_id: int = _CORRELATION_ID.unpack_from(buffer)[0]
    return correlation_id


@lru_cache(maxsize=512)
def _has_flexible_header(request_type: type[Request], version: int) -> bool:
    return request_type.is_flexible(version)


@lru_cache(maxsize=512)
def _has_flexible_response_header(response_type: type[Response], version: int) -> bool:
    return response_type.api_key is not ApiKey.API_VERSIONS and response_type.is_flexible(version)


def _with_header(header: bytes, body: list[WirePart]) -> list[WirePart]:
    first = body[0]
    if isinstance(first, bytes):
        body[0] = header + first
    else:
        body.insert(0, header)
    return body
