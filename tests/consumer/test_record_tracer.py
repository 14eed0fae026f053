"""Calls of a tracer while records pass through the consumer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.client.client_request import ClientResponse
from kclient.common.types import OffsetAndMetadata
from kclient.consumer.collected import Collected
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.consumer.record_tracer import RecordTracer
from kclient.serialization import Deserializer
from kclient.testing import EmbeddedCluster

ORDERS = TopicPartition("orders", 0)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class LoggedTracer:
    """Tracer that logs its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def timed(self, deserializer: Deserializer | None) -> Deserializer | None:
        if deserializer is None:
            return None

        def logged(topic: str, headers: Any, data: bytes | None) -> Any:
            self.calls.append("deserialize")
            return deserializer(topic, headers, data)

        return logged

    def fetched(self, response: ClientResponse) -> object:
        assert 0 < response.created_ms <= response.received_ms
        self.calls.append("fetched")
        return response.correlation_id

    def take(self, target: Collected, fetch: CompletedFetch) -> None:
        assert isinstance(fetch.trace, int)
        self.calls.append("take")
        target.take_from(fetch)

    def poll_started(self) -> None:
        self.calls.append("started")

    def poll_returned(self) -> None:
        self.calls.append("returned")

    def commit_queued(self, offsets: Offsets) -> None:
        self.calls.append(f"queued {offsets[ORDERS].offset}")

    def committed(self, offsets: Offsets) -> None:
        self.calls.append(f"committed {offsets[ORDERS].offset}")


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedCluster() as cluster:
        with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(3):
                producer.send("orders", b"%d" % number, partition=0).result(20)
        yield cluster.bootstrap_servers


Made = Callable[..., Consumer[Any, Any]]


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Made]:
    made: list[Consumer[Any, Any]] = []

    def make(**options: Any) -> Consumer[Any, Any]:
        made.append(Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **options))
        made[-1].assign([ORDERS])
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_steps_of_a_poll_and_its_commit_are_marked_in_order(consumer: Made) -> None:
    tracer: RecordTracer = (logged := LoggedTracer())
    reading = consumer(group_id="steps", enable_auto_commit=False, value_deserializer=bytes.decode)
    reading.set_tracer(tracer)
    assert [record.value for record in reading.poll(20)] == ["0", "1", "2"]
    reading.commit()
    reading.set_tracer(None)
    assert [call for call in logged.calls if call != "fetched"] == [
        "started", "take", *["deserialize"] * 3, "returned", "queued 3", "committed 3",
    ]  # fmt: skip
    assert logged.calls.index("fetched") < logged.calls.index("take")


def test_poll_without_records_returns_none(consumer: Made) -> None:
    tracer = LoggedTracer()
    reading = consumer()
    reading.set_tracer(tracer)
    reading.seek(ORDERS, 3)
    assert not reading.poll(0.0)
    assert tracer.calls == ["started"]


def test_columns_and_iterations_are_traced(consumer: Made) -> None:
    tracer = LoggedTracer()
    reading = consumer()
    reading.set_tracer(tracer)
    assert reading.poll_columns(20).num_rows == 3
    reading.seek_to_beginning()
    assert [next(reading).offset for _ in range(3)] == [0, 1, 2]
    steps = [call for call in tracer.calls if call != "fetched"]
    assert steps.count("take") == steps.count("returned") == 2


def test_nothing_is_traced_after_the_end(consumer: Made) -> None:
    tracer = LoggedTracer()
    reading = consumer(group_id="end", enable_auto_commit=False, key_deserializer=bytes.decode)
    reading.set_tracer(tracer)
    reading.set_tracer(None)
    assert len(reading.poll(20)) == 3
    reading.commit()
    assert tracer.calls == []


def test_poll_that_runs_when_the_journey_starts_is_traced(bootstrap: str, consumer: Made) -> None:
    tracer = LoggedTracer()

    def started(data: bytes) -> bytes:
        reading.set_tracer(tracer)
        return data

    reading = consumer(group_id="running", value_deserializer=started)
    assert len(reading.poll(20)) == 3
    assert tracer.calls == ["returned"]
