"""Planners by type of request."""

import pytest

from kclient.broker.controller.acl_control import AclControl
from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.common.broker_errors import InvalidUpdateVersionError
from kclient.protocol.messages.leaders_and_reassignments import ElectLeadersRequest
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ACLS = AclControl(lambda: bytes(16))


def test_planner_of_a_request() -> None:
    planners = RequestPlanners(ClusterControl("c", BrokerHeartbeatManager()), ACLS)
    image = MetadataImage()
    view = ClusterView(image, PartitionIndex(image), {})
    request = ElectLeadersRequest(election_type=0, topic_partitions=None)
    result = planners.planner(request)(view, 0)
    assert result.response.replica_election_results == []
    assert type(request) in planners.requests
    with pytest.raises(KeyError):
        planners.planner(ProduceRequest())


def test_level_of_the_quorum_is_written_by_the_quorum() -> None:
    written: list[int] = []
    cluster = ClusterControl("c", BrokerHeartbeatManager())
    image = MetadataImage(features={"metadata.version": 25})
    view = ClusterView(image, PartitionIndex(image), {})
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    request = UpdateFeaturesRequest(feature_updates=[update])
    with pytest.raises(InvalidUpdateVersionError, match="cannot change"):
        RequestPlanners(cluster, ACLS).planner(request)(view, 0)
    planners = RequestPlanners(cluster, ACLS, upgrade_kraft_version=written.append)
    result = planners.planner(request)(view, 0)
    assert (result.response.error_code, result.records, written) == (0, [], [1])
