"""Agrees with each new connection on the versions to speak (KIP-35, KIP-511)."""

import struct

from kclient.client.client_request import ClientRequest, CorrelationIds
from kclient.client.in_flight_requests import InFlightRequest
from kclient.client.node_api_versions import NodeApiVersions, ranges
from kclient.client.node_connections import NodeConnections
from kclient.client.request_builder import SimpleBuilder
from kclient.common.broker_errors import UnsupportedVersionError, error_for_code
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.files import WireBytes
from kclient.common.version import VERSION
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

CLIENT_SOFTWARE_NAME = "kclient"
"""What brokers show of this client (KIP-511)."""

FIRST_VERSION = 4
"""What a new connection is asked in.

Version 5 only adds a check of the cluster's id (KIP-1242), and every broker before 4.4 refuses it,
which would cost each connection another round trip.
"""

_CORRELATION_ID_SIZE = 4
_ERROR_CODE = struct.Struct(">h")
_UNSUPPORTED_VERSION = 35


class ApiVersionsNegotiator:
    """Asks each connected node for its versions before anything else is sent to it.

    A broker that does not know the version of the question answers in version 0 with error 35 and,
    mostly, its list of versions: it is asked again in the highest version both know, or in version
    0 where the list is missing or broken. A broker that hangs up instead of answering is asked in
    version 0 on the next connection. Each repetition on one connection lowers the version, so that
    it ends.
    """

    def __init__(
        self,
        connections: NodeConnections,
        correlation_ids: CorrelationIds,
        request_timeout_ms: float,
    ) -> None:
        self._connections = connections
        self._correlation_ids = correlation_ids
        self._request_timeout_ms = request_timeout_ms
        self._to_ask: dict[str, int] = {}
        self._hung_up: set[str] = set()  # nodes that closed the connection when they were asked

    def connected(self, node_id: str) -> None:
        """Note a new connection."""
        self._to_ask[node_id] = 0 if node_id in self._hung_up else FIRST_VERSION

    def disconnected(self, node_id: str, unanswered: list[InFlightRequest]) -> None:
        """Note the end of a connection and what was in flight on it."""
        self._to_ask.pop(node_id, None)
        asked = [item.version for item in unanswered if item.message.api_key is ApiKey.API_VERSIONS]
        if asked and asked[0] > 0:
            self._hung_up.add(node_id)
        else:
            self._hung_up.discard(node_id)

    def ask(self, now_ms: float) -> None:
        """Send the question on the connections that are able to carry it."""
        for node_id, version in list(self._to_ask.items()):
            if self._connections.selector.is_channel_ready(node_id):
                del self._to_ask[node_id]
                self._connections.states.checking_api_versions(node_id)
                self._connections.write(self._request(node_id, now_ms), version, now_ms)

    def answered(self, asked: InFlightRequest, payload: WireBytes) -> ApiVersionsResponse | None:
        """Take in an answer.

        Returns:
            The versions the node speaks, which is ready now; None if it must be asked again.

        Raises:
            KafkaError: The node cannot be spoken to; its connection is to be closed.
        """
        node_id = asked.request.destination
        body = memoryview(payload)[_CORRELATION_ID_SIZE:]
        code = _error_code(body)
        if code == _UNSUPPORTED_VERSION:
            self._to_ask[node_id] = _lower_version(asked.version, body)
            return None
        error = error_for_code(code)
        if error is not None:
            raise type(error)(f"ApiVersions was answered with {error}")
        try:
            response = ApiVersionsResponse.decode(body, asked.version)
        except ProtocolError:
            if asked.version == 0:
                raise
            self._to_ask[node_id] = 0
            return None
        self._hung_up.discard(node_id)
        name = self._connections.in_words(node_id)
        versions = NodeApiVersions.from_response(name, response)
        self._connections.api_versions.update(node_id, versions)
        self._connections.ready(node_id)
        return response

    def _request(self, node_id: str, now_ms: float) -> ClientRequest:
        message = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=VERSION,
        )
        return ClientRequest(
            node_id,
            SimpleBuilder(message),
            self._correlation_ids.take(),
            now_ms,
            expect_response=True,
            request_timeout_ms=self._request_timeout_ms,
            internal=True,
        )


def _error_code(body: memoryview) -> int:
    if len(body) < _ERROR_CODE.size:
        raise ProtocolError(f"ApiVersions response: got {len(body)} bytes, expected at least 2")
    code: int = _ERROR_CODE.unpack_from(body)[0]
    return code


def _lower_version(asked: int, body: memoryview) -> int:
    """Return the version to ask in next, lower than the one that was refused.

    Raises:
        UnsupportedVersionError: There is no lower one.
    """
    if asked == 0:
        raise UnsupportedVersionError("the broker refused ApiVersions in version 0")
    try:
        offered = ranges(ApiVersionsResponse.decode(body, 0).api_keys).get(ApiKey.API_VERSIONS)
    except KafkaError:
        return 0  # error 35 in a body of no known form
    if offered is None or offered.highest >= asked:
        return 0
    return offered.highest
