"""DescribeGroups, ListGroups and DeleteGroups requests."""

import pytest

from kclient.common.broker_errors import NONE, GroupIdNotFoundError, GroupNotEmptyError, code_of
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kclient.protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kclient.protocol.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.support.clients.wire import Wire


def create_empty_group(wire: Wire, group_id: str, topic: str) -> None:
    """Commit an offset from outside of the group, which creates it."""
    wire.metadata("__consumer_offsets", create=True)
    part = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[part])]
    request = OffsetCommitRequest(group_id=group_id, topics=topics)
    (found,) = wire.ask(request, 8, OffsetCommitResponse).topics
    assert found.partitions[0].error_code == NONE


def create_group_with_member(wire: Wire, group_id: str) -> None:
    wire.metadata("__consumer_offsets", create=True)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    assert wire.ask(request, 3, JoinGroupResponse).error_code == NONE


def delete(wire: Wire, *group_ids: str) -> list[tuple[str, int]]:
    response = wire.ask(DeleteGroupsRequest(groups_names=[*group_ids]), 2, DeleteGroupsResponse)
    return [(each.group_id, each.error_code) for each in response.results]


def test_unknown_group_is_an_error_from_version_6_on(wire: Wire) -> None:
    wire.metadata("__consumer_offsets", create=True)
    request = DescribeGroupsRequest(groups=["missing"])
    (old,) = wire.ask(request, 5, DescribeGroupsResponse).groups
    assert (old.error_code, old.error_message, old.group_state) == (NONE, None, "Dead")
    (new,) = wire.ask(request, 6, DescribeGroupsResponse).groups
    assert (new.error_code, new.group_state) == (code_of(GroupIdNotFoundError), "Dead")
    assert new.error_message == "Group missing not found."


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], True),
        (["Empty"], [], True),
        (["Stable", "empty"], ["classic"], True),
        (["Stable"], [], False),
        ([], ["consumer"], False),
    ],
)
def test_groups_are_listed_by_state_and_type(
    wire: Wire, topic: str, states: list[str], types: list[str], *, listed: bool
) -> None:
    create_empty_group(wire, topic, topic)
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    groups = wire.ask(request, 5, ListGroupsResponse).groups
    found = {each.group_id: (each.group_state, each.group_type) for each in groups}
    assert found.get(topic) == (("Empty", "classic") if listed else None)


def test_each_group_of_a_deletion_has_its_outcome(wire: Wire, topic: str) -> None:
    create_empty_group(wire, f"{topic}-empty", topic)
    create_group_with_member(wire, f"{topic}-used")
    wanted = [f"{topic}-empty", f"{topic}-used", "missing"]
    assert delete(wire, *wanted) == [
        (wanted[0], NONE),
        (wanted[1], code_of(GroupNotEmptyError)),
        (wanted[2], code_of(GroupIdNotFoundError)),
    ]
    assert delete(wire, wanted[0]) == [(wanted[0], code_of(GroupIdNotFoundError))]


def test_deletion_of_no_group_has_an_empty_response(wire: Wire) -> None:
    assert delete(wire) == []
