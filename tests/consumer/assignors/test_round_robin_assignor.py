"""Round robin assignor."""

from hypothesis import given
from hypothesis import strategies as st

from kclient.consumer.assignors import MemberSubscription, RoundRobinAssignor
from tests.consumer.assignors.groups import TOPICS, counts, shares


@given(partitions=counts, names=st.sets(st.text("mnop", min_size=1), min_size=1, max_size=7))
def test_round_robin_is_even_for_equal_subscriptions(
    partitions: dict[str, int], names: set[str]
) -> None:
    group = {name: MemberSubscription(tuple(TOPICS)) for name in names}
    sizes = [len(share) for share in shares(RoundRobinAssignor(), partitions, group).values()]
    assert max(sizes) - min(sizes) <= 1


def test_round_robin_matches_kafkas_documentation() -> None:
    group = {"C0": MemberSubscription(("t0", "t1")), "C1": MemberSubscription(("t0", "t1"))}
    assert shares(RoundRobinAssignor(), {"t0": 3, "t1": 3}, group) == {
        "C0": [("t0", 0), ("t0", 2), ("t1", 1)],
        "C1": [("t0", 1), ("t1", 0), ("t1", 2)],
    }
    uneven = {
        "C0": MemberSubscription(("t0",)),
        "C1": MemberSubscription(("t0", "t1")),
        "C2": MemberSubscription(("t0", "t1", "t2")),
    }
    assert shares(RoundRobinAssignor(), {"t0": 1, "t1": 2, "t2": 3}, uneven) == {
        "C0": [("t0", 0)],
        "C1": [("t1", 0)],
        "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)],
    }
