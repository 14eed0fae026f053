"""Admin call for the cluster and its brokers."""

import pytest

from kclient.admin import cluster_calls
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import DescribeClusterBroker, DescribeClusterResponse
from tests.support.virtual.admin_world import AdminWorld


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
