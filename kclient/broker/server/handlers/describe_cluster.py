"""DescribeCluster, versions 0-2.

Differences from Apache Kafka: this broker is the controller, which has no separate endpoint, so a
request for controllers fails with UNSUPPORTED_ENDPOINT_TYPE.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.handlers.metadata import CLUSTER_OPERATIONS
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import UnsupportedEndpointTypeError, code_of
from kclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kclient.protocol.types import INT32_MIN

_BROKERS = 1


def handle(
    services: BrokerServices, request: Request, body: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the cluster id, the controller, and the brokers at the listener of the request."""
    if body.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=code_of(UnsupportedEndpointTypeError()),
            error_message=f"Unsupported endpoint type {body.endpoint_type}",
            endpoint_type=body.endpoint_type,
        )
    brokers = services.controller.image.brokers
    shown = [
        brokers[id_]
        for id_ in sorted(brokers)
        if body.include_fenced_brokers or not brokers[id_].fenced
    ]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                is_fenced=broker.fenced,
            )
            for broker in shown
            if (node := broker.node(request.listener_name)) is not None
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else INT32_MIN
        ),
    )


API = ServedApi(DescribeClusterRequest, handle)
