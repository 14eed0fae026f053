"""Admin call for the cluster and its brokers."""

from kclient.admin.admin_types import ClusterDescription
from kclient.admin.controller_metadata import CONTROLLERS, ENDPOINT_TYPE
from kclient.admin.requester import Requester, raise_error
from kclient.client.client_request import SimpleBuilder
from kclient.common.types import Node
from kclient.common.waiting import Steps
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_FENCED_BROKERS = 2


def describe_cluster(
    requester: Requester, *, include_fenced_brokers: bool = False, timeout: float | None = None
) -> Steps[ClusterDescription]:
    """Return the id, the controller and the brokers of the cluster (KIP-700).

    A client with ``bootstrap.controllers`` returns the controllers as nodes (KIP-919).

    Args:
        include_fenced_brokers: Whether to include brokers that are fenced (KIP-1073).
        timeout: Timeout in seconds.

    Raises:
        UnsupportedVersionError: The broker does not report fenced brokers.
    """
    requester.limit(timeout)

    def read(response: DescribeClusterResponse) -> ClusterDescription:
        raise_error(response.error_code, response.error_message)
        nodes = tuple(
            Node(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        )
        controller = next((node for node in nodes if node.id == response.controller_id), None)
        fenced = frozenset(broker.broker_id for broker in response.brokers if broker.is_fenced)
        return ClusterDescription(response.cluster_id, controller, nodes, fenced)

    request = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
    oldest = _FENCED_BROKERS if include_fenced_brokers else 0
    if requester.uses_controllers:
        request.endpoint_type = CONTROLLERS
        oldest = max(oldest, ENDPOINT_TYPE)
    builder = SimpleBuilder(request, oldest=oldest)
    return requester.send_to_least_loaded(builder, DescribeClusterResponse, read)
