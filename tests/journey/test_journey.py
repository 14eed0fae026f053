"""Journey of records: which are traced, and what is reported."""

from collections.abc import Iterator

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.common.errors import InvalidArgumentError, InvalidTypeError, KafkaError
from kclient.journey import Journey
from kclient.journey.stages import BROKER_IN_ALL
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedCluster() as cluster:
        yield cluster.bootstrap_servers


def test_some_records_are_traced_and_the_others_take_the_fast_path(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"a").result(timeout=20)
        sent = 0
        with Journey(producer, interval=0.001) as journey:

            def traced() -> bool:
                nonlocal sent
                for _ in range(100):
                    producer.send("orders", b"a")
                sent += 100
                return len(journey.traces()) >= 20

            wait_until(traced, "20 records are traced")
        assert 20 <= len(journey.traces()) < sent / 10


def test_without_the_broker_its_stages_are_one(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        with Journey(producer, interval=0) as journey:
            for _ in range(5):
                producer.send("orders", b"a").result(timeout=20)
        (section,) = journey.report().sections
    names = [each.stage.name for each in section.stages]
    assert BROKER_IN_ALL.name in names
    assert not [name for name in names if name.startswith("wire")]
    assert "broker in all" in section.note
    assert section.whole.count == 5
    assert sum(each.share for each in section.stages) == pytest.approx(1.0)


def test_records_after_the_end_are_not_traced(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        with Journey(producer, interval=0) as journey:
            producer.send("orders", b"in flight at the end")
        assert len(journey.traces()) == 1
        assert journey.close() == 0
        producer.send("orders", b"later").result(timeout=20)
        assert len(journey.traces()) == 1


def test_refused_record_ends_its_trace(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap, max_request_size=1000) as producer:
        with Journey(producer, interval=0) as journey, pytest.raises(KafkaError):
            producer.send("orders", bytes(2000))
        assert journey.close() == 0
        assert journey.traces() == []


READ = ["fetch wait", "fetch buffer", "decode", "deserializing", "handed out", "processing"]


def reader(bootstrap: str, topic: str, **options: object) -> Consumer[object, object]:
    made: Consumer[object, object] = Consumer(
        {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **options}
    )
    made.assign([TopicPartition(topic, 0)])
    return made


def read(consumer: Consumer[object, object], count: int) -> None:
    while count > 0:
        count -= len(consumer.poll(5.0))


def test_journey_of_a_record_ends_with_its_commit(bootstrap: str) -> None:
    options = {"group_id": "whole", "enable_auto_commit": False, "value_deserializer": bytes.decode}
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        reader(bootstrap, "whole", **options) as consumer,
        Journey(producer, consumer, interval=0) as journey,
    ):
        for _ in range(20):
            producer.send("whole", b"a", partition=0)
        read(consumer, 20)
        consumer.commit()
        producer.flush()
        sent, consumed = journey.report().sections
    assert (sent.title, consumed.title) == (
        "from send() to the delivery callback",
        "from send() to the commit",
    )
    names = [each.stage.name for each in consumed.stages]
    assert names[-7:] == [*READ, "commit"]
    assert [trace.offset for trace in journey.consumed_traces()] == list(range(20))
    assert sum(each.share for each in consumed.stages) == pytest.approx(1.0)


def test_only_records_that_the_producer_traced_are_reported(bootstrap: str) -> None:
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        reader(bootstrap, "some") as consumer,
    ):
        producer.send("some", b"before the journey", partition=0).result(timeout=20)
        with Journey(producer, consumer, interval=0) as journey:
            producer.send("some", b"a", partition=0)
            producer.send_many("some", [b"not traced"] * 5, partition=0)
            read(consumer, 7)
            producer.send("some", b"not read", partition=0).result(timeout=20)
    assert [trace.offset for trace in journey.consumed_traces()] == [1]
    _, consumed = journey.report().sections
    assert consumed.title == "from send() to the end of processing"
    assert "1 of 2 traced records are of traced fetches" in consumed.note


def test_consumer_alone_is_traced_from_its_fetch(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_many("alone", [b"a"] * 5, partition=0).result(timeout=20)
    with reader(bootstrap, "alone") as consumer:
        with Journey(consumer=consumer, interval=0) as journey:
            read(consumer, 5)
        assert journey.close() == 0
    (section,) = journey.report().sections
    assert section.title == "from the Fetch request to the end of processing"
    assert [each.stage.name for each in section.stages] == [
        name for name in READ if name != "deserializing"
    ]
    assert journey.traces() == []


def test_fetches_of_a_consumer_are_sampled(bootstrap: str) -> None:
    with (
        Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer,
        reader(bootstrap, "sampled") as consumer,
        Journey(consumer=consumer, interval=0.2) as journey,
    ):
        polls = 0

        def sampled() -> bool:
            nonlocal polls
            producer.send("sampled", b"a", partition=0)
            read(consumer, 1)
            polls += 1
            return len(journey.consumed_traces()) >= 5

        wait_until(sampled, "5 fetches are traced")
        assert 5 <= len(journey.consumed_traces()) < polls


def test_consumer_in_another_process_continues_the_traces(bootstrap: str) -> None:
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        Journey(producer, interval=0) as sending,
    ):
        producer.send("elsewhere", b"a", partition=0).result(timeout=20)
    lines = list(sending.lines())
    with (
        reader(bootstrap, "elsewhere") as consumer,
        Journey(consumer=consumer, interval=0) as reading,
    ):
        read(consumer, 1)
    reading.read_lines(lines)
    (trace,) = reading.consumed_traces()
    assert trace.started_ns == sending.traces()[0].started_ns
    (section,) = reading.report().sections
    assert section.title == "from send() to the end of processing"


def test_journey_without_clients_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="expected a producer or a consumer"):
        Journey()


def test_consumer_in_the_place_of_the_producer_is_refused(bootstrap: str) -> None:
    with reader(bootstrap, "alone") as consumer:
        with pytest.raises(InvalidTypeError, match="got Consumer, expected a Producer; "):
            Journey(consumer)  # type: ignore[arg-type]  # the mistake that is tested
        with pytest.raises(InvalidTypeError, match="consumer: got str, expected a Consumer"):
            Journey(consumer="orders")  # type: ignore[arg-type]  # as above
