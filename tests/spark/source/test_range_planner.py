"""Division of offsets into tasks and micro-batches."""

from hypothesis import given
from hypothesis import strategies as st

from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import Span
from kclient.spark.source.range_planner import limit_ends, split


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


sizes = st.lists(st.integers(0, 2000), min_size=1, max_size=8)
bases = st.integers(0, 10**6)


@given(sizes, bases, st.none() | st.integers(1, 60), st.none() | st.integers(1, 500))
def test_pieces_cover_all_offsets_once(
    found: list[int], base: int, least: int | None, most: int | None
) -> None:
    spans = [Span(tp(number), base, base + size) for number, size in enumerate(found)]
    pieces = split(spans, least, most)
    for span in spans:
        own = [piece for piece in pieces if piece.partition == span.partition]
        offsets = [offset for piece in own for offset in range(piece.start, piece.end)]
        assert offsets == list(range(span.start, span.end))
    assert all(piece.size > 0 for piece in pieces)
    if most is not None:
        assert all(piece.size <= most for piece in pieces)
    if least is not None:
        assert len(pieces) >= min(least, sum(found))


def test_largest_span_is_split_first() -> None:
    spans = [Span(tp(0), 0, 10), Span(tp(1), 0, 1000)]
    assert [piece.partition.partition for piece in split(spans, 4, None)] == [0, 1, 1, 1]


@given(sizes, bases, st.integers(1, 3000))
def test_limit_is_used_up_and_not_exceeded(found: list[int], base: int, most: int) -> None:
    starts = {tp(number): base + number for number in range(len(found))}
    ends = {tp(number): base + number + size for number, size in enumerate(found)}
    until = limit_ends(starts, ends, most)
    shares = {one: until[one] - starts[one] for one in ends}
    assert all(0 <= share <= ends[one] - starts[one] for one, share in shares.items())
    assert sum(shares.values()) == min(most, sum(found))
    if most >= len(found):
        assert all(shares[one] > 0 for one in ends if ends[one] > starts[one])


def test_partitions_take_turns_below_one_offset_each() -> None:
    starts = {tp(number): 0 for number in range(5)}
    ends = {tp(number): 4 for number in range(5)}
    rounds = 0
    while starts != ends:
        starts = limit_ends(starts, ends, 2)
        rounds += 1
        assert max(starts.values()) - min(starts.values()) <= 2
    assert rounds == 10


def test_shares_are_proportional_to_partition_sizes() -> None:
    starts = {tp(0): 0, tp(1): 0, tp(2): 0}
    until = limit_ends(starts, {tp(0): 1, tp(1): 1000, tp(2): 9000}, 1000)
    assert (until[tp(0)], sum(until.values())) == (1, 1000)
    assert 95 <= until[tp(1)] <= 105
