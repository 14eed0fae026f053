"""Admin calls for the metadata quorum, feature levels and registered nodes."""

from collections.abc import Mapping, Sequence

from kclient.admin.admin_types import (
    FeatureMetadata,
    FeatureUpdate,
    QuorumInfo,
    QuorumReplicaState,
    RaftVoterEndpoint,
    UpgradeType,
    VersionRange,
)
from kclient.admin.requester import Requester, item_error, raise_failures
from kclient.client.api_versions_negotiator import CLIENT_SOFTWARE_NAME
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError, ProtocolError
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


def describe_metadata_quorum(requester: Requester, deadline_ms: float) -> Steps[QuorumInfo]:
    """Describe the quorum of the metadata log."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=_CLUSTER_METADATA, partitions=[partition])

    def read(response: DescribeQuorumResponse) -> QuorumInfo:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            raise error
        found = [part for topic in response.topics for part in topic.partitions]
        if len(found) != 1 or response.topics[0].topic_name != _CLUSTER_METADATA:
            raise ProtocolError(f"DescribeQuorum: got {len(found)} partitions, expected 1")
        error = error_for_code(found[0].error_code, found[0].error_message)
        if error is not None:
            raise error
        return _quorum(response, found[0])

    builder = SimpleBuilder(DescribeQuorumRequest(topics=[topic]))
    return requester.send_to_least_loaded(builder, DescribeQuorumResponse, read, deadline_ms)


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
    requester: Requester, node_id: int | None, deadline_ms: float
) -> Steps[FeatureMetadata]:
    """Return the features of the cluster, and of one broker."""

    def read(response: ApiVersionsResponse) -> FeatureMetadata:
        error = error_for_code(response.error_code)
        if error is not None:
            raise error
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
        return requester.send_to_least_loaded(builder, ApiVersionsResponse, read, deadline_ms)
    return requester.send_to_broker(node_id, builder, ApiVersionsResponse, read, deadline_ms)


def update_features(
    requester: Requester,
    updates: Mapping[str, FeatureUpdate],
    deadline_ms: float,
    *,
    validate_only: bool,
) -> Steps[None]:
    """Change finalized feature levels."""
    request = UpdateFeaturesRequest(
        timeout_ms=requester.remaining_ms(deadline_ms),
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

    def read(response: UpdateFeaturesResponse) -> dict[str, KafkaError]:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            raise error
        failures = {}
        for result in response.results:  # up to version 1
            error = item_error(
                f"feature {result.feature!r}", result.error_code, result.error_message
            )
            if error is not None:
                failures[result.feature] = error
        return failures

    is_old = not validate_only and all(
        update.upgrade_type is not UpgradeType.SAFE_DOWNGRADE for update in updates.values()
    )
    raise_failures(
        (
            yield from requester.send_to_controller(
                _UpdateFeatures(request, oldest=0 if is_old else 1),
                UpdateFeaturesResponse,
                read,
                deadline_ms,
            )
        )
    )


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


def unregister_broker(requester: Requester, broker_id: int, deadline_ms: float) -> Steps[None]:
    """Remove the registration of a broker that has stopped."""

    def read(response: UnregisterBrokerResponse) -> None:
        _raise_error(f"broker {broker_id}", response)

    builder = SimpleBuilder(UnregisterBrokerRequest(broker_id=broker_id))
    return requester.send_to_least_loaded(builder, UnregisterBrokerResponse, read, deadline_ms)


def add_raft_voter(
    requester: Requester,
    voter: tuple[int, str],
    endpoints: Sequence[RaftVoterEndpoint],
    cluster_id: str | None,
    deadline_ms: float,
) -> Steps[None]:
    """Add a controller, given by its id and directory id, to the voters."""
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=requester.remaining_ms(deadline_ms),
        voter_id=voter[0],
        voter_directory_id=text_to_uuid(voter[1]),
        listeners=[
            AddRaftVoterListener(name=each.listener, host=each.host, port=each.port)
            for each in endpoints
        ],
    )

    def read(response: AddRaftVoterResponse) -> None:
        _raise_error(f"voter {voter[0]}", response)

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, AddRaftVoterResponse, read, deadline_ms)


def remove_raft_voter(
    requester: Requester, voter: tuple[int, str], cluster_id: str | None, deadline_ms: float
) -> Steps[None]:
    """Remove a controller, given by its id and directory id, from the voters."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter[0], voter_directory_id=text_to_uuid(voter[1])
    )

    def read(response: RemoveRaftVoterResponse) -> None:
        _raise_error(f"voter {voter[0]}", response)

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, RemoveRaftVoterResponse, read, deadline_ms)


def _raise_error(
    what: str, response: UnregisterBrokerResponse | AddRaftVoterResponse | RemoveRaftVoterResponse
) -> None:
    error = item_error(what, response.error_code, response.error_message)
    if error is not None:
        raise error
