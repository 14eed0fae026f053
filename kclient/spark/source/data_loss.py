"""Losses of records that should be read: an error or a line in the log, with counts."""

import logging

from kclient.common.types import TopicPartition
from kclient.spark.common.errors import DataLossError

_log = logging.getLogger(__name__)

_MAX_SHOWN = 10


class DataLoss:
    """Collects losses, so that one error reports all of them.

    Args:
        fail: Whether a loss is an error (``failOnDataLoss``).
    """

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self._lost: dict[TopicPartition, int] = {}
        self._texts: list[str] = []

    def record(self, partition: TopicPartition, lost: int, why: str) -> None:
        """Record a loss.

        Args:
            partition: Partition of the lost records.
            lost: Lower bound of the offsets that cannot be read; 0 if unknown.
            why: What happened, for the message.
        """
        self._lost[partition] = self._lost.get(partition, 0) + lost
        count = f"{lost} offsets lost" if lost else "an unknown number of offsets lost"
        self._texts.append(f"{partition}: {why}, {count}")

    def report(self) -> None:
        """Raise or log the losses recorded since the last call, if there are any.

        Raises:
            DataLossError: There are losses, and a loss is an error.
        """
        if not self._texts:
            return
        texts, lost = self._texts, self._lost
        self._texts, self._lost = [], {}
        summary = "; ".join(texts[:_MAX_SHOWN])
        if len(texts) > _MAX_SHOWN:
            summary += f"; and {len(texts) - _MAX_SHOWN} more"
        if total := sum(lost.values()):
            summary += f" ({total} in total)"
        if self._fail:
            raise DataLossError(summary, lost)
        _log.warning("data loss: %s; continuing because failOnDataLoss=false", summary)
