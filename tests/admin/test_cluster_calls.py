"""Admin calls for the cluster and for configurations."""

import pytest

from kclient.admin import cluster_calls
from kclient.common.broker_errors import TopicAuthorizationError, UnsupportedVersionError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kclient.protocol.messages.metadata import DescribeClusterBroker, DescribeClusterResponse
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld


def configs(broker: ScriptedBroker, request: Request) -> Response:
    """Return one setting of each kind for each resource; that of the broker is its id."""
    assert isinstance(request, DescribeConfigsRequest)
    rows = [
        DescribeConfigsResourceResult(name="node.id", value=str(broker.node.id), read_only=True),
        DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=5),
        DescribeConfigsResourceResult(name="password", value="secret", is_sensitive=True),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(resource_name=resource.resource_name, configs=rows)
            for resource in request.resources
        ]
    )


def test_cluster_has_its_controller_and_all_brokers() -> None:
    world = AdminWorld(3)
    found = world.run(cluster_calls.describe_cluster)
    assert found.cluster_id == "cluster"
    assert found.nodes == tuple(broker.node for broker in world.brokers)
    assert found.controller == world.brokers[0].node


def test_fenced_brokers_need_version_2() -> None:
    world = AdminWorld()
    with pytest.raises(UnsupportedVersionError):
        world.run(cluster_calls.describe_cluster, include_fenced_brokers=True)
    response = DescribeClusterResponse(
        brokers=[
            DescribeClusterBroker(broker_id=number, host="h", port=1, is_fenced=number == 2)
            for number in (1, 2)
        ]
    )
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CLUSTER, lambda *_: response, high=2)
    found = world.run(cluster_calls.describe_cluster, include_fenced_brokers=True)
    assert (len(found.nodes), found.fenced_ids) == (2, frozenset({2}))


def test_each_broker_describes_its_own_configuration() -> None:
    world = AdminWorld(3)
    world.respond(ApiKey.DESCRIBE_CONFIGS, configs, low=1, high=4)
    found = world.run(cluster_calls.describe_broker_configs, [3, 1])
    assert {number: entries["node.id"].value for number, entries in found.items()} == {
        3: "3",
        1: "1",
    }
    asked = [len(world.requests(DescribeConfigsRequest, number)) for number in (1, 2, 3)]
    assert asked == [1, 0, 1]


def test_kinds_of_settings() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, configs, low=1, high=4)
    found = world.run(cluster_calls.describe_topic_configs, ["t", "u"])
    assert len(world.requests(DescribeConfigsRequest)) == 1
    assert list(found) == ["t", "u"]
    entries = found["u"]
    assert [name for name, entry in entries.items() if entry.is_read_only] == ["node.id"]
    assert [name for name, entry in entries.items() if entry.is_default] == ["retention.ms"]
    assert (entries["password"].value, entries["password"].is_sensitive) == (None, True)


def test_errors_name_their_resources() -> None:
    def refused(_: ScriptedBroker, __: Request) -> Response:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_name=name, error_code=code)
                for name, code in (("t", 29), ("u", 0), ("v", 3))
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, refused, low=1, high=4)
    with pytest.raises(TopicAuthorizationError, match="resource 't'") as caught:
        world.run(cluster_calls.describe_topic_configs, ["t", "u", "v"])
    assert ["resource 'v'" in note for note in caught.value.__notes__] == [True]
