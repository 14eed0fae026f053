"""Range assignor."""

from hypothesis import given

from kclient.consumer.assignors import MemberSubscription, RangeAssignor
from tests.consumer.assignors.groups import counts, members, shares


@given(partitions=counts, group=members)
def test_range_assigns_even_contiguous_ranges(
    partitions: dict[str, int], group: dict[str, MemberSubscription]
) -> None:
    result = shares(RangeAssignor(), partitions, group)
    for topic in partitions:
        takers = [member for member, subscription in group.items() if topic in subscription.topics]
        pieces = [[number for name, number in result[member] if name == topic] for member in takers]
        sizes = [len(piece) for piece in pieces]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        for piece in pieces:
            assert piece == list(range(piece[0], piece[0] + len(piece))) if piece else True


def test_range_matches_kafkas_documentation() -> None:
    group = {"C0": MemberSubscription(("t0", "t1")), "C1": MemberSubscription(("t0", "t1"))}
    assert shares(RangeAssignor(), {"t0": 3, "t1": 3}, group) == {
        "C0": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)],
        "C1": [("t0", 2), ("t1", 2)],
    }
