"""Admin calls that describe groups: the APIs that are asked, and groups of each type."""

from typing import Any

import pytest

from kclient.admin.group_description_calls import (
    describe_classic_groups,
    describe_consumer_groups,
)
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    GroupIdNotFoundError,
    TopicAuthorizationError,
)
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages import consumer_group_describe as messages
from kclient.protocol.messages.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def describing(world: AdminWorld, group: DescribedGroup) -> None:
    """Let the coordinator describe a classic group."""
    world.coordinate(group.group_id, 1)
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: DescribeGroupsResponse(groups=[group]), high=6)


def describing_new(world: AdminWorld, group: messages.DescribedGroup, high: int = 1) -> None:
    """Let the coordinator describe a group of type "consumer"."""
    world.coordinate(group.group_id, 1)
    response = messages.ConsumerGroupDescribeResponse(groups=[group])
    world.respond(ApiKey.CONSUMER_GROUP_DESCRIBE, lambda *_: response, high=high)


def listing(world: AdminWorld, group_type: str) -> None:
    """Let brokers list group g with a type."""
    listed = ListedGroup(group_id="g", protocol_type=group_type, group_type=group_type)
    world.respond(ApiKey.LIST_GROUPS, lambda *_: ListGroupsResponse(groups=[listed]), high=5)


def assigned(*numbers: int) -> messages.Assignment:
    part = messages.TopicPartitions(topic_name="t", partitions=list(numbers))
    return messages.Assignment(topic_partitions=[part])


MEMBER = messages.Member(
    member_id="m",
    instance_id="one",
    rack_id="r",
    member_epoch=7,
    client_id="c",
    client_host="/10.0.0.9",
    subscribed_topic_names=["t", "u"],
    subscribed_topic_regex="t.*",
    assignment=assigned(0),
    target_assignment=assigned(0, 1),
    member_type=1,
)
GROUP = messages.DescribedGroup(
    group_id="g",
    group_state="Reconciling",
    group_epoch=8,
    assignment_epoch=7,
    assignor_name="uniform",
    members=[MEMBER],
)


def test_group_of_type_consumer_has_epochs_and_targets() -> None:
    world = AdminWorld()
    describing_new(world, GROUP)
    group = world.run(describe_consumer_groups, "g")["g"]
    assert (group.group_type, group.state, group.partition_assignor) == (
        "consumer",
        "Reconciling",
        "uniform",
    )
    assert (group.group_epoch, group.target_assignment_epoch) == (8, 7)
    (member,) = group.members
    assert (member.assignment, member.target_assignment) == (
        frozenset({FIRST}),
        frozenset({FIRST, SECOND}),
    )
    assert (member.member_epoch, member.upgraded, member.rack_id) == (7, True, "r")
    assert member.subscribed_topic_names == ("t", "u")
    assert member.subscribed_topic_regex == "t.*"
    assert (member.member_id, member.group_instance_id) == ("m", "one")
    assert (member.client_id, member.host) == ("c", "/10.0.0.9")
    assert world.requests(DescribeGroupsRequest) == []


def test_old_coordinator_does_not_report_upgraded_members() -> None:
    world = AdminWorld()
    describing_new(world, GROUP, high=0)
    (member,) = world.run(describe_consumer_groups, "g")["g"].members
    assert member.upgraded is None


@pytest.mark.parametrize("code", [35, 69])
def test_group_that_is_not_of_type_consumer_is_described_as_classic(code: int) -> None:
    world = AdminWorld()
    describing_new(world, messages.DescribedGroup(group_id="g", error_code=code))
    describing(world, DescribedGroup(group_id="g", group_state="Empty", protocol_data="range"))
    group = world.run(describe_consumer_groups, "g")["g"]
    assert (group.group_type, group.state, group.partition_assignor) == (
        "classic",
        "Empty",
        "range",
    )
    assert (group.group_epoch, group.target_assignment_epoch) == (None, None)


def test_topic_of_a_group_that_may_not_be_described_is_an_error() -> None:
    world = AdminWorld()
    describing_new(world, messages.DescribedGroup(group_id="g", error_code=29))
    with pytest.raises(TopicAuthorizationError, match="group 'g'"):
        world.run(describe_consumer_groups, "g")
    assert world.requests(DescribeGroupsRequest) == []


def test_group_of_another_type_is_not_reported_as_dead() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g", group_state="Dead", error_code=69))
    listing(world, "Share")
    with pytest.raises(GroupIdNotFoundError, match=r"its type is 'share'; use describe_share_gr"):
        world.run(describe_consumer_groups, "g")


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
    found = world.run(describe_consumer_groups, ["g"])
    (member,) = found["g"].members
    assert (found["g"].partition_assignor, found["g"].coordinator) == (
        "range",
        world.brokers[0].node,
    )
    assert member.assignment == {TopicPartition("t", 0), TopicPartition("t", 2)}


def test_missing_group_is_dead() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g", group_state="Dead", error_code=69))
    listing(world, "")
    found = world.run(describe_consumer_groups, ["g"])
    assert (found["g"].state, found["g"].members) == ("Dead", ())


def test_group_whose_coordinator_is_denied_is_named() -> None:
    world = AdminWorld()
    denied = FindCoordinatorResponse(error_code=30)
    world.respond(ApiKey.FIND_COORDINATOR, lambda *_: denied, high=3)
    with pytest.raises(GroupAuthorizationError, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
        world.run(describe_consumer_groups, "g")


@pytest.mark.parametrize("code", [0, 69])
def test_classic_group_that_does_not_exist_is_an_error(code: int) -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g", group_state="Dead", error_code=code))
    with pytest.raises(GroupIdNotFoundError, match="group 'g'"):
        world.run(describe_classic_groups, "g")


def test_classic_group_of_another_protocol_is_described() -> None:
    world = AdminWorld()
    member = DescribedGroupMember(member_id="m", member_assignment=b"of the application")
    group = DescribedGroup(
        group_id="g",
        group_state="Stable",
        protocol_type="connect",
        protocol_data="sessioned",
        members=[member],
    )
    describing(world, group)
    found = world.run(describe_classic_groups, ["g"])["g"]
    assert (found.protocol, found.protocol_data, found.state) == ("connect", "sessioned", "Stable")
    assert found.coordinator == world.brokers[0].node
    assert [(each.member_id, each.assignment) for each in found.members] == [("m", frozenset())]


def test_group_that_the_response_omits_is_an_error() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g"))
    empty = DescribeGroupsResponse()
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: empty, high=6)
    calls: list[Any] = [describe_consumer_groups, describe_classic_groups]
    for call in calls:
        results = world.run(call, ["g"])
        assert str(results.errors["g"]) == "group 'g': it is missing in the response"


def test_groups_of_each_kind_need_one_request_of_each_api() -> None:
    world = AdminWorld()
    for name in ("new", "old", "dead", "share"):
        world.coordinate(name, 1)
    new = [
        messages.DescribedGroup(group_id="new", group_state="Stable"),
        *(messages.DescribedGroup(group_id=name, error_code=69) for name in ("old", "dead")),
        messages.DescribedGroup(group_id="share", error_code=69),
    ]
    response = messages.ConsumerGroupDescribeResponse(groups=new)
    world.respond(ApiKey.CONSUMER_GROUP_DESCRIBE, lambda *_: response, high=1)
    classic = DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id="old", group_state="Empty"),
            *(
                DescribedGroup(group_id=name, group_state="Dead", error_code=69)
                for name in ("dead", "share")
            ),
        ]
    )
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: classic, high=6)
    shared = [ListedGroup(group_id="share", protocol_type="share", group_type="Share")]
    world.respond(ApiKey.LIST_GROUPS, lambda *_: ListGroupsResponse(groups=shared), high=5)
    found = world.run(describe_consumer_groups, ["share", "dead", "old", "new"])
    assert list(found) == ["share", "dead", "old", "new"]
    assert found.errors.keys() == {"share"}
    assert [found[name].state for name in ("dead", "old", "new")] == ["Dead", "Empty", "Stable"]
    (request,) = world.requests(DescribeGroupsRequest)
    assert isinstance(request, DescribeGroupsRequest)
    assert request.groups == ["share", "dead", "old"]
    apis = (ApiKey.FIND_COORDINATOR, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.LIST_GROUPS)
    assert [len(world.versions(api)) for api in apis] == [1, 1, 1]


def test_members_that_cannot_be_decoded_are_an_error_of_their_group() -> None:
    world = AdminWorld()
    broken = DescribedGroup(
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        members=[DescribedGroupMember(member_id="m", member_assignment=b"?")],
    )
    sound = DescribedGroup(group_id="h", group_state="Empty", protocol_type="consumer")
    world.coordinate("h", 1)
    describing(world, broken)
    response = DescribeGroupsResponse(groups=[broken, sound])
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: response, high=6)
    found = world.run(describe_classic_groups, ["g", "h"])
    assert found.errors.keys() == {"g"}
    assert found["h"].state == "Empty"
