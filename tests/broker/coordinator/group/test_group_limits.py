"""Limits of the state that clients can create in the group coordinator."""

import pytest

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from tests.support.virtual.group_world import TP, World

pytestmark = pytest.mark.fault("B16")


def test_max_groups() -> None:
    world = World(max_groups=3, offsets_retention_check_ms=1_000)
    assert [world.join(group_id=name)[0].error_code for name in "ab"] == [NONE, NONE]
    assert world.commit(1, group_id="c") == NONE
    assert world.join(group_id="d")[0].error_code == code_of(e.PolicyViolationError)
    assert world.commit(1, group_id="d") == code_of(e.PolicyViolationError)
    assert world.commit(2, group_id="c") == NONE
    assert len(world.coordinator.list_groups()) == 3
    assert world.delete_group("c") is None
    assert world.join(group_id="d")[0].error_code == NONE


def test_pending_members_count_toward_group_max_size() -> None:
    """Every JoinGroup without an id creates a pending member (KIP-394)."""
    world = World(max_size=3)
    promised = [world.join(version=4)[0] for _ in range(5)]
    codes = [response.error_code for response in promised]
    required, full = code_of(e.MemberIdRequiredError), code_of(e.GroupMaxSizeReachedError)
    assert codes == [required] * 3 + [full] * 2
    assert world.join(promised[0].member_id, version=4)[0].error_code == NONE
    world.pass_time(10_100)
    assert world.join(version=4)[0].error_code == required


def test_member_metadata_limit() -> None:
    world = World(member_metadata_max_bytes=100)
    too_much = world.join(metadata=b"x" * 50, protocols=["range", "roundrobin"])
    assert too_much[0].error_code == code_of(e.PolicyViolationError)
    assert world.coordinator.list_groups() == []
    assert world.join(metadata=b"x" * 40, protocols=["range", "r"])[0].error_code == NONE


def test_rejected_join_creates_no_group() -> None:
    world = World()
    for number in range(50):
        world.join(group_id=f"group-{number}", session_timeout_ms=1)
    assert world.coordinator.list_groups() == []


def test_too_large_commit_is_rejected() -> None:
    world = World()
    world.log.failure = e.RecordTooLargeError("one batch")
    assert world.commit(1) == code_of(e.InvalidCommitOffsetSizeError)
    assert world.coordinator.fetch_offsets("g") == {}
    world.log.failure = None
    assert world.commit(1) == NONE
    assert TP in world.coordinator.fetch_offsets("g")
