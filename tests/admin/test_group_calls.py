"""Admin calls for groups: brokers that are asked, versions, and errors by group."""

import pytest

from kclient.admin import group_calls
from kclient.admin.admin_types import GroupListing
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
)
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kclient.protocol.messages.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld


def listed(broker: ScriptedBroker, _: Request) -> Response:
    """List one group, which has the name of the broker."""
    name = f"group-{broker.node.id}"
    group = ListedGroup(
        group_id=name, protocol_type="consumer", group_state="Stable", group_type="Consumer"
    )
    return ListGroupsResponse(groups=[group])


def describing(world: AdminWorld, group: DescribedGroup) -> None:
    world.coordinate(group.group_id, 1)
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: DescribeGroupsResponse(groups=[group]), high=5)


def test_every_broker_lists_its_groups() -> None:
    world = AdminWorld(3)
    world.respond(ApiKey.LIST_GROUPS, listed, high=5)
    found = world.run(group_calls.list_groups)
    assert sorted(found) == [
        GroupListing(f"group-{number}", "consumer", "Stable", "consumer") for number in (1, 2, 3)
    ]


def test_old_broker_sends_neither_state_nor_type() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_GROUPS, listed, high=3)
    found = world.run(group_calls.list_groups)
    assert found == [GroupListing("group-1", "consumer", None, None)]


def test_filter_of_states_needs_version_4() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_GROUPS, listed, high=3)
    with pytest.raises(UnsupportedVersionError):
        world.run(group_calls.list_groups, states=["Empty"])
    assert world.requests(ListGroupsRequest) == []


def test_members_have_their_assignments() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[AssignedTopicPartitions(topic="t", partitions=[0, 2])]
    )
    world = AdminWorld()
    describing(
        world,
        DescribedGroup(
            group_id="g",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                DescribedGroupMember(
                    member_id="m", client_id="c", member_assignment=assignment.encode_versioned(0)
                )
            ],
        ),
    )
    found = world.run(group_calls.describe_consumer_groups, ["g"])
    (member,) = found["g"].members
    assert (found["g"].partition_assignor, found["g"].coordinator) == (
        "range",
        world.brokers[0].node,
    )
    assert member.assignment == {TopicPartition("t", 0), TopicPartition("t", 2)}


def test_group_of_another_type_is_not_reported_as_dead() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="group-1", group_state="Dead"))
    world.respond(ApiKey.LIST_GROUPS, listed, high=5)
    with pytest.raises(UnsupportedVersionError, match="its type is 'consumer'"):
        world.run(group_calls.describe_consumer_groups, ["group-1"])


def test_missing_group_is_dead() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g", group_state="Dead", error_code=69))
    world.respond(ApiKey.LIST_GROUPS, listed, high=5)
    found = world.run(group_calls.describe_consumer_groups, ["g"])
    assert (found["g"].state, found["g"].members) == ("Dead", ())


def test_group_whose_coordinator_is_denied_is_named() -> None:
    world = AdminWorld()
    denied = FindCoordinatorResponse(error_code=30)
    world.respond(ApiKey.FIND_COORDINATOR, lambda *_: denied, high=3)
    with pytest.raises(GroupAuthorizationError, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
        world.run(group_calls.describe_consumer_groups, "g")


def test_groups_after_one_that_is_not_deleted_are_deleted() -> None:
    world = AdminWorld()
    deleted: list[str] = []

    def delete(_: ScriptedBroker, request: Request) -> Response:
        (name,) = request.groups_names  # type: ignore[attr-defined]  # a DeleteGroupsRequest
        deleted.append(name)
        code = 68 if name == "used" else 0
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name, error_code=code)])

    world.respond(ApiKey.DELETE_GROUPS, delete, high=2)
    world.coordinate("used", 1)
    world.coordinate("free", 1)
    with pytest.raises(GroupNotEmptyError, match="group 'used'"):
        world.run(group_calls.delete_consumer_groups, ["used", "free"])
    assert deleted == ["used", "free"]


def test_offsets_that_are_not_deleted_are_named() -> None:
    results = [
        OffsetDeleteResponsePartition(partition_index=0),
        OffsetDeleteResponsePartition(partition_index=1, error_code=86),
    ]
    response = OffsetDeleteResponse(
        topics=[OffsetDeleteResponseTopic(name="t", partitions=results)]
    )
    world = AdminWorld(2)
    world.coordinate("g", 2)
    world.respond(ApiKey.OFFSET_DELETE, lambda *_: response, high=0)
    wanted = [TopicPartition("t", 0), TopicPartition("t", 1)]
    with pytest.raises(GroupSubscribedToTopicError, match="group 'g', t-1"):
        world.run(group_calls.delete_consumer_group_offsets, "g", wanted)
    (request,) = world.requests(OffsetDeleteRequest, 2)
    assert isinstance(request, OffsetDeleteRequest)
    assert [part.partition_index for part in request.topics[0].partitions] == [0, 1]


@pytest.mark.parametrize("version", [7, 9])
def test_committed_offsets_of_both_forms_of_the_request(version: int) -> None:
    wanted = [TopicPartition("t", 0), TopicPartition("t", 1)]

    def fetched(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, OffsetFetchRequest)
        if version >= 8:
            (group,) = request.groups
            assert group.group_id == "g"
            assert group.topics is not None
            assert group.topics[0].partition_indexes == [0, 1]
            parts = [
                OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m"),
                OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
            ]
            topic = OffsetFetchResponseTopics(name="t", partitions=parts)
            return OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])]
            )
        assert request.group_id == "g"
        assert request.topics is not None
        assert request.topics[0].partition_indexes == [0, 1]
        old = [
            OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="m"),
            OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        ]
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=old)])

    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, fetched, low=2, high=version)
    found = world.run(group_calls.list_consumer_group_offsets, "g", wanted)
    assert found == {TopicPartition("t", 0): OffsetAndMetadata(5, "m", -1)}


def test_stable_offsets_are_awaited_until_transactions_end() -> None:
    assert UnstableOffsetCommitError.code is not None
    codes = [UnstableOffsetCommitError.code, 0]

    def fetched(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, OffsetFetchRequest)
        assert request.require_stable
        assert request.topics is None
        part = OffsetFetchResponsePartition(
            partition_index=0, committed_offset=5, error_code=codes.pop(0)
        )
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[part])])

    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, fetched, low=2, high=7)
    found = world.run(group_calls.list_consumer_group_offsets, "g", require_stable=True)
    assert found == {TopicPartition("t", 0): OffsetAndMetadata(5)}
    assert codes == []


def test_stable_offsets_need_a_broker_that_knows_them() -> None:
    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, lambda *_: OffsetFetchResponse(), low=2, high=6)
    with pytest.raises(UnsupportedVersionError):
        world.run(group_calls.list_consumer_group_offsets, "g", require_stable=True)


def test_topic_ids_of_newer_versions_are_not_needed() -> None:
    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, lambda *_: OffsetFetchResponse(), low=2, high=10)
    assert world.run(group_calls.list_consumer_group_offsets, "g") == {}
    assert world.versions(ApiKey.OFFSET_FETCH) == [9]
