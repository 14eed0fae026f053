"""Carries out the events of a run while the clients are observed."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

from integration.cluster_soak.events import RECREATE, WEIGHTS, Events, shuffled
from integration.cluster_soak.fleet import Fleet
from integration.cluster_soak.plan import RECREATED, REPLICAS, TOPIC, TRANSACTIONS, Plan
from integration.cluster_soak.recreated_topic import RecreatedTopic
from tests.support.clients.background_thread import BackgroundThread

_SETTLED = 0.7  # how many events begin only when all replicas are in sync
_END_S = 180.0  # an event waits for brokers, replicas and leaders in turn

Report = Callable[[str], None]


class EventThread(BackgroundThread):
    """Carries out the events that a plan names, or random ones during the time of the plan.

    Attributes:
        counts: How many events there were of each kind.
    """

    def __init__(self, fleet: Fleet, recreated: RecreatedTopic, plan: Plan, report: Report) -> None:
        super().__init__("events", "carry_out()", _END_S)
        self.counts: Counter[str] = Counter()
        self._fleet = fleet
        self._plan = plan
        self._report = report
        self._random = Random(plan.seed)
        self._events = Events(fleet, TOPIC, recreated, self._random, plan.durations, self.stopping)

    def run(self) -> None:
        for kind in self._kinds():
            if kind == RECREATE or self._plan.kinds or self._random.random() < _SETTLED:
                self._await_in_sync()
            began = time.monotonic()
            what = self._events.carry_out(kind)
            self.counts[kind] += 1
            self._report(f"{kind}: {what}, {time.monotonic() - began:.1f} s in all")
            self.stopping.wait(self._random.uniform(*self._plan.between_s))
        self._await_in_sync()

    def _await_in_sync(self) -> None:
        self._fleet.await_in_sync([TOPIC, TRANSACTIONS, RECREATED], REPLICAS)

    def _kinds(self) -> Iterator[str]:
        if self._plan.kinds:
            yield from self._plan.kinds
            return
        until = time.monotonic() + self._plan.minutes * 60
        while True:
            for kind in shuffled(self._random, WEIGHTS):
                if time.monotonic() > until or self.stopping.is_set():
                    return
                yield kind
