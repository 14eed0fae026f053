"""Journey: traces records through a producer and a consumer, and reports the time of each stage."""

import math
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from kclient.common.arguments import check_timeout
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime, Task
from kclient.consumer.consumer import Consumer
from kclient.journey.broker_times import BrokerTimes
from kclient.journey.consumed import ConsumedTraces
from kclient.journey.consumer_tracer import ConsumerTracer
from kclient.journey.producer_tracer import ProducerTracer
from kclient.journey.report import Report, Section, summarize
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, FETCH_STAGES, PRODUCER_STAGES
from kclient.journey.traces import Trace, as_lines, from_lines
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer

DEFAULT_INTERVAL = 0.01
"""Mean time between two traced records, in seconds."""

_CAPACITY = 100_000
_JOIN_TIMEOUT = 5.0
_EXACT = "broker: exact times of each request, on the clock of this machine"
_IN_ALL = "broker in all: from the request queued for the socket to its response"
_FETCH_IN_ALL = "fetch wait: up to the response, with the broker and the way back"
_STAGES = tuple(
    each
    for stage in PRODUCER_STAGES
    for each in ((BROKER_IN_ALL, stage) if stage.name == "wire to broker" else (stage,))
)


class Journey(ProcessBound):
    """Traces some records of a producer, a consumer or both while its ``with`` block runs.

    The next record after a random time is traced, so that records are traced independently of each
    other and of the producer's work. A traced record takes the slow path of `send`, which costs
    some microseconds; the others are sent as without a journey. `send_many` and `send_arrow` are
    not traced.

    Of the consumer, the next fetch after such a time is traced, with the polls that return its
    records; the records of one poll share their times. With both clients, the traced records of the
    producer are reported that a traced fetch has returned.

    Attributes:
        broker_times: Times of requests in a companion broker on this machine: pass its `observe` to
            `BrokerServer.observe_requests`, or a request log to its `read_log`, before `report`.
    """

    def __init__(
        self,
        producer: Producer[Any, Any] | None = None,
        consumer: Consumer[Any, Any] | None = None,
        *,
        interval: float = DEFAULT_INTERVAL,
        runtime: Runtime | None = None,
    ) -> None:
        """Trace nothing yet.

        Args:
            producer: The producer, None to trace the consumer alone.
            consumer: The consumer, None to trace the producer alone.
            interval: Mean seconds between two traced records, and two traced fetches; 0 traces all.
            runtime: Clock and tasks of the clients; those of the machine if None.

        Raises:
            InvalidArgumentError: There is neither a producer nor a consumer.
            InvalidTypeError: An argument has the wrong type.
        """
        if producer is None and consumer is None:
            raise InvalidArgumentError("Journey: got no client, expected a producer or a consumer")
        _check_client("producer", producer, Producer)
        _check_client("consumer", consumer, Consumer)
        interval_ms = check_timeout(interval, default_ms=DEFAULT_INTERVAL * 1000.0)
        runtime = system_runtime() if runtime is None else runtime
        self._clock, self._tasks, self._random = runtime.clock, runtime.tasks, runtime.random
        self._interval = interval_ms / 1000.0
        self._producer, self._consumer = producer, consumer
        now_ns, traces_all = self._clock.monotonic_ns, not interval_ms
        self._sent = ProducerTracer(
            now_ns,
            self._tasks.condition(),
            "" if producer is None else producer.client_id,
            _CAPACITY,
            traces_all=traces_all,
        )
        self._read = ConsumerTracer(now_ns, _CAPACITY, traces_all=traces_all)
        self._sent_elsewhere: list[Trace] | None = None
        self.broker_times = BrokerTimes()
        self._condition = self._tasks.condition()  # guards: _ended
        self._ended = False
        self._task: Task | None = None

    def start(self) -> None:
        """Start to trace records."""
        if self._producer is not None:
            self._producer.set_tracer(self._sent)
        if self._consumer is not None:
            self._consumer.set_tracer(self._read)
        if self._interval:
            self._task = self._tasks.spawn("kclient-journey", self._choose)

    def close(self, timeout: float = 10.0) -> int:
        """Trace no further record, and wait for the outcome of those that were sent. Idempotent.

        The processing of the last records ends with the journey.

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
        if self._consumer is not None:
            self._consumer.set_tracer(None)
            self._read.end()
        if self._producer is None:
            return 0
        self._producer.end_traces()
        unfinished = self._sent.await_ends(timeout)
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
        """Return the completed traces from `send` to the delivery callback, the oldest first."""
        return list(self._sent.traces(self.broker_times))

    def consumed_traces(self) -> list[Trace]:
        """Return the completed traces of records that were consumed.

        With a producer, or traces of one in another process (`read_lines`), they are from `send` to
        the commit. Otherwise they begin with the Fetch request, one for each partition and poll.
        """
        consumed = self._consumed()
        sent = self._sent_traces()
        return list(consumed.from_fetch() if sent is None else consumed.from_send(sent))

    def lines(self) -> Iterator[str]:
        """Return `traces` as lines of text, for a journey of a consumer in another process."""
        return as_lines(self.traces(), self._clock)

    def read_lines(self, lines: Iterable[str]) -> None:
        """Continue the traces of a producer in another process of this machine, before `report`.

        Raises:
            ValueError: The lines are not those of `lines`, or were written on another machine.
        """
        self._sent_elsewhere = from_lines(lines, self._clock)

    def report(self) -> Report:
        """Return the statistics of the completed traces."""
        found: list[Section | None] = []
        if self._producer is not None:
            found.append(self._of_producer())
        if self._consumer is not None:
            found.append(self._of_consumer())
            fetches = list(self._consumed().fetches())
            title = "Fetch requests, from the request to the response"
            found.append(summarize(title, FETCH_STAGES, fetches, note=_EXACT))
        return Report([section for section in found if section is not None])

    # --- inside

    def _of_producer(self) -> Section | None:
        traces = self.traces()
        return summarize(
            "from send() to the delivery callback",
            _STAGES,
            traces,
            failed=self._sent.failed,
            note=_note(traces, "broker local", _IN_ALL),
        )

    def _of_consumer(self) -> Section | None:
        traces = self.consumed_traces()
        sent = self._sent_traces()
        start = "the Fetch request" if sent is None else "send()"
        has_commit = any("commit" in trace.durations_ns for trace in traces)
        end = "the commit" if has_commit else "the end of processing"
        notes = [_note(traces, "wire", _FETCH_IN_ALL)]
        if sent is not None and len(traces) < len(sent):
            notes.append(f"{len(traces):,} of {len(sent):,} traced records are of traced fetches")
        return summarize(
            f"from {start} to {end}", (*_STAGES, *CONSUMER_STAGES), traces, note="; ".join(notes)
        )

    def _consumed(self) -> ConsumedTraces:
        client_id = "" if self._consumer is None else self._consumer.client_id
        return ConsumedTraces(self._read.polled(), self.broker_times, client_id)

    def _sent_traces(self) -> list[Trace] | None:
        if self._producer is not None:
            return self.traces()
        return self._sent_elsewhere

    def _choose(self) -> bool:
        """Wait a random time, and trace the next record; return whether to continue."""
        wait = -math.log(1.0 - self._random.random()) * self._interval
        with self._condition:
            if not self._ended:
                self._condition.wait(wait)
            ended = self._ended
        if not ended:
            self._read.trace_next()
            if self._producer is not None:
                self._producer.trace_next()
        return not ended


def _check_client(name: str, client: object, expected: type) -> None:
    if client is not None and not isinstance(client, expected):
        raise InvalidTypeError(
            f"Journey: {name}: got {type(client).__name__}, expected a {expected.__name__}; "
            f"a single client is passed by its name, as in Journey(consumer=…)"
        )


def _note(traces: list[Trace], stage: str, otherwise: str) -> str:
    """Return how the broker's stages were measured; those with exact times have a stage."""
    exact = sum(stage in trace.durations_ns for trace in traces)
    if exact == len(traces):
        return _EXACT
    return f"{_EXACT}, for {exact:,} records; {otherwise} for the others" if exact else otherwise
