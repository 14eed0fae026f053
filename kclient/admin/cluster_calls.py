"""Admin calls for the cluster and for configurations."""

from collections.abc import Iterable

from kclient.admin.admin_types import ClusterDescription, ConfigEntry
from kclient.admin.arguments import check_topic_names
from kclient.admin.cluster_arguments import check_broker_ids
from kclient.admin.requester import Requester, item_error, raise_error, raise_failures
from kclient.client.client_request import SimpleBuilder
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

Configs = dict[str, ConfigEntry]

TOPIC = 2
BROKER = 4

_DEFAULT_SOURCE = 5
_FENCED_BROKERS = 2


def describe_cluster(
    requester: Requester, *, include_fenced_brokers: bool = False, timeout: float | None = None
) -> Steps[ClusterDescription]:
    """Return the id, the controller and the brokers of the cluster (KIP-700).

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

    builder = SimpleBuilder(
        DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers),
        oldest=_FENCED_BROKERS if include_fenced_brokers else None,
    )
    return requester.send_to_least_loaded(builder, DescribeClusterResponse, read)


def describe_topic_configs(
    requester: Requester, names: str | Iterable[str], *, timeout: float | None = None
) -> Steps[dict[str, dict[str, ConfigEntry]]]:
    """Return the configurations of topics, by topic and dotted name (DescribeConfigs).

    Raises:
        UnknownTopicOrPartitionError: There is no such topic.
    """
    builder = _builder(TOPIC, check_topic_names(names))
    requester.limit(timeout)
    return requester.send_to_least_loaded(builder, DescribeConfigsResponse, _read)


def describe_broker_configs(
    requester: Requester, broker_ids: int | Iterable[int], *, timeout: float | None = None
) -> Steps[dict[int, dict[str, ConfigEntry]]]:
    """Return the configurations of brokers, by broker id and dotted name (DescribeConfigs).

    Raises:
        InvalidRequestError: There is no such broker.
    """
    wanted = check_broker_ids(broker_ids)
    requester.limit(timeout)
    return _describe_brokers(requester, wanted)


def _describe_brokers(requester: Requester, broker_ids: Iterable[int]) -> Steps[dict[int, Configs]]:
    # Each broker is asked itself, since a broker returns its static configuration for itself only.
    # Any broker can report that an id is unknown.
    cluster = yield from describe_cluster(requester)
    nodes = {node.id: node for node in cluster.nodes}
    described = {}
    for broker_id in broker_ids:
        builder = _builder(BROKER, [str(broker_id)])
        node = nodes.get(broker_id)
        if node is None:
            steps = requester.send_to_least_loaded(builder, DescribeConfigsResponse, _read)
        else:
            steps = requester.send_to_node(node, builder, DescribeConfigsResponse, _read)
        found = yield from steps
        described[broker_id] = found[str(broker_id)]
    return described


def _builder(kind: int, names: Iterable[str]) -> SimpleBuilder:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for name in names
    ]
    return SimpleBuilder(DescribeConfigsRequest(resources=resources))


def _read(response: DescribeConfigsResponse) -> dict[str, Configs]:
    described = {}
    failures = {}
    for result in response.results:
        name = result.resource_name
        error = item_error(f"resource {name!r}", result.error_code, result.error_message)
        if error is not None:
            failures[name] = error
        described[name] = {config.name: _entry(config) for config in result.configs}
    raise_failures(failures)
    return described


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=None if config.is_sensitive else config.value,
        is_default=config.config_source == _DEFAULT_SOURCE,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
    )
