"""Reading tasks: their ranges, and the consumers that they share."""

from collections.abc import Iterator

import pytest
from pyspark.sql.datasource import InputPartition

from kclient.common.errors import ClosedError
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.spark.common.offsets import Span
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.read_task import ConsumerCache, OffsetRange, read_range
from tests.support.checks.travelled import travelled
from tests.support.virtual.virtual_home import VirtualHome

SPAN = Span(TopicPartition("t", 3), 5, 9)


def config(name: str = "a") -> dict[str, str]:
    return {"bootstrap.servers": "10.0.0.1:9092", "client.id": name}


@pytest.fixture
def home() -> VirtualHome:
    return VirtualHome()


@pytest.fixture
def cache(home: VirtualHome) -> Iterator[ConsumerCache]:
    made = ConsumerCache(home.runtime)
    yield made
    made.close()


def used(cache: ConsumerCache, name: str = "a") -> Consumer:
    with cache.borrow(config(name)) as consumer:
        return consumer


def is_open(consumer: Consumer) -> bool:
    try:
        consumer.assignment()
    except ClosedError:
        return False
    return True


def test_range_survives_its_way_to_the_task() -> None:
    sent = travelled(OffsetRange(SPAN, "the id"))
    assert (sent.span, sent.topic_id) == (SPAN, "the id")
    assert repr(sent) == "OffsetRange(t-3[5:9])"


def test_partition_that_spark_created_has_no_records() -> None:
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    settings = SourceOptions.parse(options).reading
    assert list(read_range(settings, InputPartition(None))) == []


def test_consumer_is_reused_by_its_configuration(cache: ConsumerCache) -> None:
    first = used(cache)
    assert used(cache) is first
    assert used(cache, "b") is not first


def test_concurrent_tasks_have_consumers_of_their_own(cache: ConsumerCache) -> None:
    with cache.borrow(config()) as first, cache.borrow(config()) as second:
        assert first is not second
    assert used(cache) is first
    assert is_open(first)
    assert not is_open(second)


def test_failed_task_closes_its_consumer(cache: ConsumerCache) -> None:
    def fail() -> None:
        with cache.borrow(config()) as consumer:
            seen.append(consumer)
            raise ValueError("a defect")

    seen: list[Consumer] = []
    with pytest.raises(ValueError, match="a defect"):
        fail()
    assert not is_open(seen[0])
    assert used(cache) is not seen[0]


def test_task_that_stops_early_keeps_its_consumer(cache: ConsumerCache) -> None:
    def rows() -> Iterator[Consumer]:
        with cache.borrow(config()) as consumer:
            yield consumer
            yield consumer

    reading = rows()
    first = next(reading)
    del reading
    assert used(cache) is first


def test_number_of_idle_consumers_is_limited(cache: ConsumerCache) -> None:
    consumers = [used(cache, f"client-{number}") for number in range(10)]
    assert [is_open(consumer) for consumer in consumers] == [False] * 2 + [True] * 8
    cache.close()
    assert not any(map(is_open, consumers))


def test_consumers_of_the_parent_of_a_fork_are_not_used(
    cache: ConsumerCache, home: VirtualHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited = used(cache)
    with monkeypatch.context() as patch:
        patch.setattr(home.process, "id", home.process.id + 1)
        own = used(cache)
        assert own is not inherited
        assert used(cache) is own
        cache.close()
    assert is_open(inherited)
    inherited.close()
