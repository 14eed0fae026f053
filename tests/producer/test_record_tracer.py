"""Calls of a tracer while a record passes through the producer."""

import time
from collections.abc import Iterator, Sequence

import pytest

from kclient import Producer
from kclient.common.errors import KafkaError
from kclient.common.types import RecordMetadata
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.record_tracer import RecordTrace, RecordTracer
from kclient.testing import EmbeddedCluster


class LoggedTrace:
    """Trace that logs its calls."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def intercepted(self) -> None:
        self._calls.append("intercepted")

    def serialized(self) -> None:
        self._calls.append("serialized")

    def partitioned(self) -> None:
        self._calls.append("partitioned")

    def refused(self) -> None:
        self._calls.append("refused")

    def until_delivery(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def ended(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if on_delivery is not None:
                on_delivery(metadata, error)
            self._calls.append("ended")

        return ended


class LoggedTracer:
    """Tracer that logs its calls."""

    def __init__(self, *, traces_all: bool) -> None:
        self.traces_all = traces_all
        self.calls: list[str] = []
        self.sent: list[tuple[int, int, int]] = []

    def start(self) -> RecordTrace:
        self.calls.append("started")
        return LoggedTrace(self.calls)

    def request_sent(
        self, batches: Sequence[ProducerBatch], correlation_id: int, started_ns: int, sent_ns: int
    ) -> None:
        self.calls.append("sent")
        self.sent.append((correlation_id, started_ns, sent_ns))
        assert all(batch.trace is None for batch in batches)

    def completing(self, batch: ProducerBatch, received_ms: float) -> None:
        self.calls.append("completing")
        assert received_ms * 1e6 >= self.sent[-1][2] - 1_000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedCluster() as cluster:
        yield cluster.bootstrap_servers


def test_stages_of_a_record_are_marked_in_order(bootstrap: str) -> None:
    tracer: RecordTracer = (logged := LoggedTracer(traces_all=True))
    delivered: list[object] = []
    with Producer(bootstrap_servers=bootstrap) as producer:
        before_ns = time.monotonic_ns()
        producer.set_tracer(tracer)
        producer.send("orders", b"a", on_delivery=lambda *_: delivered.append(1)).result(20)
        producer.set_tracer(None)
        producer.send("orders", b"not traced").result(20)
    assert logged.calls == [
        "started", "intercepted", "serialized", "partitioned", "sent", "completing", "ended",
    ]  # fmt: skip
    ((_, started_ns, sent_ns),) = logged.sent
    assert before_ns < started_ns < sent_ns
    assert delivered == [1]


def test_only_the_next_record_is_traced_on_request(bootstrap: str) -> None:
    tracer = LoggedTracer(traces_all=False)
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"a").result(20)
        producer.set_tracer(tracer)
        producer.send("orders", b"a").result(20)
        assert "started" not in tracer.calls
        producer.trace_next()
        for _ in range(3):
            producer.send("orders", b"a").result(20)
    assert tracer.calls.count("started") == tracer.calls.count("ended") == 1


def test_no_trace_starts_after_the_end_but_those_in_flight_are_completed(bootstrap: str) -> None:
    tracer = LoggedTracer(traces_all=True)
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000) as producer:
        producer.set_tracer(tracer)
        producer.send("orders", b"a")
        producer.end_traces()
        producer.trace_next()
        producer.send("orders", b"a")
    assert tracer.calls.count("started") == tracer.calls.count("ended") == 1
    assert "completing" in tracer.calls


def test_refused_record_ends_its_trace(bootstrap: str) -> None:
    tracer = LoggedTracer(traces_all=True)
    with Producer(bootstrap_servers=bootstrap, max_request_size=1000) as producer:
        producer.set_tracer(tracer)
        with pytest.raises(KafkaError):
            producer.send("orders", bytes(2000))
    assert tracer.calls == ["started", "intercepted", "serialized", "refused"]
