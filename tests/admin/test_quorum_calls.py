"""Admin calls for the metadata quorum, features and registered nodes."""

import pytest

from kclient.admin import quorum_calls
from kclient.admin.admin_types import (
    FeatureUpdate,
    QuorumReplicaState,
    RaftVoterEndpoint,
    VersionRange,
)
from kclient.common.broker_errors import (
    BrokerIdNotRegisteredError,
    DuplicateVoterError,
    InvalidUpdateVersionError,
    VoterNotFoundError,
)
from kclient.common.errors import ProtocolError
from kclient.common.upgrade_type import UpgradeType
from kclient.common.uuids import uuid_to_text
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kclient.protocol.messages.node_registration import UnregisterBrokerResponse
from kclient.protocol.messages.quorum import (
    DescribeQuorumListener,
    DescribeQuorumNode,
    DescribeQuorumReplicaState,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterResponse,
)
from kclient.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

DIRECTORY = b"d" * 16


def test_quorum_has_voters_and_their_addresses() -> None:
    voter = DescribeQuorumReplicaState(
        replica_id=1, replica_directory_id=DIRECTORY, log_end_offset=9, last_fetch_timestamp=5
    )
    partition = DescribeQuorumResponsePartitionData(
        leader_id=1,
        leader_epoch=3,
        high_watermark=8,
        current_voters=[voter],
        observers=[DescribeQuorumReplicaState(replica_id=4, log_end_offset=-1)],
    )
    listener = DescribeQuorumListener(name="CONTROLLER", host="h", port=9093)
    response = DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
        ],
        nodes=[DescribeQuorumNode(node_id=1, listeners=[listener])],
    )
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_QUORUM, lambda *_: response, high=2)
    quorum = world.run(quorum_calls.describe_metadata_quorum)
    assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (1, 3, 8)
    assert quorum.voters == (QuorumReplicaState(1, uuid_to_text(DIRECTORY), 9, 5, None),)
    assert quorum.observers == (QuorumReplicaState(4, None, -1, None, None),)
    assert quorum.nodes == {1: (RaftVoterEndpoint("CONTROLLER", "h", 9093),)}


def test_quorum_without_its_partition_is_an_error() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_QUORUM, lambda *_: DescribeQuorumResponse(), high=2)
    with pytest.raises(ProtocolError, match="got 0 partitions"):
        world.run(quorum_calls.describe_metadata_quorum)


@pytest.mark.parametrize(("epoch", "finalized"), [(7, {"f": VersionRange(1, 2)}), (-1, {})])
def test_features_of_a_node(epoch: int, finalized: dict[str, VersionRange]) -> None:
    world = AdminWorld(2)
    known = world.brokers[1].api_versions()
    response = ApiVersionsResponse(
        api_keys=known.api_keys,
        supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=3)],
        finalized_features_epoch=epoch,
        finalized_features=[
            FinalizedFeatureKey(name="f", min_version_level=1, max_version_level=2)
        ],
    )
    world.brokers[1].responses[ApiKey.API_VERSIONS] = lambda *_: response
    found = world.run(quorum_calls.describe_features, node_id=2)
    assert found.supported_features == {"f": VersionRange(1, 3)}
    assert found.finalized_features == finalized
    assert found.finalized_features_epoch == (epoch if epoch >= 0 else None)


@pytest.mark.parametrize("version", [0, 1])
def test_feature_downgrade_in_each_form_of_the_request(version: int) -> None:
    def refused(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, UpdateFeaturesRequest)
        (update,) = request.feature_updates
        assert (update.feature, update.max_version_level) == ("f", 1)
        assert update.allow_downgrade == (version == 0)
        assert update.upgrade_type == (1 if version == 0 else UpgradeType.UNSAFE_DOWNGRADE)
        result = UpdatableFeatureResult(feature="f", error_code=95, error_message="no")
        return UpdateFeaturesResponse(results=[result])

    world = AdminWorld()
    world.respond(ApiKey.UPDATE_FEATURES, refused, high=version)
    with pytest.raises(InvalidUpdateVersionError, match="feature 'f'"):
        world.run(
            quorum_calls.update_features,
            {"f": FeatureUpdate(1, UpgradeType.UNSAFE_DOWNGRADE)},
        ).raise_for_errors()


def test_error_of_a_node_names_it() -> None:
    world = AdminWorld()
    world.respond(
        ApiKey.UNREGISTER_BROKER, lambda *_: UnregisterBrokerResponse(error_code=102), high=0
    )
    with pytest.raises(BrokerIdNotRegisteredError, match="broker 7"):
        world.run(quorum_calls.unregister_broker, 7)


def test_voters_are_added_and_removed_by_directory() -> None:
    def added(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, AddRaftVoterRequest)
        assert (request.voter_id, request.voter_directory_id) == (4, DIRECTORY)
        assert [(each.name, each.host, each.port) for each in request.listeners] == [
            ("CONTROLLER", "h", 9093)
        ]
        return AddRaftVoterResponse(error_code=126)

    world = AdminWorld()
    world.respond(ApiKey.ADD_RAFT_VOTER, added, high=1)
    world.respond(
        ApiKey.REMOVE_RAFT_VOTER, lambda *_: RemoveRaftVoterResponse(error_code=127), high=0
    )
    voter = (4, uuid_to_text(DIRECTORY))
    endpoint = RaftVoterEndpoint("CONTROLLER", "h", 9093)
    with pytest.raises(DuplicateVoterError, match="voter 4"):
        world.run(quorum_calls.add_raft_voter, *voter, [endpoint])
    with pytest.raises(VoterNotFoundError, match="voter 4"):
        world.run(quorum_calls.remove_raft_voter, *voter)
