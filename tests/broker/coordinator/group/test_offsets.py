"""Committed offsets of groups."""

import pytest

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.types import TopicPartition
from tests.support.virtual.group_world import TP, World


class TestOffsets:
    """Commits are validated against the generation and stored in the log."""

    def test_commit_without_membership(self) -> None:
        world = World()
        assert world.commit(7, metadata="note") == NONE
        kept = world.coordinator.fetch_offsets("g")[TP]
        assert (kept.offset, kept.metadata) == (7, "note")

    def test_commit_requires_current_generation(self) -> None:
        world = World()
        leader, _, generation = world.stable_pair()
        assert world.commit(1, leader, generation) == NONE
        assert world.commit(2, leader, generation - 1) == code_of(e.IllegalGenerationError)
        assert world.commit(2, "x", generation) == code_of(e.UnknownMemberIdError)
        assert world.commit(2) == code_of(e.UnknownMemberIdError)
        assert world.coordinator.fetch_offsets("g")[TP].offset == 1

    def test_commit_during_rebalance_is_valid_until_next_generation(self) -> None:
        world = World()
        leader, follower, generation = world.stable_pair()
        world.join(leader)
        assert world.commit(3, follower, generation) == NONE
        world.join(follower)
        assert world.commit(4, follower, 3) == code_of(e.RebalanceInProgressError)

    def test_oversized_commit_metadata_is_rejected(self) -> None:
        world = World(offset_metadata_max_bytes=3)
        assert world.commit(1, metadata="four") == code_of(e.OffsetMetadataTooLargeError)
        assert world.coordinator.fetch_offsets("g") == {}

    def test_failed_append_discards_commit(self) -> None:
        world = World()
        world.log.failure = e.NotCoordinatorError("disk full")
        assert world.commit(1) == code_of(e.NotCoordinatorError)
        assert world.coordinator.fetch_offsets("g") == {}

    def test_deleted_topic_removes_its_offsets(self) -> None:
        world = World()
        world.commit(1)
        world.coordinator.on_topics_deleted({"other"})
        assert TP in world.coordinator.fetch_offsets("g")
        world.coordinator.on_topics_deleted({"t"})
        assert world.coordinator.fetch_offsets("g") == {}
        assert World(world.log).coordinator.fetch_offsets("g") == {}

    def test_offsets_of_empty_group_expire(self) -> None:
        world = World(offsets_retention_ms=60_000, offsets_retention_check_ms=1_000)
        world.commit(1)
        world.pass_time(50_000)
        assert TP in world.coordinator.fetch_offsets("g")
        world.pass_time(12_000)
        assert world.coordinator.fetch_offsets("g") == {}


def reloaded(world: World) -> World:
    return World(world.log)


class TestTransactionalOffsets:
    """Offsets of a transaction take effect when it is committed."""

    def test_offset_is_unstable_until_the_transaction_is_committed(self) -> None:
        world = World()
        world.commit(1)
        assert world.commit_in_transaction(7) == NONE
        for each in (world, reloaded(world)):
            assert (each.offset(), each.coordinator.unstable_partitions("g")) == (1, {TP})
        assert world.end_transaction() == [None]
        for each in (world, reloaded(world)):
            assert (each.offset(), each.coordinator.unstable_partitions("g")) == (7, set())

    def test_aborted_offset_is_dropped(self) -> None:
        world = World()
        world.commit(1)
        world.commit_in_transaction(7)
        assert world.end_transaction(committed=False) == [None]
        for each in (world, reloaded(world)):
            assert (each.offset(), each.coordinator.unstable_partitions("g")) == (1, set())

    @pytest.mark.parametrize("reloads", [False, True])
    def test_marker_does_not_replace_a_later_commit(self, *, reloads: bool) -> None:
        world = World()
        world.commit_in_transaction(7)
        world.commit(9)
        if reloads:
            world = reloaded(world)
        world.end_transaction()
        assert world.offset() == 9

    def test_marker_ends_the_transaction_of_its_producer_alone(self) -> None:
        world = World()
        other = TopicPartition("t", 1)
        world.commit_in_transaction(7)
        world.commit_in_transaction(8, producer_id=2, partition=other)
        world.end_transaction()
        assert world.offset() == 7
        assert world.coordinator.unstable_partitions("g") == {other}

    def test_end_is_reported_when_it_is_applied(self) -> None:
        world = World()
        world.commit_in_transaction(7)
        world.log.withheld = []
        outcome = world.end_transaction()
        assert (outcome, world.offset()) == ([], -1)
        assert world.coordinator.unstable_partitions("g") == {TP}
        world.log.commit()
        assert (outcome, world.offset()) == ([None], 7)

    def test_offset_is_unstable_before_it_is_replicated(self) -> None:
        world = World()
        world.log.withheld = []
        assert world.start_commit_in_transaction(7) == []
        assert world.coordinator.unstable_partitions("g") == {TP}

    def test_failed_marker_leaves_the_transaction_open(self) -> None:
        world = World()
        world.commit_in_transaction(7)
        world.log.failure = e.TransactionCoordinatorFencedError()
        (error,) = world.end_transaction()
        assert isinstance(error, e.TransactionCoordinatorFencedError)
        world.log.failure = None
        assert world.coordinator.unstable_partitions("g") == {TP}
        assert (world.end_transaction(), world.offset()) == ([None], 7)

    def test_another_coordinator_refuses_the_marker(self) -> None:
        world = World()
        world.resign(1)
        (error,) = world.end_transaction()
        assert isinstance(error, e.NotCoordinatorError)

    def test_deleted_topic_removes_offsets_of_open_transactions(self) -> None:
        world = World()
        world.commit_in_transaction(7)
        world.coordinator.on_topics_deleted({"t"})
        world.end_transaction()
        for each in (world, reloaded(world)):
            assert each.offset() == -1

    def test_deleted_group_removes_offsets_of_open_transactions(self) -> None:
        world = World()
        world.commit_in_transaction(7)
        assert world.delete_group("g") is None
        world.end_transaction()
        for each in (world, reloaded(world)):
            assert (each.offset(), each.state()) == (-1, "Dead")

    def test_offset_does_not_expire_while_a_transaction_holds_it(self) -> None:
        world = World(offsets_retention_ms=60_000, offsets_retention_check_ms=1_000)
        world.commit(1)
        world.commit_in_transaction(7)
        world.pass_time(62_000)
        assert world.offset() == 1
        world.end_transaction(committed=False)
        world.pass_time(2_000)
        assert (world.offset(), world.state()) == (-1, "Dead")

    def test_group_remains_while_a_transaction_has_its_offsets(self) -> None:
        world = World(offsets_retention_check_ms=1_000)
        world.commit_in_transaction(7)
        world.pass_time(2_000)
        assert world.state() == "Empty"
        world.end_transaction(committed=False)
        assert world.state() == "Dead"

    def test_commit_without_generation_is_accepted(self) -> None:
        """Producers of before KIP-447 have neither member id nor generation."""
        world = World()
        world.stable_pair()
        assert world.commit_in_transaction(7) == NONE

    def test_commit_of_a_member_requires_its_generation(self) -> None:
        world = World()
        assert world.commit_in_transaction(7, "m", 1) == code_of(e.IllegalGenerationError)
        leader, _, generation = world.stable_pair()
        stale = world.commit_in_transaction(7, leader, generation - 1)
        assert stale == code_of(e.IllegalGenerationError)
        assert world.commit_in_transaction(7, "x", generation) == code_of(e.UnknownMemberIdError)
        assert world.commit_in_transaction(7, leader, generation) == NONE
