"""Planners by type of request."""

import pytest

from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.protocol.messages.leaders_and_reassignments import ElectLeadersRequest
from kclient.protocol.messages.produce import ProduceRequest


def test_planner_of_a_request() -> None:
    planners = RequestPlanners(ClusterControl("c", BrokerHeartbeatManager()))
    image = MetadataImage()
    view = ClusterView(image, PartitionIndex(image), {})
    request = ElectLeadersRequest(election_type=0, topic_partitions=None)
    result = planners.planner(request)(view, 0)
    assert result.response.replica_election_results == []
    assert type(request) in planners.requests
    with pytest.raises(KeyError):
        planners.planner(ProduceRequest())
