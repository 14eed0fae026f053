"""Journey: traces records through a producer, and reports the time of each stage."""

import math
from types import TracebackType
from typing import Any, Self

from kclient.common.arguments import check_timeout
from kclient.common.runtime import Runtime, Task
from kclient.journey.broker_times import BrokerTimes
from kclient.journey.producer_tracer import ProducerTracer
from kclient.journey.report import Report, summarize
from kclient.journey.stages import BROKER_IN_ALL, PRODUCER_STAGES, Trace
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer

DEFAULT_INTERVAL = 0.01
"""Mean time between two traced records, in seconds."""

_CAPACITY = 100_000
_JOIN_TIMEOUT = 5.0
_EXACT = "broker: exact times of each request, on the clock of this machine"
_IN_ALL = "broker in all: from the request queued for the socket to its response"
_BROKER_STAGES = frozenset(
    stage.name for stage in PRODUCER_STAGES if stage.name.startswith("broker")
)
_STAGES = tuple(
    each
    for stage in PRODUCER_STAGES
    for each in ((BROKER_IN_ALL, stage) if stage.name == "wire to broker" else (stage,))
)


class Journey:
    """Traces some records of a producer while its ``with`` block runs.

    The next record after a random time is traced, so that records are traced independently of each
    other and of the producer's work. A traced record takes the slow path of `send`, which costs
    some microseconds; the others are sent as without a journey. `send_many` and `send_arrow` are
    not traced.

    Attributes:
        broker_times: Times of requests in a companion broker on this machine: pass its `observe` to
            `BrokerServer.observe_requests`, or a request log to its `read_log`, before `report`.
    """

    def __init__(
        self,
        producer: Producer[Any, Any],
        *,
        interval: float = DEFAULT_INTERVAL,
        runtime: Runtime | None = None,
    ) -> None:
        """Trace nothing yet.

        Args:
            producer: The producer.
            interval: Mean seconds between two traced records; 0 traces every record.
            runtime: Clock and tasks of the producer; those of the machine if None.
        """
        interval_ms = check_timeout(interval, default_ms=DEFAULT_INTERVAL * 1000.0)
        runtime = system_runtime() if runtime is None else runtime
        clock, tasks = runtime.clock, runtime.tasks
        self._tasks, self._random = tasks, runtime.random
        self._producer = producer
        self._interval = interval_ms / 1000.0
        self._tracer = ProducerTracer(
            clock.monotonic_ns,
            tasks.condition(),
            producer.client_id,
            _CAPACITY,
            traces_all=not interval_ms,
        )
        self.broker_times = BrokerTimes()
        self._condition = tasks.condition()  # guards: _ended
        self._ended = False
        self._task: Task | None = None

    def start(self) -> None:
        """Start to trace records."""
        self._producer.set_tracer(self._tracer)
        if self._interval:
            self._task = self._tasks.spawn("kclient-journey", self._choose)

    def close(self, timeout: float = 10.0) -> int:
        """Trace no further record, and wait for the outcome of those that are traced. Idempotent.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            The number of traced records without an outcome.
        """
        with self._condition:
            self._ended = True
            self._condition.notify_all()
        if self._task is not None:
            self._task.join(_JOIN_TIMEOUT)
            self._task = None
        self._producer.end_traces()
        unfinished = self._tracer.await_ends(timeout)
        self._producer.set_tracer(None)
        return unfinished

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def traces(self) -> list[Trace]:
        """Return the completed traces, the oldest first."""
        return list(self._tracer.traces(self.broker_times))

    def report(self) -> Report:
        """Return the statistics of the completed traces."""
        traces = self.traces()
        section = summarize(
            "from send() to the delivery callback",
            _STAGES,
            traces,
            failed=self._tracer.failed,
            note=_note(traces),
        )
        return Report([] if section is None else [section])

    def _choose(self) -> bool:
        """Wait a random time, and trace the next record; return whether to continue."""
        wait = -math.log(1.0 - self._random.random()) * self._interval
        with self._condition:
            if not self._ended:
                self._condition.wait(wait)
            ended = self._ended
        if not ended:
            self._producer.trace_next()
        return not ended


def _note(traces: list[Trace]) -> str:
    exact = sum(trace.durations_ns.keys() >= _BROKER_STAGES for trace in traces)
    if exact == len(traces):
        return _EXACT
    return f"{_EXACT}, for {exact:,} records; {_IN_ALL} for the others" if exact else _IN_ALL
