"""Coordinator of a partition follows its leader: states, epochs, responses in each state."""

import errno
from collections.abc import Callable
from itertools import pairwise

import pytest

from kclient.broker.coordinator.runtime.coordinator_runtime import (
    PREVIOUS,
    CoordinatorState,
    check_transition,
)
from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.protocol.messages.group_membership import MemberIdentity
from tests.support.virtual.group_world import TP, World

LOADING, NOT_MINE = e.CoordinatorLoadInProgressError, e.NotCoordinatorError
STOPPED = e.CoordinatorNotAvailableError


@pytest.mark.parametrize("old", CoordinatorState)
@pytest.mark.parametrize("new", CoordinatorState)
def test_transitions(old: CoordinatorState, new: CoordinatorState) -> None:
    if old in PREVIOUS[new]:
        check_transition(0, old, new)
    else:
        with pytest.raises(IllegalStateError, match=f"from {old.value} to {new.value}"):
            check_transition(0, old, new)


def becomes_leader(world: World) -> None:
    world.resign(1)
    world.log.leader_epoch = 2
    for partition in range(world.log.partition_count):
        world.coordinator.on_leadership(partition, 2)


def fails_to_load(world: World) -> None:
    world.log.failure_of_reads = e.KafkaStorageError("disk")
    becomes_leader(world)
    world.coordinator.load_now()


STATES: list[tuple[Callable[[World], None], type[KafkaError], int]] = [
    (becomes_leader, LOADING, NONE),
    (fails_to_load, NOT_MINE, code_of(NOT_MINE)),
    (lambda world: world.resign(1), NOT_MINE, code_of(NOT_MINE)),
    (lambda world: world.coordinator.shutdown(), STOPPED, code_of(STOPPED)),
]


@pytest.mark.parametrize(("change", "error", "heartbeat"), STATES)
def test_response_in_each_state(
    change: Callable[[World], None], error: type[KafkaError], heartbeat: int
) -> None:
    world = World()
    leader, _, generation = world.stable_pair()
    change(world)
    code = code_of(error)
    assert world.heartbeat(leader, generation) == heartbeat
    assert world.join(leader)[0].error_code == code
    assert world.sync(leader, generation)[0].error_code == code
    assert world.commit(1, leader, generation) == code
    assert world.coordinator.describe_group("g").error_code == code
    assert isinstance(world.delete_group("g"), error)
    with pytest.raises(error):
        world.coordinator.fetch_offsets("g")
    with pytest.raises(error):
        world.coordinator.fetch_offsets("")  # before anything else


@pytest.mark.parametrize(
    ("change", "error"),
    [(STATES[0][0], LOADING), (STATES[1][0], NOT_MINE), (STATES[3][0], STOPPED)],
)
def test_list_needs_every_partition(
    change: Callable[[World], None], error: type[KafkaError]
) -> None:
    world = World()
    change(world)
    with pytest.raises(error):
        world.coordinator.list_groups()


def test_list_without_partitions_is_empty() -> None:
    world = World()
    world.commit(1)
    world.resign(1)
    assert world.coordinator.list_groups() == []


def test_old_epochs_are_ignored() -> None:
    world = World()
    world.commit(1)
    world.lead(0)
    world.resign(0)
    assert world.coordinator.fetch_offsets("g")[TP].offset == 1
    world.resign(3)
    world.lead(2)
    world.lead(3)
    assert world.commit(2) == code_of(NOT_MINE)
    world.lead(4)
    assert world.commit(2) == NONE


def test_deletion_ends_all_epochs() -> None:
    world = World()
    world.lead(7)
    for partition in range(world.log.partition_count):
        world.coordinator.on_resignation(partition, None)
    assert world.commit(2) == code_of(NOT_MINE)
    world.log.records.clear()
    world.lead(0)
    assert world.commit(2) == NONE


def test_next_epoch_of_the_same_leader_keeps_its_groups() -> None:
    world = World()
    leader, _, generation = world.stable_pair()
    world.join(leader)  # a rebalance is in memory only
    world.lead(1)
    assert world.state() == "PreparingRebalance"
    world.lead(3)  # another broker may have led in between
    assert world.state() == "Stable"
    assert world.heartbeat(leader, generation) == NONE


def test_pending_write_does_not_complete_in_the_next_epoch() -> None:
    world = World()
    world.log.withheld = []
    codes = world.start_commit(1)
    world.lead(1)
    assert codes == [{TP: code_of(NOT_MINE)}]
    world.log.commit()
    assert len(codes) == 1


def test_failed_load_is_repeated_in_the_next_epoch() -> None:
    world = World()
    world.commit(1)
    fails_to_load(world)
    world.log.failure_of_reads = None
    world.coordinator.load_now()
    with pytest.raises(NOT_MINE):
        world.coordinator.fetch_offsets("g")
    world.lead(3)
    assert world.coordinator.fetch_offsets("g")[TP].offset == 1


def without_descriptors() -> KafkaError:
    error = e.KafkaStorageError("__consumer_offsets-0: load: Too many open files")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    return error


def test_load_without_descriptors_is_retried_with_backoff(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="kclient.broker.coordinator")
    world = World()
    world.commit(1)
    world.log.failure_of_reads = without_descriptors()
    becomes_leader(world)
    attempts_ms = [world.clock.now_ms]
    while len(attempts_ms) < 10:
        next_ms = world.coordinator.load_step(attempts_ms[-1])
        while next_ms is not None and next_ms <= attempts_ms[-1]:
            next_ms = world.coordinator.load_step(attempts_ms[-1])
        assert next_ms is not None
        attempts_ms.append(next_ms)
    delays_ms = [after - before for before, after in pairwise(attempts_ms)]
    assert delays_ms == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    with pytest.raises(LOADING):
        world.coordinator.fetch_offsets("g")
    assert caplog.text.count("Too many open files") == world.log.partition_count
    world.log.failure_of_reads = None
    world.clock.now_ms = attempts_ms[-1]
    world.coordinator.load_now()
    assert world.coordinator.fetch_offsets("g")[TP].offset == 1
    assert caplog.text.count("is loaded after 9 failed attempts") == world.log.partition_count


def test_members_get_a_full_session_after_loading() -> None:
    world = World()
    leader, _, generation = world.stable_pair()
    world.pass_time(9_000)
    world.resign(1)
    world.lead(2)
    world.pass_time(9_000)
    assert world.heartbeat(leader, generation) == NONE
    world.resign(3)
    world.pass_time(20_000)
    assert len(world.log.records) == 1  # a broker that does not lead writes nothing
    world.lead(4)
    assert world.heartbeat(leader, generation) == NONE


def test_records_of_others_are_loaded() -> None:
    """A write whose offset differs from the expected one is not trusted."""
    world = World()
    world.commit(1)
    (partition,) = world.log.records
    other = World(world.log)
    assert other.commit(5) == NONE
    assert world.commit(2) == code_of(NOT_MINE)
    with pytest.raises(LOADING):
        world.coordinator.fetch_offsets("g")
    world.coordinator.step(world.clock.now_ms)
    world.coordinator.load_now()
    assert world.coordinator.fetch_offsets("g")[TP].offset == 2
    assert len(world.log.records[partition]) == 3
    assert world.commit(3) == NONE


def test_lost_leadership_fails_a_leave() -> None:
    world = World()
    joined = world.join()[0]
    world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    world.log.withheld = []
    codes: list[int] = []
    for version in (2, 5):
        identity = MemberIdentity(member_id=joined.member_id)
        world.start_leave(identity, version, lambda response: codes.append(response.error_code))
    world.resign(1)
    assert codes == [code_of(NOT_MINE)] * 2


def test_steps_continue_what_the_budget_leaves() -> None:
    world = World()
    world.commit(1)
    (partition,) = world.log.records
    world.resign(1)
    woken: list[int] = []
    world.coordinator.wakeup = lambda: woken.append(1)
    world.log.leader_epoch = 2
    world.coordinator.on_leadership(partition, 2)
    assert woken == [1]
    world.coordinator.load_now(-1.0)
    with pytest.raises(LOADING):
        world.coordinator.fetch_offsets("g")
    steps = 1
    while world.coordinator.step(world.clock.now_ms) <= world.clock.now_ms:
        steps += 1
    assert steps > 1
    assert world.coordinator.fetch_offsets("g")[TP].offset == 1
