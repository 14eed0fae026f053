"""Last stable offsets of the topics with transactions, watched at each step."""

from dataclasses import dataclass

from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.types import TopicPartition
from tests.simulation.application import Stage
from tests.simulation.history import StableOffset
from tests.simulation.scenario import BROKER


@dataclass
class _Watched:
    offset: int
    behind_since_ms: float | None


class StableOffsets:
    """Notes how the last stable offsets move while the broker runs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._watched: dict[TopicPartition, _Watched] = {}

    def restart(self) -> None:
        """Start again: the broker was started, or does not run."""
        self._watched.clear()

    def watch(self, partition: TopicPartition, log: UnifiedLog) -> None:
        """Note a movement."""
        state = log._state
        offset = state.last_stable_offset()
        now_ms = self._stage.world.clock.now_ms
        watched = self._watched.get(partition)
        is_behind = offset < state.high_watermark
        if watched is None:
            self._watched[partition] = _Watched(offset, now_ms if is_behind else None)
            return
        if watched.offset != offset:
            self._note(partition, watched, offset)
            watched.offset, watched.behind_since_ms = offset, now_ms if is_behind else None
        elif is_behind and watched.behind_since_ms is None:
            watched.behind_since_ms = now_ms

    def end(self) -> None:
        """Note the offsets that are still below the high watermark."""
        for partition, watched in self._watched.items():
            if watched.behind_since_ms is not None:
                self._note(partition, watched, watched.offset)

    def _note(self, partition: TopicPartition, watched: _Watched, offset: int) -> None:
        now_ms = self._stage.world.clock.now_ms
        since_ms = watched.behind_since_ms
        open_ms = 0.0 if since_ms is None else now_ms - since_ms
        event = StableOffset(now_ms, BROKER, *partition, watched.offset, offset, open_ms)
        self._stage.history.add(event)
