"""Admin calls for the metadata quorum, feature levels and registered nodes."""

from collections.abc import Iterable, Mapping

from kclient.admin.admin_types import (
    FeatureMetadata,
    FeatureUpdate,
    QuorumInfo,
    QuorumReplicaState,
    RaftVoterEndpoint,
    VersionRange,
)
from kclient.admin.arguments import check_int
from kclient.admin.cluster_arguments import check_endpoints, check_updates, check_voter
from kclient.admin.requester import Requester, item_error, raise_error, raise_item_error
from kclient.admin.results import Outcomes, Results
from kclient.client.api_versions_negotiator import CLIENT_SOFTWARE_NAME
from kclient.client.client_request import SimpleBuilder
from kclient.common.errors import ProtocolError
from kclient.common.upgrade_type import UpgradeType
from kclient.common.uuids import ZERO_UUID, text_to_uuid, uuid_to_text
from kclient.common.version import VERSION
from kclient.common.waiting import Steps
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.node_registration import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kclient.protocol.messages.quorum import (
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterListener,
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from kclient.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_CLUSTER_METADATA = "__cluster_metadata"
_HAS_FEATURES = 3
_LAST_WITHOUT_NODE = 4
"""Last version of ApiVersions without the node that the client expects."""


def describe_metadata_quorum(
    requester: Requester, *, timeout: float | None = None
) -> Steps[QuorumInfo]:
    """Return the leader, voters and observers of the metadata log (DescribeQuorum, KIP-836)."""
    requester.limit(timeout)
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=_CLUSTER_METADATA, partitions=[partition])

    def read(response: DescribeQuorumResponse) -> QuorumInfo:
        raise_error(response.error_code, response.error_message)
        found = [part for topic in response.topics for part in topic.partitions]
        if len(found) != 1 or response.topics[0].topic_name != _CLUSTER_METADATA:
            raise ProtocolError(f"DescribeQuorum: got {len(found)} partitions, expected 1")
        raise_error(found[0].error_code, found[0].error_message)
        return _quorum(response, found[0])

    builder = SimpleBuilder(DescribeQuorumRequest(topics=[topic]))
    return requester.send_to_least_loaded(builder, DescribeQuorumResponse, read)


def _quorum(
    response: DescribeQuorumResponse, partition: DescribeQuorumResponsePartitionData
) -> QuorumInfo:
    return QuorumInfo(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(_replica(state) for state in partition.current_voters),
        observers=tuple(_replica(state) for state in partition.observers),
        nodes={
            node.node_id: tuple(
                RaftVoterEndpoint(each.name, each.host, each.port) for each in node.listeners
            )
            for node in response.nodes
        },
    )


def _replica(state: DescribeQuorumReplicaState) -> QuorumReplicaState:
    directory_id, fetched = state.replica_directory_id, state.last_fetch_timestamp
    caught_up = state.last_caught_up_timestamp
    return QuorumReplicaState(
        replica_id=state.replica_id,
        replica_directory_id=None if directory_id == ZERO_UUID else uuid_to_text(directory_id),
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=fetched if fetched >= 0 else None,
        last_caught_up_timestamp=caught_up if caught_up >= 0 else None,
    )


def describe_features(
    requester: Requester, *, node_id: int | None = None, timeout: float | None = None
) -> Steps[FeatureMetadata]:
    """Return feature levels of the cluster and of one broker (ApiVersions, KIP-584).

    Args:
        node_id: Broker to ask, None for any.
        timeout: Timeout in seconds.
    """
    if node_id is not None:
        check_int("node_id", node_id, 0)
    requester.limit(timeout)

    def read(response: ApiVersionsResponse) -> FeatureMetadata:
        raise_error(response.error_code)
        epoch = response.finalized_features_epoch
        return FeatureMetadata(
            finalized_features={
                feature.name: VersionRange(feature.min_version_level, feature.max_version_level)
                for feature in response.finalized_features
                if epoch >= 0
            },
            finalized_features_epoch=epoch if epoch >= 0 else None,
            supported_features={
                feature.name: VersionRange(feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
        )

    request = ApiVersionsRequest(
        client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=VERSION
    )
    builder = SimpleBuilder(request, oldest=_HAS_FEATURES, latest=_LAST_WITHOUT_NODE)
    if node_id is None:
        return requester.send_to_least_loaded(builder, ApiVersionsResponse, read)
    return requester.send_to_broker(node_id, builder, ApiVersionsResponse, read)


def update_features(
    requester: Requester,
    feature_updates: Mapping[str, FeatureUpdate],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Change feature levels of the cluster (UpdateFeatures, KIP-584).

    From version 2 of the request on, all levels are changed or none.

    Returns:
        None or error by feature.

    Raises:
        InvalidUpdateVersionError: A node does not support a level, or it may not be lowered.
        FeatureUpdateFailedError: A level was not changed.
    """
    updates = check_updates(feature_updates)
    requester.limit(timeout)
    request = UpdateFeaturesRequest(
        timeout_ms=requester.remaining_ms(),
        feature_updates=[
            FeatureUpdateKey(
                feature=name,
                max_version_level=update.max_version_level,
                upgrade_type=update.upgrade_type,
            )
            for name, update in updates.items()
        ],
        validate_only=validate_only,
    )

    def read(response: UpdateFeaturesResponse) -> Results[str, None]:
        raise_error(response.error_code, response.error_message)
        outcomes: Outcomes[str, None] = dict.fromkeys(updates)
        for each in response.results:  # up to version 1
            what = f"feature {each.feature!r}"
            outcomes[each.feature] = item_error(what, each.error_code, each.error_message)
        return Results("update_features", outcomes)

    is_old = not validate_only and all(
        update.upgrade_type is not UpgradeType.SAFE_DOWNGRADE for update in updates.values()
    )
    builder = _UpdateFeatures(request, oldest=0 if is_old else 1)
    return requester.send_to_controller(builder, UpdateFeaturesResponse, read)


class _UpdateFeatures(SimpleBuilder):
    """Builder of an UpdateFeatures request; version 0 has a flag for downgrades."""

    def build(self, version: int) -> UpdateFeaturesRequest:
        request = self.request
        assert isinstance(request, UpdateFeaturesRequest)  # noqa: S101 (narrows for the type checker)
        if version >= 1:
            return request
        return UpdateFeaturesRequest(
            timeout_ms=request.timeout_ms,
            feature_updates=[
                FeatureUpdateKey(
                    feature=update.feature,
                    max_version_level=update.max_version_level,
                    allow_downgrade=update.upgrade_type != UpgradeType.UPGRADE,
                )
                for update in request.feature_updates
            ],
        )


def unregister_broker(
    requester: Requester, broker_id: int, *, timeout: float | None = None
) -> Steps[None]:
    """Remove the registration of a stopped broker (UnregisterBroker, KIP-631).

    Raises:
        BrokerIdNotRegisteredError: There is no such broker.
    """
    check_int("broker_id", broker_id, 0)
    requester.limit(timeout)

    def read(response: UnregisterBrokerResponse) -> None:
        raise_item_error(f"broker {broker_id}", response.error_code, response.error_message)

    builder = SimpleBuilder(UnregisterBrokerRequest(broker_id=broker_id))
    return requester.send_to_least_loaded(builder, UnregisterBrokerResponse, read)


def add_raft_voter(
    requester: Requester,
    voter_id: int,
    voter_directory_id: str,
    endpoints: RaftVoterEndpoint | Iterable[RaftVoterEndpoint],
    *,
    cluster_id: str | None = None,
    timeout: float | None = None,
) -> Steps[None]:
    """Add a controller to the voters of the metadata log (AddRaftVoter, KIP-853).

    Args:
        voter_id: Node id of the controller.
        voter_directory_id: ``directory.id`` of its metadata directory.
        endpoints: Its controller listeners.
        cluster_id: Id of the cluster to check, or None.
        timeout: Timeout in seconds.

    Raises:
        DuplicateVoterError: It is a voter already.
    """
    check_voter(voter_id, voter_directory_id)
    listeners = check_endpoints(endpoints)
    requester.limit(timeout)
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=requester.remaining_ms(),
        voter_id=voter_id,
        voter_directory_id=text_to_uuid(voter_directory_id),
        listeners=[
            AddRaftVoterListener(name=each.listener, host=each.host, port=each.port)
            for each in listeners
        ],
    )

    def read(response: AddRaftVoterResponse) -> None:
        raise_item_error(f"voter {voter_id}", response.error_code, response.error_message)

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, AddRaftVoterResponse, read)


def remove_raft_voter(
    requester: Requester,
    voter_id: int,
    voter_directory_id: str,
    *,
    cluster_id: str | None = None,
    timeout: float | None = None,
) -> Steps[None]:
    """Remove a controller from the voters of the metadata log (RemoveRaftVoter, KIP-853).

    Raises:
        VoterNotFoundError: It is not a voter.
    """
    check_voter(voter_id, voter_directory_id)
    requester.limit(timeout)
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        voter_directory_id=text_to_uuid(voter_directory_id),
    )

    def read(response: RemoveRaftVoterResponse) -> None:
        raise_item_error(f"voter {voter_id}", response.error_code, response.error_message)

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, RemoveRaftVoterResponse, read)
