"""Times at which each partition could be written, as reported by the brokers."""

import bisect
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from integration.cluster_soak.fleet import Fleet
from integration.harness.wire_probe import PartitionState, partition_states
from tests.support.clients.background_thread import BackgroundThread

_EVERY_S = 0.2
_LONGEST_STEP_S = 2.0

Span = tuple[float, float]


class Timeline:
    """The spans of time in which one partition was available, in order."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        for begin, end in spans:
            self.add(begin, end)

    def add(self, begin: float, end: float) -> None:
        """Takes a span that begins where the last one ended, or later."""
        if self._spans and self._spans[-1][1] == begin:
            begin = self._spans.pop()[0]
        self._spans.append((begin, end))

    def longest_within(self, begin: float, end: float) -> float:
        """Returns the length of the longest span between two times, in seconds."""
        first = bisect.bisect_left(self._spans, begin, key=lambda span: span[1])
        longest = 0.0
        for since, until in self._spans[first:]:
            if since >= end:
                break
            longest = max(longest, min(until, end) - max(since, begin))
        return longest


def longest_stop(times: Sequence[float], available: Timeline, begin: float, end: float) -> float:
    """Returns the longest time without an event while the partition was available.

    Args:
        times: When the events were, in any order.
        available: When the partition was available.
        begin: When the first event was due.
        end: When the last one was due.
    """
    within = sorted(time for time in times if begin <= time <= end)
    gaps = pairwise([begin, *within, end])
    return max(available.longest_within(since, until) for since, until in gaps)


class AvailabilityWatch(BackgroundThread):
    """Samples the state of the partitions of a topic.

    A partition is writable while its leader and all its in-sync replicas work and there are enough
    of them for `min.insync.replicas`; it is led while its leader works, which is enough for
    `acks=1`. The span between two samples counts if that holds in both, with the same leader.

    Attributes:
        writable: For each partition when it could be written with `acks=all`.
        led: For each partition when it could be written with `acks=1`.
    """

    def __init__(self, fleet: Fleet, topic: str, min_in_sync: int) -> None:
        super().__init__("availability", "a Metadata request")
        self.writable: dict[int, Timeline] = defaultdict(Timeline)
        self.led: dict[int, Timeline] = defaultdict(Timeline)
        self._fleet = fleet
        self._topic = topic
        self._min_in_sync = min_in_sync

    def run(self) -> None:
        before = time.monotonic()
        led: dict[int, int] = {}
        writable: dict[int, int] = {}
        while not self.stopping.wait(_EVERY_S):
            states, working = self._sample()
            now = time.monotonic()
            leads = {at: one.leader for at, one in states.items() if one.leader in working}
            writes = {
                at: one.leader
                for at, one in states.items()
                if at in leads and one.isr <= working and len(one.isr) >= self._min_in_sync
            }
            if now - before < _LONGEST_STEP_S:
                self._add(self.led, led, leads, (before, now))
                self._add(self.writable, writable, writes, (before, now))
            before, led, writable = now, leads, writes

    def _sample(self) -> tuple[dict[int, PartitionState], frozenset[int]]:
        """Returns the states by partition, and the brokers that worked before and after."""
        working = self._fleet.working()
        try:
            states = partition_states(working[0].address(), [self._topic]) if working else {}
        except OSError:
            states = {}
        both = {node.node_id for node in working} & {node.node_id for node in self._fleet.working()}
        return {number: state for (_, number), state in states.items()}, frozenset(both)

    @staticmethod
    def _add(
        timelines: dict[int, Timeline], before: dict[int, int], now: dict[int, int], span: Span
    ) -> None:
        for partition, leader in now.items():
            if before.get(partition) == leader:
                timelines[partition].add(*span)
