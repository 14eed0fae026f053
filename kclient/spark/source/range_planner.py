"""Division of offsets into tasks and micro-batches: pure functions."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import Span

Offsets = Mapping[TopicPartition, int]


def split(spans: Sequence[Span], min_partitions: int | None, max_records: int | None) -> list[Span]:
    """Divide spans into the ranges of tasks.

    Args:
        spans: Offsets to read; empty spans are left out.
        min_partitions: Approximate minimum number of tasks; the largest spans are split first.
        max_records: Maximum number of offsets of a task.
    """
    whole = sorted(span for span in spans if span.size > 0)
    pieces = {span: -(-span.size // max_records) if max_records else 1 for span in whole}
    missing = (min_partitions or 0) - sum(pieces.values())
    while missing > 0:
        # Split the span with the largest pieces next, as long as they have two offsets.
        span = max(whole, key=lambda one: one.size / pieces[one], default=None)
        if span is None or pieces[span] >= span.size:
            break
        pieces[span] += 1
        missing -= 1
    return [piece for span in whole for piece in _pieces(span, pieces[span])]


def _pieces(span: Span, count: int) -> list[Span]:
    bounds = [span.start + span.size * number // count for number in range(count + 1)]
    return [Span(span.partition, start, end) for start, end in pairwise(bounds)]


def limit_ends(starts: Offsets, ends: Offsets, max_offsets: int) -> dict[TopicPartition, int]:
    """Return the ends of a micro-batch of at most `max_offsets` offsets.

    Each partition gets a share in proportion to its size, and at least one offset. If there are
    more partitions than offsets, they take turns.

    Args:
        starts: Start offset of every partition of `ends`.
        ends: End offsets without the limit.
        max_offsets: Maximum number of offsets of all partitions together.
    """
    sizes = {one: ends[one] - starts[one] for one in sorted(ends) if ends[one] > starts[one]}
    total = sum(sizes.values())
    if total <= max_offsets:
        return dict(ends)
    shares = (
        _in_turn(starts, list(sizes), max_offsets)
        if len(sizes) > max_offsets
        else _by_size(sizes, total, max_offsets)
    )
    return {one: starts[one] + shares.get(one, 0) if one in sizes else ends[one] for one in ends}


def _in_turn(
    starts: Offsets, ones: list[TopicPartition], max_offsets: int
) -> dict[TopicPartition, int]:
    first = sum(starts[one] for one in ones) % len(ones)
    return dict.fromkeys((ones[first:] + ones[:first])[:max_offsets], 1)


def _by_size(
    sizes: Mapping[TopicPartition, int], total: int, max_offsets: int
) -> dict[TopicPartition, int]:
    """Give one offset to each, and divide the others in proportion to the remaining sizes."""
    left, rest = max_offsets - len(sizes), total - len(sizes)
    shares = {one: 1 + left * (size - 1) // rest for one, size in sizes.items()}
    over = max_offsets - sum(shares.values())
    # Offsets left by rounding go to the partitions that lost most by it, if they have more.
    lost = sorted(sizes, key=lambda one: (-(left * (sizes[one] - 1) % rest), one))
    for one in lost:
        if over == 0:
            break
        if shares[one] < sizes[one]:
            shares[one] += 1
            over -= 1
    return shares
