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


def test_refused_group_is_logged_with_the_option(caplog: pytest.LogCaptureFixture) -> None:
    world = World(max_groups=1)
    world.join(group_id="a")
    for _ in range(3):
        world.join(group_id="b")
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == ["group b: refused, there are 1 groups (max.groups)"]


def test_subscription_metadata_has_no_limit_of_its_own() -> None:
    world = World()
    assert world.join(metadata=bytes(5_000_000), protocols=["range"])[0].error_code == NONE


def test_generation_too_large_for_the_log_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    (member,) = world.join()
    world.log.failure = e.RecordTooLargeError("got 2000000 bytes (max.message.bytes)")
    (synced,) = world.sync(member.member_id, member.generation_id)
    assert synced.error_code == code_of(e.UnknownServerError)
    assert "generation 1 with 1 members: got 2000000 bytes (max.message.bytes)" in caplog.text


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
