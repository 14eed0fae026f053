"""Times of the requests of a broker, by API, with the names of Kafka's RequestMetrics.

A request passes these points; each metric is the time between two of them:

| point | metric up to it |
|---|---|
| received: the frame is complete | |
| dequeued: a thread starts to handle it | RequestQueueTimeMs |
| handled: its handler is done, or has the response | LocalTimeMs |
| completed: the response is queued | RemoteTimeMs |
| response dequeued: the network thread takes the response | ResponseQueueTimeMs |
| sent: the response is written | ResponseSendTimeMs |
"""

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kclient.common.metrics import percentile
from kclient.common.runtime import Lock
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader

_SAMPLE_SIZE = 1028  # of Kafka's histograms (Yammer: ExponentiallyDecayingSample)
_PER_MS = 1e6


class RequestTimes:
    """Times of one request, in nanoseconds of the monotonic clock (Kafka: RequestChannel.Request).

    Attributes:
        connection_id: Connection that the request was received on.
        header: Header of the request.
        received_ns: The frame was complete.
        dequeued_ns: A thread started to handle the request.
        handled_ns: The handler ended without a response; 0 if it had one.
        completed_ns: The response was queued.
        response_dequeued_ns: The network thread started to write the response.
        sent_ns: The response was written.
        from_follower: Whether it is the fetch of another broker.
        throttle_ms: Time for which the client is throttled because of its quotas.
    """

    __slots__ = (
        "completed_ns",
        "connection_id",
        "dequeued_ns",
        "from_follower",
        "handled_ns",
        "header",
        "received_ns",
        "response_dequeued_ns",
        "sent_ns",
        "throttle_ms",
    )

    def __init__(self, connection_id: str, header: RequestHeader) -> None:
        self.connection_id = connection_id
        self.header = header
        self.received_ns = self.dequeued_ns = self.handled_ns = 0
        self.completed_ns = self.response_dequeued_ns = self.sent_ns = 0
        self.from_follower = False
        self.throttle_ms = 0

    def points_ns(self) -> tuple[int, ...]:
        """Return the six points of the request in order.

        An operation that another thread completes may do so before the handler ends: it is handled
        when it is completed. So is a request that a fault of the test kit completes.
        """
        completed_ns = self.completed_ns
        return (
            self.received_ns,
            self.dequeued_ns or completed_ns,
            min(self.handled_ns or completed_ns, completed_ns),
            completed_ns,
            self.response_dequeued_ns,
            self.sent_ns,
        )

    def durations_ms(self) -> dict[str, float]:
        """Return the time of each stage and of the request, by Kafka's name of the metric."""
        points = self.points_ns()
        stages = [(end - start) / _PER_MS for start, end in itertools.pairwise(points)]
        total_ms = (self.sent_ns - self.received_ns) / _PER_MS
        return dict(zip(STAGE_METRICS, stages, strict=True)) | {
            "ThrottleTimeMs": float(self.throttle_ms),
            "TotalTimeMs": total_ms,
        }


STAGE_METRICS = (
    "RequestQueueTimeMs",
    "LocalTimeMs",
    "RemoteTimeMs",
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
)
"""Metrics of the stages in order; their sum is TotalTimeMs."""

RequestObserver = Callable[[RequestTimes], None]
"""Receives the times of each completed request; it must be fast."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Distribution of one time in milliseconds (the attributes of Kafka's MBeans).

    Attributes:
        count: Number of all values; the others describe the most recent ones.
        mean: Mean.
        minimum: Smallest value.
        maximum: Largest value.
        p50: Median.
        p75: 75th percentile.
        p95: 95th percentile.
        p99: 99th percentile.
        p999: 99.9th percentile.
    """

    count: int
    mean: float
    minimum: float
    maximum: float
    p50: float
    p75: float
    p95: float
    p99: float
    p999: float


class RequestMetrics:
    """Times of completed requests by API (Kafka: RequestChannel.Metrics, RequestMetrics).

    A request is one element of a list; percentiles are computed when they are read.

    Attributes:
        now_ns: Clock of the times.
        observer: Receives the times of each completed request, or None; set by any thread.
    """

    def __init__(self, now_ns: Callable[[], int], lock: Lock) -> None:
        self.now_ns = now_ns
        self.observer: RequestObserver | None = None
        self._lock = lock  # guards: the two tables
        self._recent: dict[ApiKey, _Recent] = {}
        self._of_followers: dict[ApiKey, _Recent] = {}

    def update(self, times: RequestTimes) -> None:
        """Add a request whose response was sent, or that has none."""
        api = times.header.api_key
        with self._lock:
            table = self._of_followers if times.from_follower else self._recent
            recent = table.get(api)
            if recent is None:
                recent = table[api] = _Recent()
            recent.total += 1
            recent.append(times)
        observer = self.observer
        if observer is not None:
            observer(times)

    def snapshot(self) -> dict[str, dict[str, Histogram]]:
        """Return the histogram of each metric by Kafka's names of request and metric.

        As in Kafka, ``Fetch`` has all fetches, ``FetchConsumer`` those of consumers and
        ``FetchFollower`` those of other brokers.
        """
        found: dict[str, list[tuple[int, list[RequestTimes]]]] = defaultdict(list)
        with self._lock:
            for suffix, table in (("Consumer", self._recent), ("Follower", self._of_followers)):
                for api, recent in table.items():
                    entry = (recent.total, list(recent))
                    found[request_name(api)].append(entry)
                    if api is ApiKey.FETCH:
                        found[request_name(api) + suffix].append(entry)
        return {name: _histograms(entries) for name, entries in found.items()}


class _Recent(deque[RequestTimes]):
    """Recent requests, and the number of all."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        super().__init__(maxlen=_SAMPLE_SIZE)
        self.total = 0


def request_name(api: ApiKey) -> str:
    """Return Kafka's name of an API in metrics, such as ``ListOffsets``."""
    return "".join(word.capitalize() for word in api.name.split("_"))


def _histograms(entries: Sequence[tuple[int, list[RequestTimes]]]) -> dict[str, Histogram]:
    rows = [times.durations_ms() for _, recent in entries for times in recent]
    total = sum(count for count, _ in entries)
    return {name: _histogram(total, [row[name] for row in rows]) for name in rows[0]}


def _histogram(count: int, values: list[float]) -> Histogram:
    values.sort()
    return Histogram(
        count,
        sum(values) / len(values),
        values[0],
        values[-1],
        *(percentile(values, fraction) for fraction in (0.5, 0.75, 0.95, 0.99, 0.999)),
    )
