"""What was to be read and is gone: an error, or a line in the log, each with counts."""

import logging

from kclient.common.types import TopicPartition
from kclient.spark.errors import DataLossError

_log = logging.getLogger(__name__)

_SHOWN = 10


class DataLoss:
    """Collects losses, so that one error names them all.

    Args:
        fail: Whether a loss is an error (``failOnDataLoss``).
    """

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self._lost: dict[TopicPartition, int] = {}
        self._words: list[str] = []

    def note(self, partition: TopicPartition, lost: int, why: str) -> None:
        """Take down a loss.

        Args:
            partition: Where.
            lost: Offsets that cannot be read, at least; 0 where nothing is known.
            why: What happened, in words.
        """
        self._lost[partition] = self._lost.get(partition, 0) + lost
        count = f"{lost} offsets lost" if lost else "an unknown number of offsets lost"
        self._words.append(f"{partition}: {why}, {count}")

    def settle(self) -> None:
        """Fail or log, if there was a loss.

        Raises:
            DataLossError: There was, and it is an error.
        """
        if not self._words:
            return
        words, lost = self._words, self._lost
        self._words, self._lost = [], {}
        text = "; ".join(words[:_SHOWN])
        if len(words) > _SHOWN:
            text += f"; and {len(words) - _SHOWN} more"
        text += f" ({sum(lost.values())} in all)"
        if self._fail:
            raise DataLossError(text, lost)
        _log.warning("data loss: %s; going on without, as failOnDataLoss=false says", text)
