"""Placement of new replicas over brokers and racks."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.controller.striped_replica_placer import StripedReplicaPlacer
from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.common.broker_errors import InvalidReplicationFactorError


def broker(
    node_id: int, rack: str | None = None, *, fenced: bool = False, leaving: bool = False
) -> BrokerRegistration:
    return BrokerRegistration(
        node_id, 0, bytes(16), (), rack, fenced, in_controlled_shutdown=leaving
    )


def placer(brokers: list[BrokerRegistration], seed: int = 1) -> StripedReplicaPlacer:
    return StripedReplicaPlacer(brokers, Random(seed))


@pytest.mark.parametrize("seed", range(20))
def test_brokers_without_racks_take_turns(seed: int) -> None:
    brokers = [broker(number) for number in range(5)]
    placed = placer(brokers, seed).place(5, 3)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(5), 1)
    assert Counter(each for replicas in placed for each in replicas) == dict.fromkeys(range(5), 3)


@pytest.mark.parametrize("seed", range(20))
def test_each_rack_has_a_replica(seed: int) -> None:
    racks = {number: "abc"[number % 3] for number in range(9)}
    brokers = [broker(number, rack) for number, rack in racks.items()]
    placed = placer(brokers, seed).place(30, 3)
    assert all(len({racks[each] for each in replicas}) == 3 for replicas in placed)
    assert Counter(racks[replicas[0]] for replicas in placed) == dict.fromkeys("abc", 10)


def test_unfenced_brokers_come_first() -> None:
    brokers = [broker(0, "a", fenced=True), broker(1, "a"), broker(2, "b", fenced=True)]
    for seed in range(10):
        assert placer(brokers, seed).place(1, 2)[0] == (1, 2)
        first, *others = placer(brokers, seed).place(1, 3)[0]
        assert first == 1
        assert sorted(others) == [0, 2]


def test_brokers_shutting_down_or_cordoned_receive_nothing() -> None:
    cordoned = broker(2)._replace(directories=(b"d" * 16,), cordoned_directories=(b"d" * 16,))
    brokers = [broker(0), broker(1, leaving=True), cordoned]
    assert placer(brokers).place(3, 1) == [(0,)] * 3
    with pytest.raises(InvalidReplicationFactorError, match="only 1 broker"):
        placer(brokers).place(1, 2)


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        ([], 1, "only 0 broker"),
        ([broker(1)], 0, "must be positive"),
        ([broker(1)], 2, "target replication factor of 2 cannot be reached"),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced"),
    ],
)
def test_refused_placements(brokers: list[BrokerRegistration], factor: int, message: str) -> None:
    with pytest.raises(InvalidReplicationFactorError, match=message):
        placer(brokers).place(1, factor)


@given(
    states=st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1),
    seed=st.integers(0, 100),
    data=st.data(),
)
def test_placements_are_valid(
    states: list[tuple[str | None, bool]], seed: int, data: st.DataObject
) -> None:
    brokers = [broker(number, rack, fenced=fenced) for number, (rack, fenced) in enumerate(states)]
    if all(each.fenced for each in brokers):
        return
    factor = data.draw(st.integers(1, len(brokers)))
    for replicas in placer(brokers, seed).place(7, factor):
        assert len(set(replicas)) == len(replicas) == factor
        assert not brokers[replicas[0]].fenced
        used = Counter(brokers[each].rack for each in replicas)
        for rack in {each.rack for each in brokers}:
            full = used[rack] == sum(each.rack == rack for each in brokers)
            assert full or used[rack] >= max(used.values()) - 1
