"""Changes of one partition: elections, eligible leaders, ends of reassignments."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import combinations

import pytest

from kclient.broker.controller.partition_change_builder import (
    ChangeRules,
    Election,
    PartitionChangeBuilder,
    without,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.metadata.metadata_version import MetadataVersion

ID = b"t" * 16
KEY = (ID, 0)
NEW_DIRECTORY = b"n" * 16


def rules(*, level: int = 25, elr: bool = False, min_isr: int = 1) -> ChangeRules:
    return ChangeRules(MetadataVersion(level), elr, min_isr, lambda _broker: NEW_DIRECTORY)


def partition(
    replicas: tuple[int, ...], isr: tuple[int, ...], leader: int, **fields: object
) -> PartitionRegistration:
    directories = tuple(bytes([replica]) * 16 for replica in replicas)
    registration = PartitionRegistration(replicas, isr, leader, 5, 9, directories)
    return registration._replace(**fields)  # type: ignore[arg-type]


def builder(
    before: PartitionRegistration, alive: AbstractSet[int], setting: ChangeRules | None = None
) -> PartitionChangeBuilder:
    return PartitionChangeBuilder(before, KEY, setting or rules(), alive.__contains__)


def built(before: PartitionRegistration, change: PartitionChangeBuilder) -> PartitionRegistration:
    """Return the partition after the change."""
    record = change.build()
    if record is None:
        return before
    topic = TopicImage("t", ID, (before,))
    delta = MetadataDelta(MetadataImage(topics={"t": topic}, topic_names={ID: "t"}))
    delta.replay(record)
    return delta.apply(0).topics["t"].partitions[0]


def subsets(members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(len(members) + 1):
        yield from combinations(members, size)


def test_no_change_makes_no_record() -> None:
    before = partition((1, 2, 3), (1, 2, 3), 1)
    assert builder(before, {1, 2, 3}).build() is None
    reordered = builder(before, {1, 2, 3})
    reordered.target_isr = (3, 2, 1)
    assert reordered.build() is None


@pytest.mark.parametrize(
    ("election", "isr", "leader", "alive", "elected"),
    [
        (Election.ONLINE, (1, 2, 3), 2, {1, 2, 3}, 2),
        (Election.ONLINE, (1, 2, 3), 2, {1, 3}, 1),
        (Election.ONLINE, (2, 3), -1, {1, 3}, 3),
        (Election.ONLINE, (2,), 2, {1, 3}, -1),
        (Election.PREFERRED, (1, 2, 3), 2, {1, 2, 3}, 1),
        (Election.PREFERRED, (2, 3), 2, {1, 2, 3}, 2),
        (Election.PREFERRED, (1, 2, 3), 2, {2, 3}, 2),
        (Election.PREFERRED, (1, 2, 3), 2, {3}, 3),
        (Election.UNCLEAN, (2,), -1, {3}, 3),
        (Election.UNCLEAN, (2, 3), -1, {1, 3}, 3),
        (Election.UNCLEAN, (2,), -1, set(), -1),
    ],
)
def test_elections(
    election: Election, isr: tuple[int, ...], leader: int, alive: set[int], elected: int
) -> None:
    before = partition((1, 2, 3), isr, leader)
    change = builder(before, alive)
    change.election = election
    after = built(before, change)
    assert after.leader == elected
    assert after.leader_epoch == before.leader_epoch + (elected != leader)
    assert after.partition_epoch == before.partition_epoch + (elected != leader)
    unclean = elected not in (*isr, NO_LEADER)
    assert after.recovery_state == (RECOVERING if unclean else RECOVERED)
    assert after.isr == ((elected,) if unclean else isr)


def test_last_in_sync_replica_remains() -> None:
    before = partition((1, 2), (1,), 1)
    change = builder(before, {2})
    change.target_isr = ()
    after = built(before, change)
    assert (after.isr, after.leader, after.leader_epoch) == ((1,), -1, 6)


def test_eligible_leader_replicas_follow_isr() -> None:
    setting = rules(elr=True, min_isr=2)
    state = partition((1, 2, 3), (1, 2, 3), 1)

    def step(isr: tuple[int, ...], alive: set[int]) -> tuple[tuple[int, ...], ...]:
        """Change the ISR; return ISR, ELR, last known leader and leader."""
        nonlocal state
        change = builder(state, alive, setting)
        change.target_isr = isr
        state = built(state, change)
        return state.isr, state.elr, state.last_known_elr, (state.leader,)

    assert step((1, 2), {1, 2}) == ((1, 2), (), (), (1,))
    assert step((1,), {1}) == ((1,), (2,), (), (1,))
    assert step((), set()) == ((), (2, 1), (1,), (-1,))
    assert step((), {2}) == ((2,), (1,), (), (2,))
    assert state.recovery_state == RECOVERED
    assert step((2, 1), {1, 2}) == ((2, 1), (), (), (2,))


def test_last_known_leader_is_elected_when_nothing_is_eligible() -> None:
    setting = rules(elr=True, min_isr=2)
    before = partition((1, 2), (), -1, elr=(1,), last_known_elr=(1,))
    change = builder(before, {2}, setting)
    change.unclean_replicas = (1,)
    middle = built(before, change)
    assert (middle.elr, middle.last_known_elr, middle.leader) == ((), (1,), -1)
    after = built(middle, builder(middle, {1, 2}, setting))
    assert (after.leader, after.isr, after.recovery_state) == (1, (1,), RECOVERING)
    assert after.last_known_elr == ()


def test_reassignment_ends_when_all_targets_are_in_sync() -> None:
    before = partition((3, 4, 1, 2), (1, 2), 1, adding=(3, 4), removing=(1, 2))
    for isr, ends in (((1, 2, 3), False), ((1, 3, 4), True), ((3, 4), True)):
        change = builder(before, {1, 2, 3, 4})
        change.target_isr = isr
        after = built(before, change)
        if not ends:
            assert (after.replicas, after.leader, after.isr) == ((3, 4, 1, 2), 1, isr)
            continue
        assert (after.replicas, after.adding, after.removing) == ((3, 4), (), ())
        assert (after.leader, after.isr) == (3, (3, 4))
        assert after.directories == before.directories[:2]
        assert (after.leader_epoch, after.partition_epoch) == (6, 10)


def test_leader_epoch_rises_when_a_replica_leaves() -> None:
    before = partition((1, 2, 3), (1, 2, 3), 1)
    change = builder(before, {1, 2, 3})
    change.target_removing = (3,)
    after = built(before, change)
    assert (after.replicas, after.leader, after.leader_epoch) == ((1, 2), 1, 6)


@pytest.mark.parametrize(("level", "bump"), [(11, 1), (12, 0), (25, 0)])
def test_leader_epoch_rises_on_shrink_before_level_12(level: int, bump: int) -> None:
    before = partition((1, 2), (1, 2), 1)
    change = builder(before, {1, 2}, rules(level=level))
    change.target_isr = (1,)
    after = built(before, change)
    assert (after.isr, after.leader_epoch) == ((1,), 5 + bump)


def test_directories_of_new_replicas() -> None:
    before = partition((1, 2), (1, 2), 1)
    change = builder(before, {1, 2})
    change.target_replicas, change.target_adding = (3, 1, 2), (3,)
    assert built(before, change).directories == (NEW_DIRECTORY, *before.directories)
    old = builder(before, {1, 2}, rules(level=16))
    old.target_replicas, old.target_adding = (3, 1, 2), (3,)
    record = old.build()
    assert record is not None
    assert record.directories is None


REPLICAS = (1, 2, 3)


def states(*, elr: bool, min_isr: int) -> Iterator[PartitionRegistration]:
    """Yield every valid state of a partition of three replicas."""
    for isr in subsets(REPLICAS):
        if not isr and not elr:
            continue
        others = without(REPLICAS, isr)
        eligible = subsets(others) if elr and len(isr) < min_isr else iter([()])
        for elr_members in eligible:
            for leader in (*isr, NO_LEADER):
                known = ((), (1,)) if elr and not isr and not elr_members else ((),)
                for last_known in known:
                    yield partition(
                        REPLICAS, isr, leader, elr=elr_members, last_known_elr=last_known
                    )


def check(
    before: PartitionRegistration, after: PartitionRegistration, setting: ChangeRules
) -> None:
    """Check the invariants of a partition, and that of its leader."""
    assert set(after.isr) <= set(after.replicas)
    assert set(after.elr) <= set(after.replicas)
    assert not set(after.isr) & set(after.elr)
    assert after.leader == NO_LEADER or after.leader in after.isr
    if setting.elr_enabled:
        if len(after.isr) >= min(setting.min_isr, len(after.replicas)):
            assert after.elr == ()
    else:
        assert after.isr
    if after.leader not in (before.leader, NO_LEADER) and after.recovery_state == RECOVERED:
        assert after.leader in before.isr + before.elr
    assert after.leader_epoch >= before.leader_epoch
    if after.leader != before.leader:
        assert after.leader_epoch > before.leader_epoch
    if after != before:
        assert after.partition_epoch == before.partition_epoch + 1


@pytest.mark.parametrize("elr", [False, True])
@pytest.mark.parametrize("min_isr", [1, 2, 3])
@pytest.mark.parametrize("election", list(Election))
def test_every_change_keeps_the_invariants(*, elr: bool, min_isr: int, election: Election) -> None:
    setting = rules(elr=elr, min_isr=min_isr)
    for before in states(elr=elr, min_isr=min_isr):
        for alive in map(frozenset, subsets(REPLICAS)):
            for leaving in (NO_LEADER, *REPLICAS):
                for unclean in ((), (leaving,)):
                    change = builder(before, alive - {leaving}, setting)
                    change.election = election
                    change.target_isr = without(before.isr, (leaving,))
                    change.unclean_replicas = unclean
                    after = built(before, change)
                    check(before, after, setting)
                    usable = alive - {leaving}
                    assert after.leader == NO_LEADER or after.leader in usable
                    if leaving in before.isr and len(before.isr) > 1:
                        assert leaving not in after.isr
                    if unclean:
                        assert leaving not in after.elr
                    if set(change.target_isr) & usable:
                        assert after.leader != NO_LEADER
                    if election is Election.UNCLEAN and usable:
                        assert after.leader != NO_LEADER
