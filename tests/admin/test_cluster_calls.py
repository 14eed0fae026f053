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


def configs(broker: ScriptedBroker, _: Request) -> Response:
    """Return one setting of each kind; that of the broker is its id."""
    rows = [
        DescribeConfigsResourceResult(name="node.id", value=str(broker.node.id), read_only=True),
        DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=5),
        DescribeConfigsResourceResult(name="password", value="secret", is_sensitive=True),
    ]
    return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=rows)])


def test_cluster_has_its_controller_and_all_brokers() -> None:
    world = AdminWorld(3)
    found = world.run(cluster_calls.describe_cluster)
    assert found.cluster_id == "cluster"
    assert found.nodes == tuple(broker.node for broker in world.brokers)
    assert found.controller == world.brokers[0].node


def test_fenced_brokers_need_version_2() -> None:
    world = AdminWorld()
    with pytest.raises(UnsupportedVersionError):
        world.run(
            lambda requester, end: cluster_calls.describe_cluster(
                requester, end, include_fenced_brokers=True
            )
        )
    response = DescribeClusterResponse(
        brokers=[
            DescribeClusterBroker(broker_id=number, host="h", port=1, is_fenced=number == 2)
            for number in (1, 2)
        ]
    )
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CLUSTER, lambda *_: response, high=2)
    found = world.run(
        lambda requester, end: cluster_calls.describe_cluster(
            requester, end, include_fenced_brokers=True
        )
    )
    assert (len(found.nodes), found.fenced_ids) == (2, frozenset({2}))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_broker_describes_its_own_configuration(number: int) -> None:
    world = AdminWorld(3)
    world.respond(ApiKey.DESCRIBE_CONFIGS, configs, low=1, high=4)
    found = world.run(
        lambda requester, end: cluster_calls.describe_configs(
            requester, cluster_calls.BROKER, str(number), end
        )
    )
    assert found["node.id"].value == str(number)
    assert len(world.requests(DescribeConfigsRequest, number)) == 1


def test_kinds_of_settings() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, configs, low=1, high=4)
    found = world.run(
        lambda requester, end: cluster_calls.describe_configs(
            requester, cluster_calls.TOPIC, "t", end
        )
    )
    assert [name for name, entry in found.items() if entry.is_read_only] == ["node.id"]
    assert [name for name, entry in found.items() if entry.is_default] == ["retention.ms"]
    assert (found["password"].value, found["password"].is_sensitive) == (None, True)


def test_error_names_the_resource() -> None:
    def refused(_: ScriptedBroker, __: Request) -> Response:
        return DescribeConfigsResponse(results=[DescribeConfigsResult(error_code=29)])

    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, refused, low=1, high=4)
    with pytest.raises(TopicAuthorizationError, match="resource 't'"):
        world.run(
            lambda requester, end: cluster_calls.describe_configs(
                requester, cluster_calls.TOPIC, "t", end
            )
        )
