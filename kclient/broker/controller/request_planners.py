"""Planners of the controller by type of request."""

from collections.abc import Callable
from typing import Any

from kclient.broker.controller.acl_control import AclControl
from kclient.broker.controller.alter_partition import alter_partition
from kclient.broker.controller.client_quota_control import alter_client_quotas
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.configuration_control import (
    alter_configs,
    incremental_alter_configs,
)
from kclient.broker.controller.feature_control import update_features
from kclient.broker.controller.leader_elections import (
    balance_leaders,
    elect_leaders,
    elect_unclean_leaders,
)
from kclient.broker.controller.partition_reassignments import alter_partition_reassignments
from kclient.broker.controller.replica_directories import assign_replicas_to_dirs
from kclient.broker.controller.scram_control import alter_user_scram_credentials
from kclient.broker.metadata.features import SUPPORTED_FEATURES, NodeFeatures
from kclient.broker.metadata.metadata_image import FeatureRanges
from kclient.common.broker_errors import InvalidUpdateVersionError
from kclient.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
)
from kclient.protocol.messages.client_quotas import AlterClientQuotasRequest
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
)
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
)
from kclient.protocol.messages.update_features import UpdateFeaturesRequest
from kclient.protocol.messages.user_scram_credentials import AlterUserScramCredentialsRequest

Planner = Callable[[ClusterView, float], ControllerResult[Any]]
"""Plans one request on the state and the monotonic time in ms."""


class RequestPlanners:
    """Planners of all requests that a controller decides on by their type."""

    def __init__(
        self,
        cluster: ClusterControl,
        acls: AclControl,
        supported: FeatureRanges = SUPPORTED_FEATURES,
        node_id: int = 0,
        kraft_version: Callable[[], int] = lambda: 0,
        upgrade_kraft_version: Callable[[int], None] | None = None,
    ) -> None:
        """Set what is not in the image.

        Args:
            cluster: Rules for brokers, with their sessions.
            acls: Rules for ACLs.
            supported: Feature levels that this controller supports.
            node_id: Id of this controller.
            kraft_version: Returns the level of kraft.version in the quorum.
            upgrade_kraft_version: Makes the quorum write another level; None if it cannot.
        """
        self._cluster = cluster
        self._local = NodeFeatures(f"Local controller {node_id}", supported)
        self._kraft_version = kraft_version
        self._upgrade_kraft_version = upgrade_kraft_version
        self._timeless: dict[type, Callable[[ClusterView, Any], ControllerResult[Any]]] = {
            AlterPartitionRequest: alter_partition,
            ElectLeadersRequest: elect_leaders,
            AlterPartitionReassignmentsRequest: alter_partition_reassignments,
            AssignReplicasToDirsRequest: assign_replicas_to_dirs,
            UnregisterBrokerRequest: cluster.unregister_broker,
            ControllerRegistrationRequest: cluster.register_controller,
            AllocateProducerIdsRequest: cluster.allocate_producer_ids,
            UpdateFeaturesRequest: self._update_features,
            IncrementalAlterConfigsRequest: incremental_alter_configs,
            AlterConfigsRequest: alter_configs,
            AlterClientQuotasRequest: alter_client_quotas,
            CreateAclsRequest: acls.create_acls,
            DeleteAclsRequest: acls.delete_acls,
            AlterUserScramCredentialsRequest: alter_user_scram_credentials,
        }
        self._timed: dict[type, Callable[[ClusterView, Any, float], ControllerResult[Any]]] = {
            BrokerRegistrationRequest: cluster.register_broker,
            BrokerHeartbeatRequest: cluster.process_heartbeat,
        }

    @property
    def requests(self) -> frozenset[type]:
        """Types of requests that have a planner."""
        return frozenset(self._timeless) | frozenset(self._timed)

    def planner(self, request: object) -> Planner:
        """Return the planner of a request of one of these types."""
        timed = self._timed.get(type(request))
        if timed is not None:
            return lambda view, now_ms: timed(view, request, now_ms)
        timeless = self._timeless[type(request)]
        return lambda view, _now_ms: timeless(view, request)

    def fence_stale_broker(self, view: ClusterView, now_ms: float) -> ControllerResult[int | None]:
        """Plan the fencing of one broker without heartbeats."""
        return self._cluster.fence_stale_broker(view, now_ms)

    @staticmethod
    def balance_leaders(view: ClusterView) -> ControllerResult[bool]:
        """Plan elections of preferred leaders."""
        return balance_leaders(view)

    @staticmethod
    def elect_unclean_leaders(view: ClusterView) -> ControllerResult[bool]:
        """Plan unclean elections where topics allow them."""
        return elect_unclean_leaders(view)

    def _update_features(
        self, view: ClusterView, request: UpdateFeaturesRequest
    ) -> ControllerResult[Any]:
        result, level = update_features(view, request, self._local, self._kraft_version())
        if level is not None and level != self._kraft_version():
            if self._upgrade_kraft_version is None:
                raise InvalidUpdateVersionError("The quorum cannot change its kraft.version.")
            self._upgrade_kraft_version(level)
        return result
