"""Admin calls for the cluster and for configurations."""

from kclient.admin.admin_types import ClusterDescription, ConfigEntry
from kclient.admin.requester import Requester, item_error
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import error_for_code
from kclient.common.types import Node
from kclient.common.waiting import Steps
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

TOPIC = 2
BROKER = 4

_DEFAULT_SOURCE = 5
_FENCED_BROKERS = 2


def describe_cluster(
    requester: Requester, deadline_ms: float, *, include_fenced_brokers: bool = False
) -> Steps[ClusterDescription]:
    """Describe the cluster."""

    def read(response: DescribeClusterResponse) -> ClusterDescription:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            raise error
        nodes = tuple(
            Node(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        )
        controller = next((node for node in nodes if node.id == response.controller_id), None)
        fenced = frozenset(broker.broker_id for broker in response.brokers if broker.is_fenced)
        return ClusterDescription(response.cluster_id, controller, nodes, fenced)

    builder = SimpleBuilder(
        DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers),
        oldest=_FENCED_BROKERS if include_fenced_brokers else None,
    )
    return requester.send_to_least_loaded(builder, DescribeClusterResponse, read, deadline_ms)


def describe_configs(
    requester: Requester, kind: int, name: str, deadline_ms: float
) -> Steps[dict[str, ConfigEntry]]:
    """Return the configuration of one topic or broker, by dotted name."""

    def read(response: DescribeConfigsResponse) -> dict[str, ConfigEntry]:
        entries: dict[str, ConfigEntry] = {}
        for result in response.results:
            error = item_error(f"resource {name!r}", result.error_code, result.error_message)
            if error is not None:
                raise error
            entries |= {config.name: _entry(config) for config in result.configs}
        return entries

    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    builder = SimpleBuilder(DescribeConfigsRequest(resources=[resource]))
    if kind == BROKER:
        # A broker returns its static configuration for itself only.
        cluster = yield from describe_cluster(requester, deadline_ms)
        for node in cluster.nodes:
            if str(node.id) == name:
                return (
                    yield from requester.send_to_node(
                        node, builder, DescribeConfigsResponse, read, deadline_ms
                    )
                )
    return (
        yield from requester.send_to_least_loaded(
            builder, DescribeConfigsResponse, read, deadline_ms
        )
    )


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=None if config.is_sensitive else config.value,
        is_default=config.config_source == _DEFAULT_SOURCE,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
    )
