"""Negotiation of API versions on each new connection (KIP-35, KIP-511)."""

import struct
from collections.abc import Callable
from typing import Final

from kclient.client.api_versions import ApiVersions, NodeApiVersions, ranges
from kclient.client.client_request import ClientRequest, CorrelationIds, SimpleBuilder
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.find_coordinator import broker_id
from kclient.client.in_flight_requests import InFlightRequest
from kclient.client.node_connections import NodeConnections
from kclient.common.broker_errors import UnsupportedVersionError, error_for_code
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.files import WireBytes
from kclient.common.version import VERSION
from kclient.network.selector import Selector
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

CLIENT_SOFTWARE_NAME = "kclient"
"""Name of this client in the brokers' logs and metrics (KIP-511)."""

_FIRST_VERSION: Final = 4
"""Version of the first request of a client.

Version 5 adds a check of cluster and node (KIP-1242). Brokers before 4.4 do not support it, which
would cost another round trip: it is used once a broker has offered it.
"""

_LATEST_VERSION: Final = 5

_COMPATIBLE_VERSION: Final = 3
"""Version with the content of version 4, but for features with a minimum level of 0."""

_MAX_RETURNS: Final = 2
"""How often version 0 is followed by a higher one again, after a closed connection."""

_CORRELATION_ID_SIZE = 4
_ERROR_CODE = struct.Struct(">h")
_UNSUPPORTED_VERSION = 35


class ApiVersionsNegotiator:
    """Requests the API versions of each connected node before any other request.

    A broker that does not support the version of the request responds in version 0 with
    UNSUPPORTED_VERSION and, usually, its versions: the request is repeated in the highest common
    version, or in version 0 if the list is missing or invalid. Each repetition on a connection
    lowers the version, so that the negotiation terminates. Later connections start with the highest
    version that a broker offered last.

    If a broker closes the connection instead, as Azure Event Hubs does, all later connections use
    version 3, and after another such end version 0. A broker that was stopped closes the connection
    in the same way: version 3 is tried again if a broker offers it in version 0.

    Attributes:
        to_request: Version of the next request, by node.
    """

    def __init__(
        self,
        selector: Selector,
        states: ClusterConnectionStates,
        api_versions: ApiVersions,
        connections: NodeConnections,
        correlation_ids: CorrelationIds,
        request_timeout_ms: float,
        cluster_id: Callable[[], str | None],
    ) -> None:
        """Create a negotiator; `cluster_id` returns the cluster that brokers must belong to."""
        self._selector = selector
        self._states = states
        self._api_versions = api_versions
        self._connections = connections
        self._correlation_ids = correlation_ids
        self._request_timeout_ms = request_timeout_ms
        self.to_request: dict[str, int] = {}
        self._cluster_id = cluster_id
        self._limit = _LATEST_VERSION  # lowered when a broker closes the connection
        self._offered = _FIRST_VERSION  # highest version in the last response
        self._returns = 0

    def connected(self, node_id: str) -> None:
        """Record a new connection."""
        self.to_request[node_id] = min(self._offered, self._limit)

    def disconnected(self, node_id: str, failed: list[InFlightRequest]) -> None:
        """Record the end of a connection and the requests that were in flight."""
        self.to_request.pop(node_id, None)
        versions = [item.version for item in failed if item.api_key is ApiKey.API_VERSIONS]
        if versions and versions[0] > 0:
            self._limit = _COMPATIBLE_VERSION if versions[0] > _COMPATIBLE_VERSION else 0

    def send_requests(self, now_ms: float) -> None:
        """Send the ApiVersions requests on the connections that are ready for it."""
        for node_id, version in list(self.to_request.items()):
            if self._selector.is_channel_ready(node_id):
                del self.to_request[node_id]
                self._states.checking_api_versions(node_id)
                self._connections.write(self._request(node_id, now_ms), version, now_ms)

    def handle_response(
        self, item: InFlightRequest, payload: WireBytes
    ) -> ApiVersionsResponse | None:
        """Handle a response.

        Returns:
            The response, if the node is ready now; None if the request is repeated.

        Raises:
            KafkaError: There is no common version; the connection must be closed.
        """
        node_id = item.request.destination
        body = memoryview(payload)[_CORRELATION_ID_SIZE:]
        code = _error_code(body)
        if code == _UNSUPPORTED_VERSION:
            self.to_request[node_id] = _lower_version(item.version, body)
            return None
        error = error_for_code(code)
        if error is not None:
            raise type(error)(f"ApiVersions failed with {error}")
        try:
            response = ApiVersionsResponse.decode(body, item.version)
        except ProtocolError:
            if item.version == 0:
                raise
            self.to_request[node_id] = 0
            return None
        name = self._connections.describe(node_id)
        versions = NodeApiVersions.from_response(name, response)
        self._adopt_offer(versions)
        self._api_versions.update(node_id, versions)
        self._connections.ready(node_id)
        return response

    def _adopt_offer(self, versions: NodeApiVersions) -> None:
        offer = versions.offers(ApiKey.API_VERSIONS)
        if offer is None:
            return
        self._offered = min(offer.highest, _LATEST_VERSION)
        if self._limit < _COMPATIBLE_VERSION <= offer.highest and self._returns < _MAX_RETURNS:
            self._returns += 1
            self._limit = _COMPATIBLE_VERSION

    def _request(self, node_id: str, now_ms: float) -> ClientRequest:
        # A bootstrap server may be any broker of any cluster.
        expected = broker_id(int(node_id))
        cluster_id = self._cluster_id() if expected >= 0 else None
        message = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=VERSION,
            cluster_id=cluster_id,
            node_id=-1 if cluster_id is None else expected,
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


def _lower_version(refused: int, body: memoryview) -> int:
    """Return the version of the next request, lower than the one that was refused.

    Raises:
        UnsupportedVersionError: There is no lower one.
    """
    if refused == 0:
        raise UnsupportedVersionError("the broker refused ApiVersions in version 0")
    try:
        offered = ranges(ApiVersionsResponse.decode(body, 0).api_keys).get(ApiKey.API_VERSIONS)
    except KafkaError:
        return 0  # the body has no known form
    if offered is None or offered.highest >= refused:
        return 0
    return offered.highest
