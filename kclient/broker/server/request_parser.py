"""APIs and versions served, and decoding of received frames into requests."""

from collections.abc import Mapping
from typing import NamedTuple

from kclient.broker.network.request_channel import ConnectionContext, Request, ResponseSink
from kclient.common.broker_errors import InvalidRequestError, UnsupportedVersionError
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header
from kclient.protocol.registry import REQUESTS


class VersionSpan(NamedTuple):
    """The lowest and the highest version served."""

    min_version: int
    max_version: int


class ApiVersionManager:
    """Served versions by API (Kafka: ApiVersionManager)."""

    def __init__(self, spans: Mapping[ApiKey, VersionSpan]) -> None:
        self.spans = dict(sorted(spans.items()))
        self._served = frozenset(
            (key, version)
            for key, span in self.spans.items()
            for version in range(span.min_version, span.max_version + 1)
        )

    def is_served(self, api_key: ApiKey, version: int) -> bool:
        """Return whether requests of an API and version are handled."""
        return (api_key, version) in self._served


class RequestParser:
    """Decoder of requests of the served APIs (Kafka: RequestContext.parseRequest)."""

    def __init__(self, api_versions: ApiVersionManager, max_control_bytes: int = 2**31 - 1) -> None:
        self._api_versions = api_versions
        self._max_control_bytes = max_control_bytes

    def parse(
        self, sink: ResponseSink, receive: NetworkReceive, connection: ConnectionContext
    ) -> Request:
        """Return the request in a frame.

        An ApiVersions request in a version that is not served has no body; its response needs none.

        Raises:
            UnsupportedVersionError: The API or the version is not served.
            InvalidRequestError: It carries no records and is larger than control.request.max.bytes.
            ProtocolError: The bytes are not a request.
        """
        header, position = decode_request_header(receive.payload)
        key, version = header.api_key, header.api_version
        size = len(receive.payload)
        if key is not ApiKey.PRODUCE and size > self._max_control_bytes:
            raise InvalidRequestError(
                f"{key.name}: got {size} bytes, expected at most {self._max_control_bytes} "
                "(control.request.max.bytes)"
            )
        if self._api_versions.is_served(key, version):
            body = REQUESTS[key].decode(receive.payload[position:], version)
        elif key is ApiKey.API_VERSIONS:
            body = None
        else:
            raise UnsupportedVersionError(f"{key.name} version {version} is not served")
        return Request(sink, receive, connection, header, body)
