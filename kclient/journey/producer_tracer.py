"""Tracer of records from `Producer.send` to the delivery callback."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.common.types import RecordMetadata
from kclient.journey.broker_times import BrokerTimes
from kclient.journey.stages import BROKER_IN_ALL, PRODUCER_STAGES
from kclient.journey.traces import Trace, durations
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_batch import ProducerBatch
from kclient.protocol.api_keys import ApiKey

_NS_PER_MS = 1e6
_NAMES = tuple(stage.name for stage in PRODUCER_STAGES)
_BROKER = slice(_NAMES.index("wire to broker"), _NAMES.index("wire back") + 1)
_NAMES_WITHOUT_BROKER = (*_NAMES[: _BROKER.start], BROKER_IN_ALL.name, *_NAMES[_BROKER.stop :])


class RequestMarks(NamedTuple):
    """Times of the last request of a batch.

    Attributes:
        correlation_id: Correlation id of the request.
        first_drained_ns: The batch was drained for its first request.
        drained_ns: The batch was drained for this request.
        started_ns: The sender started to prepare the request.
        sent_ns: The request was queued for the socket.
    """

    correlation_id: int
    first_drained_ns: int
    drained_ns: int
    started_ns: int
    sent_ns: int


class CompletedMarks(NamedTuple):
    """Times of a record that was acknowledged.

    Attributes:
        metadata: Topic, partition and offset.
        points_ns: From the call of `send` to the choice of the partition.
        request: Times of the request.
        received_ns: The sender woke up because the response had arrived.
        ended_ns: The delivery callback returned.
    """

    metadata: RecordMetadata
    points_ns: tuple[int, ...]
    request: RequestMarks
    received_ns: int
    ended_ns: int


class ProducerTrace:
    """Marks of one record (see `kclient.producer.record_tracer.RecordTrace`)."""

    __slots__ = ("_points_ns", "_tracer")

    def __init__(self, tracer: "ProducerTracer") -> None:
        self._tracer = tracer
        self._points_ns = [tracer.now_ns()]

    def intercepted(self) -> None:
        """Mark that the interceptors have returned the record."""
        self._points_ns.append(self._tracer.now_ns())

    def serialized(self) -> None:
        """Mark that key and value are bytes."""
        self._points_ns.append(self._tracer.now_ns())

    def partitioned(self) -> None:
        """Mark that the partition is chosen, or left to the sticky partitioner."""
        self._points_ns.append(self._tracer.now_ns())

    def until_delivery(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """Return a callback that calls `on_delivery` and ends the trace."""

        def ended(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            try:
                if on_delivery is not None:
                    on_delivery(metadata, error)
            finally:
                self._tracer.ended(self, self._points_ns, metadata)

        return ended

    def refused(self) -> None:
        """End the trace: `send` raises an error."""
        self._tracer.ended(self, self._points_ns, None)


class ProducerTracer:
    """Traces chosen records of one producer (`kclient.producer.record_tracer.RecordTracer`).

    The application's threads start traces, the sender's thread does the rest. The broker's times of
    a request may arrive after its response; `traces` joins them.

    Attributes:
        traces_all: Whether every record is traced.
        now_ns: Monotonic clock.
        failed: Number of traced records that were not acknowledged.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        condition: Condition,
        client_id: str,
        capacity: int,
        *,
        traces_all: bool,
    ) -> None:
        self.traces_all = traces_all
        self.now_ns = now_ns
        self.failed = 0
        self._client_id = client_id
        self._condition = condition  # guards: the traces without an end, the number of failures
        self._open: set[ProducerTrace] = set()
        self._completed: deque[CompletedMarks] = deque(maxlen=capacity)
        self._current: tuple[RequestMarks, int] | None = None  # of the callbacks that run

    def start(self) -> ProducerTrace:
        """Return the trace of a record that `send` was just called with."""
        trace = ProducerTrace(self)
        with self._condition:
            self._open.add(trace)
        return trace

    def await_ends(self, timeout: float) -> int:
        """Wait until every trace has ended, at most `timeout` seconds.

        Returns:
            The number of traces without an end.
        """
        with self._condition:
            self._condition.wait_for(lambda: not self._open, timeout)
            return len(self._open)

    def request_sent(
        self, batches: Sequence[ProducerBatch], correlation_id: int, started_ns: int, sent_ns: int
    ) -> None:
        """Store the times of a request in its batches."""
        for batch in batches:
            before = batch.trace
            drained_ns = round(batch.drained_ms * _NS_PER_MS)
            first_ns = before.first_drained_ns if isinstance(before, RequestMarks) else drained_ns
            batch.trace = RequestMarks(correlation_id, first_ns, drained_ns, started_ns, sent_ns)

    def completing(self, batch: ProducerBatch, received_ms: float) -> None:
        """Use the times of this batch in the callbacks that follow."""
        marks = batch.trace
        self._current = None
        if isinstance(marks, RequestMarks):
            self._current = marks, round(received_ms * _NS_PER_MS)

    def ended(
        self, trace: ProducerTrace, points_ns: list[int], metadata: RecordMetadata | None
    ) -> None:
        """End the trace of a record; without metadata it has failed."""
        ended_ns = self.now_ns()
        if metadata is not None and self._current is not None:
            request, received_ns = self._current
            self._completed.append(
                CompletedMarks(metadata, tuple(points_ns), request, received_ns, ended_ns)
            )
        with self._condition:
            self.failed += metadata is None
            self._open.discard(trace)
            self._condition.notify_all()

    def traces(self, broker: BrokerTimes) -> Iterator[Trace]:
        """Return the completed traces, with the broker's stages where their times are known."""
        for marks in list(self._completed):
            yield self._trace(marks, broker)

    def _trace(self, marks: CompletedMarks, broker: BrokerTimes) -> Trace:
        request = marks.request
        points = [*marks.points_ns, request.first_drained_ns, *request[2:]]
        inside = broker.between(
            ApiKey.PRODUCE,
            self._client_id,
            request.correlation_id,
            request.sent_ns,
            marks.received_ns,
        )
        names = _NAMES_WITHOUT_BROKER
        if inside is not None:
            names = _NAMES
            points += inside
        points += [marks.received_ns, marks.ended_ns]
        topic, partition = marks.metadata.topic, marks.metadata.partition
        return Trace(
            topic,
            partition,
            marks.metadata.offset,
            points[0],
            points[-1],
            durations(names, points),
        )
