"""Lag of queries and groups, from the progress and from the brokers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.errors import ConfigError, IllegalStateError
from kclient.spark.common import installed_spark
from kclient.spark.common.errors import UnsupportedSparkVersionError
from kclient.spark.reader_lag import group_lag, lag
from tests.support.clients.clients import Clients, place


class Progress:
    def __init__(self, *sources: dict[str, Any]) -> None:
        self.json = json.dumps({"sources": sources})


class Query:
    """A query with this last progress."""

    def __init__(self, *sources: dict[str, Any]) -> None:
        self.lastProgress = Progress(*sources) if sources else None  # Spark's name


def source(end: object, latest: object = None) -> dict[str, Any]:
    return {"description": "kclient", "endOffset": end, "latestOffset": latest}


def of(*sources: dict[str, Any], conf: dict[str, object] | None = None) -> Any:
    return lag(Query(*sources), conf)  # type: ignore[arg-type]  # has only the needed attributes


@pytest.fixture
def on_42(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_spark, "spark_version", lambda: "4.2.1")


@pytest.mark.usefixtures("on_42")
def test_lag_by_partition_from_the_progress() -> None:
    found = of(source({"t": {"0": 5, "1": 7}}, {"t": {"0": 5, "1": 17, "2": 4}}))
    assert found == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 10}
    assert found.total == 10
    assert str(found) == "10 behind (t-0: 0, t-1: 10)"


@pytest.mark.usefixtures("on_42")
@pytest.mark.parametrize("text", [json.dumps, str])
def test_offsets_as_text_over_spark_connect(text: Callable[[object], str]) -> None:
    found = of(source(text({"t": {"0": 5}}), text({"t": {"0": 8}})), source("rate: {5"))
    assert found == {TopicPartition("t", 0): 3}


@pytest.mark.usefixtures("on_42")
def test_largest_lag_of_several_sources_counts() -> None:
    latest = {"t": {"0": 9}}
    found = of(source({"t": {"0": 5}}, latest), source("rate: 5"), source({"t": {"0": 8}}, latest))
    assert found == {TopicPartition("t", 0): 4}


@pytest.mark.usefixtures("on_42")
def test_query_without_kafka_offsets_fails() -> None:
    with pytest.raises(IllegalStateError, match="has not completed a micro-batch yet"):
        of()
    with pytest.raises(ConfigError, match=r"a query that reads 'kclient'.*, expected one with"):
        of(source(7, 9))


def test_old_spark_needs_conf_for_the_lag(
    monkeypatch: pytest.MonkeyPatch, clients: Clients
) -> None:
    monkeypatch.setattr(installed_spark, "spark_version", lambda: "4.1.4")
    topic = clients.topic()
    clients.fill(topic, 12)
    with pytest.raises(UnsupportedSparkVersionError, match=r"without conf: got Spark 4.1.4, .*4.2"):
        of(source({topic: {"0": 5}}))
    conf: dict[str, object] = {"bootstrap.servers": clients.bootstrap}
    assert of(source({topic: {"0": 5}}), conf=conf) == {place(topic): 7}


def test_group_lag_from_committed_offsets(clients: Clients) -> None:
    topic, group = clients.topic(2), clients.group()
    clients.fill(topic, 5)
    conf: dict[str, object] = {"bootstrap.servers": clients.bootstrap, "fetch.max.wait.ms": 10}
    assert group_lag(conf, group) == {}
    assert str(group_lag(conf, group)) == "0 behind (no partitions)"
    clients.consumer(group).commit({place(topic): 3})
    assert group_lag(conf, group) == {place(topic): 2}
