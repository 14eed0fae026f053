"""Committed offsets of groups."""

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
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
