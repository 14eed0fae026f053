"""Journey of a producer's records: which are traced, and what is reported."""

from collections.abc import Iterator

import pytest

from kclient import Producer
from kclient.common.errors import KafkaError
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
