"""Shares offsets out, to tasks and to micro-batches. Pure: the same offsets, the same plan."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kclient.common.types import TopicPartition
from kclient.spark.offsets.span import Span

Offsets = Mapping[TopicPartition, int]


def split(spans: Sequence[Span], min_partitions: int | None, max_records: int | None) -> list[Span]:
    """Share spans out to tasks.

    Args:
        spans: What is to be read; empty spans are left out.
        min_partitions: Tasks wanted; large spans are split until there are about so many.
        max_records: Most offsets of a task.
    """
    whole = sorted(span for span in spans if span.size > 0)
    pieces = {span: -(-span.size // max_records) if max_records else 1 for span in whole}
    missing = (min_partitions or 0) - sum(pieces.values())
    while missing > 0:
        # The span whose pieces are largest is split next; an offset cannot be.
        span = max(whole, key=lambda one: one.size / pieces[one], default=None)
        if span is None or pieces[span] >= span.size:
            break
        pieces[span] += 1
        missing -= 1
    return [piece for span in whole for piece in _pieces(span, pieces[span])]


def _pieces(span: Span, count: int) -> list[Span]:
    bounds = [span.start + span.size * number // count for number in range(count + 1)]
    return [Span(span.partition, start, end) for start, end in pairwise(bounds)]


def limited(starts: Offsets, ends: Offsets, most: int) -> dict[TopicPartition, int]:
    """Return where a micro-batch of at most `most` offsets ends.

    Each partition gets its share by what it holds, and at least one offset while there are no more
    partitions than offsets; else they take turns.

    Args:
        starts: Where it begins, for every partition of `ends`.
        ends: Where it would end without a limit.
        most: Most offsets of all partitions together.
    """
    sizes = {one: ends[one] - starts[one] for one in sorted(ends) if ends[one] > starts[one]}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    shares = (
        _in_turn(starts, list(sizes), most) if len(sizes) > most else _by_size(sizes, total, most)
    )
    return {one: starts[one] + shares.get(one, 0) if one in sizes else ends[one] for one in ends}


def _in_turn(starts: Offsets, ones: list[TopicPartition], most: int) -> dict[TopicPartition, int]:
    first = sum(starts[one] for one in ones) % len(ones)
    return dict.fromkeys((ones[first:] + ones[:first])[:most], 1)


def _by_size(
    sizes: Mapping[TopicPartition, int], total: int, most: int
) -> dict[TopicPartition, int]:
    """Give one offset to each, and share the others out by what is left in each."""
    left, rest = most - len(sizes), total - len(sizes)
    shares = {one: 1 + left * (size - 1) // rest for one, size in sizes.items()}
    over = most - sum(shares.values())
    # What rounding left goes to those that lost most by it, and have more to give.
    lost = sorted(sizes, key=lambda one: (-(left * (sizes[one] - 1) % rest), one))
    for one in lost:
        if over == 0:
            break
        if shares[one] < sizes[one]:
            shares[one] += 1
            over -= 1
    return shares
