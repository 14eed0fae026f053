"""Admin calls for share groups: requests, and errors by group, partition and topic."""

from typing import Any

import pytest

from kclient.admin import share_group_calls as calls
from kclient.admin.share_types import (
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
)
from kclient.common.broker_errors import (
    GroupIdNotFoundError,
    GroupNotEmptyError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError, ProtocolError
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages import share_group_describe as description
from kclient.protocol.messages import share_group_offsets as messages
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))


def world_with(api: ApiKey, *responses: Response, high: int = 0, low: int = 0) -> AdminWorld:
    """Let the coordinator of group g return these responses, one after the other."""
    world, left = AdminWorld(2), list(responses)
    world.coordinate("g", 2)
    world.respond(api, lambda *_: left.pop(0), low=low, high=high)
    return world


def test_share_group_is_described() -> None:
    member = description.Member(
        member_id="m",
        rack_id="r",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        assignment=description.Assignment(
            topic_partitions=[description.TopicPartitions(topic_name="t", partitions=[0, 1])]
        ),
    )
    group = description.DescribedGroup(
        group_id="g",
        group_state="Stable",
        group_epoch=4,
        assignment_epoch=3,
        assignor_name="simple",
        members=[member],
    )
    response = description.ShareGroupDescribeResponse(groups=[group])
    world = world_with(ApiKey.SHARE_GROUP_DESCRIBE, response, low=1, high=1)
    assert world.run(calls.describe_share_groups, "g") == {
        "g": ShareGroupDescription(
            "g",
            "Stable",
            world.brokers[1].node,
            (ShareMemberDescription("m", "c", "/h", frozenset({FIRST, SECOND}), 3, "r", ("t",)),),
            4,
            3,
            "simple",
        )
    }


def test_share_group_that_does_not_exist_is_an_error() -> None:
    missing = description.DescribedGroup(group_id="g", error_code=69, error_message="not found")
    response = description.ShareGroupDescribeResponse(groups=[missing])
    world = world_with(ApiKey.SHARE_GROUP_DESCRIBE, response, low=1, high=1)
    with pytest.raises(GroupIdNotFoundError, match="group 'g': GROUP_ID_NOT_FOUND: not found"):
        world.run(calls.describe_share_groups, "g")


def test_old_broker_has_no_share_groups() -> None:
    world = AdminWorld()
    world.coordinate("g", 1)
    with pytest.raises(UnsupportedVersionError):
        world.run(calls.describe_share_groups, "g")


def offsets_response(*parts: tuple[int, int, int, int, int]) -> Response:
    """Return offsets of topic t: partition, offset, leader epoch, lag, error."""
    found = [
        messages.DescribeShareGroupOffsetsResponsePartition(
            partition_index=number,
            start_offset=offset,
            leader_epoch=epoch,
            lag=lag,
            error_code=code,
        )
        for number, offset, epoch, lag, code in parts
    ]
    topic = messages.DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=found)
    group = messages.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])
    return messages.DescribeShareGroupOffsetsResponse(groups=[group])


def test_start_offsets_have_lags_and_errors_by_partition() -> None:
    response = offsets_response((0, 5, 1, 7, 0), (1, -1, 0, -1, 0), (2, -1, -1, -1, 3))
    world = world_with(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, response, high=1)
    found = world.run(calls.list_share_group_offsets, "g", [FIRST, SECOND, THIRD])
    assert list(found) == [FIRST, THIRD]
    assert found[FIRST] == SharePartitionOffsetInfo(5, 1, 7)
    with pytest.raises(UnknownTopicOrPartitionError, match="group 'g', t-2"):
        _ = found[THIRD]
    (request,) = world.requests(messages.DescribeShareGroupOffsetsRequest, 2)
    assert isinstance(request, messages.DescribeShareGroupOffsetsRequest)
    (group,) = request.groups
    assert group.topics is not None
    assert [(each.topic_name, each.partitions) for each in group.topics] == [("t", [0, 1, 2])]


def test_old_broker_sends_neither_lag_nor_leader_epoch() -> None:
    response = offsets_response((0, 5, -1, -1, 0))
    world = world_with(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, response, high=0)
    assert world.run(calls.list_share_group_offsets, "g") == {
        FIRST: SharePartitionOffsetInfo(5, None, None)
    }
    (request,) = world.requests(messages.DescribeShareGroupOffsetsRequest, 2)
    assert isinstance(request, messages.DescribeShareGroupOffsetsRequest)
    assert request.groups[0].topics is None


def altered(*codes: int, code: int = 0) -> Response:
    parts = [
        messages.AlterShareGroupOffsetsResponsePartition(partition_index=number, error_code=each)
        for number, each in enumerate(codes)
    ]
    topic = messages.AlterShareGroupOffsetsResponseTopic(topic_name="t", partitions=parts)
    return messages.AlterShareGroupOffsetsResponse(error_code=code, responses=[topic])


def test_start_offsets_are_set_once_the_coordinator_is_ready() -> None:
    world = world_with(ApiKey.ALTER_SHARE_GROUP_OFFSETS, altered(code=14), altered(0, 3))
    results = world.run(calls.alter_share_group_offsets, "g", {FIRST: 5, SECOND: 0})
    assert results[FIRST] is None
    with pytest.raises(UnknownTopicOrPartitionError, match="group 'g', t-1"):
        results.raise_for_errors()
    request = world.requests(messages.AlterShareGroupOffsetsRequest, 2)[-1]
    assert isinstance(request, messages.AlterShareGroupOffsetsRequest)
    (topic,) = request.topics
    assert [(each.partition_index, each.start_offset) for each in topic.partitions] == [
        (0, 5),
        (1, 0),
    ]


def test_offsets_of_a_group_with_members_are_not_changed() -> None:
    world = world_with(ApiKey.ALTER_SHARE_GROUP_OFFSETS, altered(code=68))
    with pytest.raises(GroupNotEmptyError, match="group 'g'"):
        world.run(calls.alter_share_group_offsets, "g", {FIRST: 5})
    refused = messages.DeleteShareGroupOffsetsResponse(error_code=68)
    world = world_with(ApiKey.DELETE_SHARE_GROUP_OFFSETS, refused)
    with pytest.raises(GroupNotEmptyError, match="group 'g'"):
        world.run(calls.delete_share_group_offsets, "g", ["t"])


def test_offsets_are_deleted_by_topic() -> None:
    topics = [
        messages.DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=code)
        for name, code in (("t", 0), ("u", 3))
    ]
    response = messages.DeleteShareGroupOffsetsResponse(responses=topics)
    world = world_with(ApiKey.DELETE_SHARE_GROUP_OFFSETS, response)
    results = world.run(calls.delete_share_group_offsets, "g", ["t", "u"])
    assert results["t"] is None
    with pytest.raises(UnknownTopicOrPartitionError, match="group 'g', topic 'u'"):
        results.raise_for_errors()
    (request,) = world.requests(messages.DeleteShareGroupOffsetsRequest, 2)
    assert isinstance(request, messages.DeleteShareGroupOffsetsRequest)
    assert [each.topic_name for each in request.topics] == ["t", "u"]


def test_share_groups_are_deleted() -> None:
    result = DeletableGroupResult(group_id="g", error_code=68)
    world = world_with(ApiKey.DELETE_GROUPS, DeleteGroupsResponse(results=[result]), high=3)
    with pytest.raises(GroupNotEmptyError, match="group 'g'"):
        world.run(calls.delete_share_groups, "g")
    assert len(world.requests(DeleteGroupsRequest, 2)) == 1


@pytest.mark.parametrize("offsets", [{}, {FIRST: -1}, {FIRST: "1"}, {FIRST: None}, [FIRST]])
def test_wrong_start_offsets_are_refused(offsets: Any) -> None:
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=r"^offsets"):
        AdminWorld().run(calls.alter_share_group_offsets, "g", offsets)


def test_topic_and_partition_that_the_response_omits_have_errors() -> None:
    world = world_with(ApiKey.ALTER_SHARE_GROUP_OFFSETS, altered(0))
    results = world.run(calls.alter_share_group_offsets, "g", {FIRST: 5, SECOND: 0})
    assert results.errors.keys() == {SECOND}
    response = messages.DeleteShareGroupOffsetsResponse()
    world = world_with(ApiKey.DELETE_SHARE_GROUP_OFFSETS, response)
    with pytest.raises(ProtocolError, match="t is missing in the response"):
        world.run(calls.delete_share_group_offsets, "g", "t")
