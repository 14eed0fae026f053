"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup requests, as one member sends them."""

import pytest

from kclient.common.broker_errors import (
    NONE,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    UnknownMemberIdError,
    code_of,
)
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.protocol.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from tests.support.clients.wire import Wire


def join(wire: Wire, group: str, version: int, member_id: str = "") -> JoinGroupResponse:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"topics")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return wire.ask(request, version, JoinGroupResponse)


def sync(wire: Wire, group: str, member_id: str, **options: str | None) -> SyncGroupResponse:
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"parts")]
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=member_id,
        protocol_type=options.get("protocol_type", "consumer"),
        protocol_name=options.get("protocol_name", "range"),
        assignments=assignments,
    )
    return wire.ask(request, 5, SyncGroupResponse)


def heartbeat(wire: Wire, group: str, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return wire.ask(request, 4, HeartbeatResponse).error_code


@pytest.fixture
def ready(wire: Wire) -> Wire:
    """Connection to a coordinator whose topic exists."""
    wire.metadata("__consumer_offsets", create=True)
    return wire


@pytest.fixture
def member(ready: Wire, request: pytest.FixtureRequest) -> str:
    """Id of the only member of a group that is named after the test."""
    joined = join(ready, request.node.name, 3)
    assert (joined.error_code, joined.generation_id) == (NONE, 1)
    return joined.member_id


def test_member_joins_syncs_and_leaves(
    ready: Wire, member: str, request: pytest.FixtureRequest
) -> None:
    group = request.node.name
    synced = sync(ready, group, member)
    assert (synced.error_code, synced.assignment) == (NONE, b"parts")
    assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    assert heartbeat(ready, group, member, 1) == NONE
    assert heartbeat(ready, group, member, 7) == code_of(IllegalGenerationError)
    left = ready.ask(
        LeaveGroupRequest(
            group_id=group,
            members=[MemberIdentity(member_id=member), MemberIdentity(member_id="other")],
        ),
        4,
        LeaveGroupResponse,
    )
    codes = [(each.member_id, each.error_code) for each in left.members]
    assert codes == [(member, NONE), ("other", code_of(UnknownMemberIdError))]
    assert heartbeat(ready, group, member, 1) == code_of(UnknownMemberIdError)


def test_described_member_has_client_id_and_address(
    ready: Wire, member: str, request: pytest.FixtureRequest
) -> None:
    asked = DescribeGroupsRequest(groups=[request.node.name])
    (group,) = ready.ask(asked, 5, DescribeGroupsResponse).groups
    (found,) = group.members
    assert (found.member_id, found.client_id, found.client_host) == (member, "test", "/127.0.0.1")


@pytest.mark.parametrize("version", [6, 7])
def test_failed_join_names_no_protocol(ready: Wire, version: int) -> None:
    """Before version 7 the name must not be null."""
    response = join(ready, f"failed-{version}", version, "unknown")
    assert response.error_code == code_of(UnknownMemberIdError)
    assert response.protocol_name == ("" if version < 7 else None)


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_sync_of_version_5_requires_protocol_type_and_name(
    ready: Wire, member: str, request: pytest.FixtureRequest, missing: str
) -> None:
    response = sync(ready, request.node.name, member, **{missing: None})
    assert response.error_code == code_of(InconsistentGroupProtocolError)


def test_leave_of_one_member_has_a_top_level_error(ready: Wire) -> None:
    request = LeaveGroupRequest(group_id="missing", member_id="other")
    response = ready.ask(request, 2, LeaveGroupResponse)
    assert (response.error_code, response.members) == (code_of(UnknownMemberIdError), [])
