"""Looks for records that the brokers removed before they were read."""

from collections.abc import Sequence

from kclient.spark.offsets.span import Span
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.data_loss import DataLoss


def check_retention(spans: Sequence[Span], cluster: ClusterOffsets, loss: DataLoss) -> list[Span]:
    """Return the spans without what is gone from their beginnings; take down what was lost."""
    starts = cluster.starts(span.partition for span in spans)
    kept: list[Span] = []
    for span in spans:
        start = starts[span.partition]
        if start <= span.start or span.size <= 0:
            kept.append(span)
            continue
        first = min(start, span.end)
        loss.note(
            span.partition,
            first - span.start,
            f"the log begins at {start} and was to be read from {span.start}",
        )
        kept.append(Span(span.partition, first, span.end))
    return kept
