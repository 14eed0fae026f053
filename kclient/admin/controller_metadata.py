"""Metadata of an admin client that connects to controllers (KIP-919)."""

from kclient.client.client_request import RequestBuilder, SimpleBuilder
from kclient.client.metadata import Metadata
from kclient.common.broker_errors import (
    MismatchedEndpointTypeError,
    UnsupportedEndpointTypeError,
    error_for_code,
)
from kclient.common.errors import ProtocolError
from kclient.common.files import WireBytes
from kclient.protocol.message import Response
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)

CONTROLLERS = 2
"""Endpoint type of DescribeCluster."""

ENDPOINT_TYPE = 1
"""First version of DescribeCluster with an endpoint type."""


class ControllerMetadata(Metadata):
    """Metadata whose nodes are the controllers (Kafka: AdminMetadataManager).

    Controllers do not serve METADATA. DescribeCluster lists them, and names the active one.
    """

    def request_builder(self, request: MetadataRequest) -> RequestBuilder:
        """Return the request for the controllers; topics are not part of this metadata."""
        return _DescribeControllers(self)


class _DescribeControllers(SimpleBuilder):
    """Builder of a DescribeCluster request whose response is read as that to METADATA."""

    __slots__ = ("_metadata",)

    def __init__(self, metadata: Metadata) -> None:
        super().__init__(DescribeClusterRequest(endpoint_type=CONTROLLERS), oldest=ENDPOINT_TYPE)
        self._metadata = metadata

    def decode(self, payload: WireBytes, version: int) -> Response:
        """Decode the response; a server that is not a controller fails the calls that wait."""
        response = super().decode(payload, version)
        if not isinstance(response, DescribeClusterResponse):
            raise ProtocolError(f"DescribeCluster: got a {type(response).__name__}")
        error = error_for_code(response.error_code, response.error_message)
        if isinstance(error, MismatchedEndpointTypeError | UnsupportedEndpointTypeError):
            self._metadata.fatal_error(
                type(error)(f"bootstrap_controllers: got a listener of brokers: {error}")
            )
        return MetadataResponse(
            error_code=response.error_code,
            brokers=[
                MetadataResponseBroker(
                    node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
                )
                for node in response.brokers
            ],
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
        )
